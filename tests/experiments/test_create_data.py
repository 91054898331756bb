import json
import pathlib
import re
import subprocess

import pytest

from mate_tf.datasets.json_lines import read_json_lines
from mate_tf.datasets.tasks import splits_there
from mate_tf.features.wordpiece import Wordpiece
from mate_tf.records.batches import read_records
from mate_tf.records.conversion_file import read_conversion
from mate_tf.records.splits import read_questions
from tests.small import run_binary

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


def run(*flags: str) -> subprocess.CompletedProcess:
    return run_binary("experiments.create_data", *flags)


def run_task(task: str, source, output, vocab_file, *flags: str) -> subprocess.CompletedProcess:
    return run(
        f"--task={task}",
        f"--input_dir={source}",
        f"--output_dir={output}",
        f"--vocab_file={vocab_file}",
        *flags,
    )


@pytest.fixture
def vocab_file(tmp_path):
    path = tmp_path / "bert_vocab.txt"
    path.write_text("\n".join(VOCABULARY))
    return path


def test_training_keeps_what_is_supervised_and_evaluation_all_that_fits(tmp_path, vocab_file):
    lines = "".join(json.dumps(q) + "\n" for q in QUESTIONS)
    for name in ("train", "dev"):
        (tmp_path / f"{name}.jsonl").write_text(lines)
    out = tmp_path / "out"
    flags = ("--max_seq_length=24", "--original_conversion")
    done = run_task("JSONL", tmp_path, out, vocab_file, *flags)
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


def write_splits(folder: pathlib.Path, *names: str) -> pathlib.Path:
    folder.mkdir()
    lines = "".join(json.dumps(q) + "\n" for q in QUESTIONS)
    for name in names:
        (folder / f"{name}.jsonl").write_text(lines)
    return folder


def convert(tmp_path, vocab_file, output: str, *flags: str) -> subprocess.CompletedProcess:
    return run_task(
        "JSONL", tmp_path / "in", tmp_path / output, vocab_file, "--max_seq_length=24", *flags
    )


def contents(directory: pathlib.Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in directory.iterdir()}


def test_of_an_official_data_set_the_splits_that_are_there_are_converted(tmp_path, vocab_file):
    (tmp_path / "csv").mkdir()
    (tmp_path / "data").mkdir()
    (tmp_path / "csv" / "1.csv").write_text('"a","b"\n"c","1"\n')
    lines = "id\tutterance\tcontext\ttargetValue\nnt-1\ta?\tcsv/1.csv\tc\n"
    (tmp_path / "data" / "random-split-1-dev.tsv").write_text(lines)
    (tmp_path / "data" / "pristine-unseen-tables.tsv").write_text(lines)
    flags = (
        "--task=WTQ",
        f"--input_dir={tmp_path}",
        f"--output_dir={tmp_path / 'out'}",
        f"--vocab_file={vocab_file}",
    )
    done = run(*flags)
    assert done.returncode == 0, done.stderr
    for split in ("dev", "test"):
        assert f"{split}: 1 of 1 questions kept" in done.stdout
        assert (tmp_path / "out" / f"{split}.tfrecord").exists()
    assert re.search("not there, train: .*random-split-1-train.tsv", done.stdout)
    asked = run(*flags, "--splits=train")
    assert asked.returncode == 1
    assert "random-split-1-train.tsv" in asked.stderr and "Traceback" not in asked.stderr


def test_a_missing_vocabulary_and_missing_questions_are_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"expected a vocabulary file at .*absent\.txt"):
        Wordpiece(tmp_path / "absent.txt")
    with pytest.raises(FileNotFoundError, match=r"expected a \.jsonl file in .*, found none"):
        splits_there("JSONL", str(tmp_path))


