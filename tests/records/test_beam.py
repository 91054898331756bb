import functools
from pathlib import Path

import numpy as np
import pytest

from mate_tf.datasets.json_lines import read_json_lines, write_json_lines
from mate_tf.datasets.tasks import TASKS
from mate_tf.features.config import FeatureConfig
from mate_tf.records.beam import convert_split, make_builder
from mate_tf.records.conversion import Summary, convert_all
from mate_tf.records.records import write_records
from mate_tf.records.splits import split_writer
from mate_tf.tables.table import Question, Table
from tests.small import assert_same_files, cases
from tests.test_examples import blocks_of

beam = pytest.importorskip("apache_beam", reason='apache_beam is not installed (the extra "beam")')
pytestmark = pytest.mark.filterwarnings("ignore")  # Beam's own

CONFIG = FeatureConfig(max_seq_length=20)


@pytest.fixture(scope="module")
def questions(tmp_path_factory):
    """Sixty, of which some are too long and some have an answer that is not in the table."""
    path = tmp_path_factory.mktemp("questions") / "train.jsonl"
    cells = [[[c, str(i + n)] for i, c in enumerate("cde")] for n in range(7)]
    tables = [Table.from_rows(rows, ["a", "b"], f"t{n}") for n, rows in enumerate(cells)]
    asked = (Question("a " * (1 + n % 14), f"q{n}", ("cdek"[n % 4],)) for n in range(60))
    write_json_lines(path, zip(tables * 9, asked, strict=False))
    return path


@pytest.fixture(scope="module")
def expected(tmp_path_factory, questions, vocab_file):
    """The shards of the path without Beam, and its counters."""
    directory = tmp_path_factory.mktemp("expected")
    builder, summary = make_builder(str(vocab_file), CONFIG, None), Summary()
    with split_writer(str(directory), "train", 3, 5) as write:
        outcomes = convert_all(TASKS["JSONL"], builder, read_json_lines(questions), True)
        for outcome in outcomes:
            summary.add(outcome)
            write(outcome)
    assert {"left out: too long", "left out: answer not found", "kept"} <= set(summary.counts)
    return directory, summary.counts


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


@cases(
    "options",
    ("--direct_num_workers=2", "--direct_running_mode=multi_threading"),
    ("--direct_num_workers=2", "--direct_running_mode=multi_processing"),
    ids=["2 threads", "2 processes"],
)
def test_any_number_of_workers_writes_the_same(tmp_path, questions, vocab_file, expected, options):
    directory, counts = expected
    read = functools.partial(read_json_lines, questions)
    make = functools.partial(make_builder, str(vocab_file), CONFIG, None)
    found = convert_split(
        TASKS["JSONL"], read, make, str(tmp_path), "train", num_shards=3, seed=5, options=options
    )
    assert found == counts
    assert len(list(directory.iterdir())) == 9
    assert_same_files(tmp_path, directory)
