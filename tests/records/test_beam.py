"""Beam makes the records that one process makes, byte for byte, with any number of workers."""

import dataclasses
import re
from pathlib import Path

import numpy as np
import pytest

from experiments.synthesis.creation import Files, write_statements
from experiments.synthesis.statements import StatementsConfig
from mate_tf.datasets.json_lines import write_json_lines
from mate_tf.datasets.tasks import read_split
from mate_tf.features.config import FeatureConfig, MaskedLmConfig, PretrainingConfig
from mate_tf.records.creation import (
    Creation,
    create_pretraining_records,
    create_records,
    write_interactions,
)
from mate_tf.tables.table import Question, Table
from tests.small import assert_same_files, write_records
from tests.test_examples import blocks_of

beam = pytest.importorskip("apache_beam", reason='apache_beam is not installed (the extra "beam")')
pytestmark = pytest.mark.filterwarnings("ignore")  # Beam's own

MASKED = PretrainingConfig(
    MaskedLmConfig(max_seq_length=20, max_predictions=4, min_text_length=2, require_text=False),
    dupe_factor=3,
)

STATEMENTS = StatementsConfig(
    excerpts_per_table=2, operations_per_excerpt=2, max_seq_length=600, max_statement_tokens=200
)


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """Sixty questions; some are too long and some have an answer that is not in the table."""
    folder = tmp_path_factory.mktemp("questions")
    cells = [[[c, str(i + n)] for i, c in enumerate("cde")] for n in range(7)]
    tables = [Table.from_rows(rows, ["a", "b"], f"t{n}") for n, rows in enumerate(cells)]
    asked = (Question("a " * (1 + n % 14), f"q{n}", ("cdek"[n % 4],)) for n in range(60))
    write_json_lines(folder / "train.jsonl", zip(tables * 9, asked, strict=False))
    write_interactions(folder, "train")
    write_json_lines(folder / "dev.jsonl", [])  # so that no part of train becomes one
    return folder


def make_questions(folder, source, vocab_file, beam_options):
    """Makes records of questions, and returns how and what is said of them."""
    creation = Creation(
        task="JSONL",
        input_dir=str(source),
        output_dir=str(folder / "questions"),
        vocab_file=str(vocab_file),
        splits=["train"],
        num_shards=3,
        seed=5,
        beam_options=beam_options,
    )
    return creation, list(create_records(creation, FeatureConfig(max_seq_length=20)))


def make(folder, source, vocab_file, beam_options):
    """Makes records and statements, and returns what is said of them but for single questions."""
    creation, said = make_questions(folder, source, vocab_file, beam_options)
    words = dataclasses.replace(creation, output_dir=str(folder / "words"))
    said += create_pretraining_records(words, MASKED)
    files = Files(
        task="INTERACTIONS",
        input_dir=str(source),
        output_dir=str(folder / "statements"),
        vocab_file=str(vocab_file),
        parts="train=60,dev=40",
        num_shards=2,
        seed=5,
        beam_options=beam_options,
    )
    said += write_statements(files, STATEMENTS, ["synthetic"]).split("\n")
    read = read_split("JSONL", str(folder / "statements"), "train")
    assert len(list(read)) == int(re.search(r"train: (\d+) statements", "\n".join(said))[1]) > 0
    lines = "\n".join(said).split("\n")
    return sorted(line for line in lines if not line.startswith("    "))


@pytest.fixture(scope="module")
def expected(tmp_path_factory, source, vocab_file):
    folder = tmp_path_factory.mktemp("expected")
    said = make(folder, source, vocab_file, None)
    assert len(list((folder / "questions").iterdir())) == 11
    names = [f"{part}-0000{n}-of-00002.jsonl" for part in ("dev", "train") for n in range(2)]
    assert sorted(path.name for path in (folder / "statements").iterdir()) == names
    expected = ("answer not found", "too long", "a copy of another")
    assert all(reason in "\n".join(said) for reason in expected)
    return folder, said


def test_two_threads_write_the_same(tmp_path, source, vocab_file, expected):
    folder, said = expected
    options = ("--direct_num_workers=2", "--direct_running_mode=multi_threading")
    assert make(tmp_path, source, vocab_file, options) == said
    for kind in ("questions", "words", "statements"):
        assert_same_files(tmp_path / kind, folder / kind)


def test_two_processes_write_the_same(tmp_path, source, vocab_file, expected):
    options = ("--direct_num_workers=2", "--direct_running_mode=multi_processing")
    folder, expected_said = expected
    _, said = make_questions(tmp_path, source, vocab_file, options)
    lines = "\n".join(said).split("\n")
    assert {line for line in lines if not line.startswith("    ")} <= set(expected_said)
    assert_same_files(tmp_path / "questions", folder / "questions")


def test_records_are_opened_as_the_guide_says(tmp_path, monkeypatch):
    from apache_beam.testing.util import assert_that, equal_to

    monkeypatch.chdir(tmp_path)
    write_records(Path("out/records/train.tfrecord"), [{"a": np.array([1])}, {"a": np.array([2])}])
    names: dict = {}
    for block in blocks_of("docs/training.md"):
        exec(compile(block, "docs/training.md", "exec"), names)
    found = sorted(names["examples"].as_numpy_iterator())
    assert len(found) == 2
    with beam.Pipeline() as pipeline:
        read = pipeline | names["read"] | beam.combiners.ToList()
        assert_that(read | beam.Map(sorted), equal_to([found]))
