"""Two binaries from the outside; tests/records/test_creation.py has what they refuse."""

import json
import re

import pytest

from mate_tf.datasets.json_lines import read_json_lines
from mate_tf.records.batches import read_records
from mate_tf.records.conversion_file import read_conversion
from tests.small import run_binary, write_vocabulary

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
    lines = "".join(json.dumps(q) + "\n" for q in QUESTIONS)
    for name in ("train", "dev"):
        (tmp_path / f"{name}.jsonl").write_text(lines)
    out = tmp_path / "out"
    done = run_binary(
        "experiments.create_data",
        *("--task=JSONL", f"--input_dir={tmp_path}", f"--output_dir={out}"),
        *(f"--vocab_file={vocab_file}", "--max_seq_length=24", "--original_conversion"),
    )
    assert done.returncode == 0, done.stderr
    assert "train: 2 of 5 questions kept" in done.stdout
    assert "left out: 1 ambiguous answer" in done.stdout
    assert "left out: 1 answer not found" in done.stdout
    assert re.search(
        r"left out: 1 too long\n    expected at most 24 tokens, got .*table 't', question 'long'",
        done.stdout,
    )
    assert re.search(r"padding: \d+% of the records, \d+% batched by length", done.stdout)
    assert "dev: 4 of 5 questions kept" in done.stdout
    assert "kept with no labels (answer not found): 1" in done.stdout
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
    flags = (f"--input_dir={folder}", f"--output_dir={data_dir}", f"--vocab_file={vocab_file}")
    done = run_binary(
        "experiments.create_pretraining_data",
        "--task=TABLES",
        *flags,
        "--max_seq_lengths=24",
        "--dupe_factor=2",
    )
    assert done.returncode == 0, done.stderr
    assert re.search(r"train: \d\d of \d\d examples kept\n  kept with 24 tokens", done.stdout)
    conversion = read_conversion(data_dir)
    assert conversion.division == "train:train=95,dev=5"
    assert conversion.pretraining.masked_lm.max_predictions == 4  # 20 in 128 tokens
    parts = [
        {example["table_id"][0] for example in read_records(file).as_numpy_iterator()}
        for file in (data_dir / "train_24.tfrecord", data_dir / "dev_24.tfrecord")
    ]
    assert len(parts[0] | parts[1]) == 30 and not parts[0] & parts[1] and all(parts)
