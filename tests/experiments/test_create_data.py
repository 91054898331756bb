"""Programs that make records, from outside; tests/records/test_creation.py has what they refuse."""

import re

import pytest

from mate_tf.datasets.json_lines import read_json_lines
from mate_tf.records.batches import read_records
from mate_tf.records.conversion_file import read_conversion
from tests.small import cases, succeeded, write_lines, write_vocabulary

VOCABULARY = ["[PAD]", "[unused0]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdefghijk0123456789?"]
TABLE = {"id": "t", "header": ["a", "b"], "rows": [["c", "1"], ["d", "1"], ["e", "3"]]}


def question(name: str, text: str, *answers: str) -> dict:
    return {"id": name, "question": text, "answers": answers, "table": TABLE}


QUESTIONS = [
    question("good", "a?", "c"),
    question("number", "a?", "17"),
    question("ambiguous", "a?", "1"),
    question("unknown", "a?", "k"),
    question("long", "a " * 30, "c"),
]


def test_training_keeps_what_is_supervised_and_evaluation_all_that_fits(tmp_path):
    vocab_file = write_vocabulary(tmp_path / "bert_vocab.txt", VOCABULARY)
    for name in ("train", "dev"):
        write_lines(tmp_path / f"{name}.jsonl", *QUESTIONS)
    out = tmp_path / "out"
    done = succeeded(
        "experiments.create_data",
        *("--task=JSONL", f"--input_dir={tmp_path}", f"--output_dir={out}"),
        *(f"--vocab_file={vocab_file}", "--max_seq_length=24", "--original_conversion"),
    )
    for said in (
        "train: 2 of 5 questions kept",
        "left out: 1 ambiguous answer",
        "left out: 1 too long\n    expected at most 24 tokens, got ",
        "dev: 4 of 5 questions kept",
        "kept with no labels (answer not found): 1",
        "% batched by length",
    ):
        assert said in done.stdout
    assert (out / "vocab.txt").read_text() == vocab_file.read_text()
    conversion = read_conversion(out)
    assert (conversion.task, conversion.features.max_seq_length) == ("JSONL", 24)
    assert conversion.features.original_conversion

    names = [q["id"] for q in QUESTIONS]
    for split, kept in {"train": names[:2], "dev": names[:4]}.items():
        records = list(read_records(out / f"{split}.tfrecord").as_numpy_iterator())
        assert [record["question_id"][0].decode() for record in records] == kept
        pairs = list(read_json_lines(out / f"{split}.jsonl"))
        assert [pair[1].question_id for pair in pairs] == names
        assert pairs[0][1].answer_coordinates == ((0, 0),)
        assert pairs[1][1].answer_number == 17


@pytest.mark.medium
def test_tables_alone_become_records(tmp_path):
    folder, data_dir = tmp_path / "tables", tmp_path / "data"
    folder.mkdir()
    for number in range(30):
        (folder / f"{number}.csv").write_text("a,b\nc,d\ne,f\n", encoding="utf-8")
    vocab_file = write_vocabulary(tmp_path / "vocab.txt")
    done = succeeded(
        "experiments.create_pretraining_data",
        *("--task=TABLES", "--max_seq_length=24", "--dupe_factor=2"),
        *(f"--input_dir={folder}", f"--output_dir={data_dir}", f"--vocab_file={vocab_file}"),
    )
    assert re.search(r"train: \d\d of \d\d examples kept", done.stdout)
    conversion = read_conversion(data_dir)
    assert conversion.division == "train:train=95,dev=5"
    assert conversion.pretraining.masked_lm.max_predictions == 4  # 20 in 128 tokens
    parts = [
        {example["table_id"][0] for example in read_records(file).as_numpy_iterator()}
        for file in (data_dir / "train_24.tfrecord", data_dir / "dev_24.tfrecord")
    ]
    assert len(parts[0] | parts[1]) == 30 and not parts[0] & parts[1] and all(parts)


@pytest.mark.medium
@cases("what, some", ("statements", "excerpts_per_table=2"), ("questions", "operations=count"))
def test_the_programs_write_what_they_say(tmp_path, vocab_file, what, some):
    for i in range(8):
        rows = "".join(f"{name},{n * (i + 2)}\n" for n, name in enumerate("abcdef", start=3))
        (tmp_path / f"{i}.csv").write_text(f"name,points\n{rows}")
    (tmp_path / "broken.csv").write_text('a,b\n1,"2\n')
    done = succeeded(
        f"experiments.create_{what}",
        *(f"--input_dir={tmp_path}", f"--output_dir={tmp_path / 'out'}"),
        *(f"--vocab_file={vocab_file}", "--max_seq_length=400", f"--{some}"),
        "--parts=train=60,dev=40",
    )
    assert "left out: 1 table: malformed" in done.stdout
    for part in ("train", "dev"):
        pairs = list(read_json_lines(tmp_path / "out" / f"{part}.jsonl"))
        assert f"{part}: {len(pairs)} {what} about" in done.stdout
        if what == "questions":
            assert {question.aggregation for _, question in pairs} == {"COUNT"}