def test_questions_without_their_given_supervision_are_left_out_of_training(tmp_path, vocab_file):
    columns = "id annotator position question table_file answer_coordinates answer_text".split()
    header = "\t".join(columns) + "\n"
    cells = ("['(0, 0)']", "['(-1, 0)']", "[]")
    rows = [f"nt-1\t0\t{i}\ta?\tt.csv\t{cell}\t[]\n" for i, cell in enumerate(cells)]
    (tmp_path / "t.csv").write_text("a,b\nc,1\n")
    for name in ("random-split-1-train", "test"):
        (tmp_path / f"{name}.tsv").write_text(header + "".join(rows))
    out = tmp_path / "out"
    done = run_task("SQA", tmp_path, out, vocab_file, "--max_seq_length=24")
    assert done.returncode == 0, done.stderr
    assert "train: 1 of 3 questions kept" in done.stdout
    assert "left out: 2 no answer given" in done.stdout
    assert "test: 3 of 3 questions kept" in done.stdout
    assert "kept with no labels (no answer given): 2" in done.stdout
    assert len(list(read_json_lines(out / "test.jsonl"))) == 3


def test_a_folder_s_splits_are_all_made_in_one_way(tmp_path, vocab_file):
    write_splits(tmp_path / "in", "dev", "train")
    assert convert(tmp_path, vocab_file, "out").returncode == 0
    before = contents(tmp_path / "out")
    refused = convert(tmp_path, vocab_file, "out", "--splits=dev", "--strip_column_names")
    assert refused.returncode == 1
    assert "choose another folder or make all splits" in refused.stderr
    assert contents(tmp_path / "out") == before
    again = convert(tmp_path, vocab_file, "out", "--strip_column_names", "--num_shards=1")
    assert again.returncode == 0, again.stderr
    assert read_conversion(tmp_path / "out").features.strip_column_names
    assert "train.tfrecord" not in contents(tmp_path / "out")


def test_files_of_others_are_never_written_over(tmp_path, vocab_file):
    write_splits(tmp_path / "in", "dev")
    write_splits(tmp_path / "out", "dev")
    refused = convert(tmp_path, vocab_file, "out")
    assert refused.returncode == 1
    assert "expected a new folder or one that `mate-tf data` wrote, got" in refused.stderr
    assert len(contents(tmp_path / "out")) == 1


@pytest.mark.medium
def test_a_split_is_divided_by_its_tables(tmp_path, vocab_file):
    source = tmp_path / "in"
    source.mkdir()
    # Every other one has no name but what is in it.
    tables = [
        {"header": ["a"], "rows": [["b"]] * (1 + t)} | ({"id": f"{t}.csv"} if t % 2 else {})
        for t in range(30)
    ]
    questions = [
        {"id": f"{t}-{n}", "question": "a", "answers": ["b"], "table": table}
        for t, table in enumerate(tables)
        for n in range(2)
    ]
    lines = "".join(f"{json.dumps(question)}\n" for question in questions)
    for split in ("train", "test"):
        (source / f"{split}.jsonl").write_text(lines)
    divide = "--divide=train:train=60,calibration=40"
    of_part = {}
    for name, beam in (("one", ()), ("beam", ("--beam_options=",))):
        done = run_task("JSONL", source, tmp_path / name, vocab_file, divide, *beam)
        assert done.returncode == 0, done.stderr
        of_part[name] = {
            part: {q.question_id: t.num_rows for t, q in read_questions(tmp_path / name, part)}
            for part in ("train", "calibration", "test")
        }
    assert of_part["one"] == of_part["beam"]
    parts = of_part["one"]
    assert parts["test"].keys() == {question["id"] for question in questions}
    assert parts["train"].keys() | parts["calibration"].keys() == parts["test"].keys()
    assert parts["train"] and parts["calibration"]
    assert not set(parts["train"].values()) & set(parts["calibration"].values())

    again = run_task("JSONL", source, tmp_path / "one", vocab_file, "--splits=test")
    assert again.returncode == 1
    assert "as for the splits ['calibration', 'train']" in again.stderr
