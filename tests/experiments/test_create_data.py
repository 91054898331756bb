import json
import pathlib
import re
import subprocess
import sys

import pytest

from mate_tf.tables.datasets.json_lines import read_json_lines
from mate_tf.tables.records import read_records

ROOT = pathlib.Path(__file__).resolve().parents[2]
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
    return subprocess.run(
        [sys.executable, "-m", "experiments.create_data", *flags],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
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
    done = run(
        "--task=JSONL",
        f"--input_dir={tmp_path}",
        f"--output_dir={out}",
        f"--vocab_file={vocab_file}",
        "--max_seq_length=24",
    )
    assert done.returncode == 0, done.stderr
    assert "train: 2 of 5 questions kept" in done.stdout
    assert "left out: 1 ambiguous answer" in done.stdout
    assert "left out: 1 answer not found" in done.stdout
    assert "left out: 1 too long" in done.stdout
    assert "dev: 4 of 5 questions kept" in done.stdout
    assert "kept with no labels (answer not found): 1" in done.stdout
    assert (out / "vocab.txt").read_text() == vocab_file.read_text()

    names = [q["id"] for q in QUESTIONS]
    for split, kept in {"train": names[:2], "dev": names[:4]}.items():
        records = list(read_records(out / f"{split}.tfrecord").as_numpy_iterator())
        assert [record["question_id"][0].decode() for record in records] == kept
        pairs = list(read_json_lines(out / f"{split}.jsonl"))
        assert [pair[1].question_id for pair in pairs] == names
        assert pairs[0][1].answer_coordinates == ((0, 0),)
        assert pairs[1][1].answer_number == 17


@pytest.mark.parametrize(
    ("task", "vocabulary", "error"),
    [
        ("JSONL", "absent.txt", "no vocabulary file .*absent.txt"),
        ("JSONL", "bert_vocab.txt", "no .jsonl file in"),
        ("WTQ", "bert_vocab.txt", "random-split-1-train.tsv"),
    ],
)
def test_missing_input_is_named_in_one_line(tmp_path, vocab_file, task, vocabulary, error):
    done = run(
        f"--task={task}",
        f"--input_dir={tmp_path}",
        f"--output_dir={tmp_path / 'out'}",
        f"--vocab_file={tmp_path / vocabulary}",
    )
    assert done.returncode == 1
    last_line = done.stderr.strip().split("\n")[-1]
    assert last_line.startswith("create_data.py: ")
    assert re.search(error, last_line)
    assert "Traceback" not in done.stderr


def test_the_input_is_never_written_over(tmp_path, vocab_file):
    (tmp_path / "train.jsonl").write_text(json.dumps(QUESTIONS[0]) + "\n")
    done = run(
        "--task=JSONL",
        f"--input_dir={tmp_path}",
        f"--output_dir={tmp_path}",
        f"--vocab_file={vocab_file}",
    )
    assert done.returncode == 1
    assert "expected another folder than the input's" in done.stderr
    assert (tmp_path / "train.jsonl").read_text() == json.dumps(QUESTIONS[0]) + "\n"
