import pathlib
import shutil

import pytest

from mate_tf.datasets.tasks import TASKS
from mate_tf.features.builder import FeatureBuilder
from mate_tf.features.config import FeatureConfig
from mate_tf.records.batches import read_records
from mate_tf.records.conversion import Outcome, convert_all
from mate_tf.records.splits import (
    LEFT_OUT,
    encode,
    place,
    read_questions,
    split_files,
    split_writer,
    write_shard,
)
from mate_tf.tables.table import Question, Table
from tests.small import assert_same_files

TABLE = Table.from_rows([["a", "b"], ["1", "2"]])


@pytest.fixture(scope="module")
def outcomes(wordpiece) -> list[Outcome]:
    """Twenty, of which the last five have no features: they are too long."""
    builder = FeatureBuilder(wordpiece, FeatureConfig(max_seq_length=32))
    questions = [Question("a " * (1 if n < 15 else 50), f"q{n}", ("1",)) for n in range(20)]
    pairs = [(TABLE, question) for question in questions]
    return list(convert_all(TASKS["WTQ"], builder, pairs, is_training=True))


def write(directory, outcomes, num_shards=None, has_tables=True):
    with split_writer(str(directory), "dev", num_shards, 7, has_tables) as add:
        for outcome in outcomes:
            add(outcome)


def names_in(directory: pathlib.Path) -> list[str]:
    return sorted(file.name for file in directory.iterdir())


def record_ids(files) -> list[str]:
    records = read_records(files).as_numpy_iterator()
    return [record["question_id"][0].decode() for record in records]


def test_one_file_has_the_order_of_the_questions_and_all_of_them(tmp_path, outcomes):
    write(tmp_path, outcomes)
    assert names_in(tmp_path) == ["dev.jsonl", "dev.left_out.jsonl", "dev.tfrecord"]
    assert record_ids(split_files(tmp_path, "dev")) == [f"q{n}" for n in range(15)]
    read = list(read_questions(tmp_path, "dev"))
    assert read == [(TABLE, outcome.question) for outcome in outcomes]
    assert read[0][1].answer_coordinates == ((0, 0),)


@pytest.mark.parametrize("num_shards", [1, 3, 40])
def test_shards_hold_every_question_once_in_an_order_of_their_own(tmp_path, outcomes, num_shards):
    write(tmp_path, outcomes, num_shards)
    names = [f"dev-{n:05d}-of-{num_shards:05d}" for n in range(num_shards)]
    places = [place(f"q{n}", 7, num_shards)[0] for n in range(15, 20)]
    assert set(names_in(tmp_path)) == {
        *(name + suffix for name in names for suffix in (".jsonl", ".tfrecord")),
        *(names[shard] + ".left_out.jsonl" for shard in places),
    }
    files = split_files(tmp_path, "dev")
    assert files == [str(tmp_path / f"{name}.tfrecord") for name in names]
    assert sorted(record_ids(files)) == sorted(f"q{n}" for n in range(15))
    read = {question.question_id for _, question in read_questions(tmp_path, "dev")}
    assert read == {f"q{n}" for n in range(20)}


def test_bytes_of_shards_depend_neither_on_the_order_of_reading_nor_on_other_shards(
    tmp_path, outcomes
):
    write(tmp_path / "a", outcomes, 3)
    write(tmp_path / "b", outcomes[::-1], 3)
    placed = sorted((place(o.question.question_id, 7, 3), encode(o)) for o in outcomes)
    for n in range(3):
        of_shard = [(order, parts) for (shard, order), parts in placed if shard == n]
        write_shard(str(tmp_path / "c"), "dev", of_shard, n, 3)
    for other in ("b", "c"):
        assert_same_files(tmp_path / other, tmp_path / "a")


@pytest.mark.parametrize("num_shards", [None, 3])
def test_an_id_given_twice_is_refused_and_leaves_nothing(tmp_path, outcomes, num_shards):
    with pytest.raises(ValueError, match=r"a different id for each question of the split .*q3"):
        write(tmp_path, [*outcomes, outcomes[3]], num_shards)
    assert not any("unfinished" in name for name in names_in(tmp_path))


def test_places_follow_from_the_seed_and_spread_evenly():
    shards = [place(f"nt-{n}", 1, 8)[0] for n in range(8000)]
    # A fair share is 1000 of 8000, with a standard deviation of 30.
    assert all(850 < shards.count(shard) < 1150 for shard in range(8))
    assert place("nt-1", 1, 8) == place("nt-1", 1, 8) != place("nt-1", 2, 8)


def test_a_new_conversion_takes_the_place_of_the_old_one(tmp_path, outcomes):
    for num_shards in (2, 3, None, 2):
        write(tmp_path, outcomes, num_shards)
        left_out = [name for name in names_in(tmp_path) if name.endswith(LEFT_OUT)]
        assert left_out and len(left_out) <= (num_shards or 1)
        assert len(names_in(tmp_path)) - len(left_out) == 2 * (num_shards or 1)
        split_files(tmp_path, "dev")
    write(tmp_path, outcomes, 2, has_tables=False)  # sentences have no file of questions
    suffixes = {name.partition(".")[2] for name in names_in(tmp_path)}
    assert suffixes == {"tfrecord", "left_out.jsonl"}


def test_a_failure_leaves_the_old_files(tmp_path, outcomes):
    write(tmp_path, outcomes)
    shutil.copytree(tmp_path, tmp_path.with_name("before"))
    for num_shards in (None, 2):
        with (
            pytest.raises(RuntimeError, match="no more"),
            split_writer(str(tmp_path), "dev", num_shards) as add,
        ):
            add(outcomes[0])
            raise RuntimeError("no more")
        assert_same_files(tmp_path, tmp_path.with_name("before"))


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ("", "expected dev.tfrecord in .*mate-tf data"),
        ("train dev-x", "expected dev.tfrecord in"),
        (
            "dev-00000-of-00003 dev-00002-of-00003",
            "3 shards, got 2 .*'dev'.*missing .*dev-00001-of",
        ),
        ("dev dev-00000-of-00001", "one set of files .*'dev'"),
        ("dev-00000-of-00001 dev-00000-of-00002", "'dev', got 2"),
    ],
)
def test_a_split_that_is_not_whole_is_refused(tmp_path, names, message):
    for name in names.split():
        (tmp_path / f"{name}.tfrecord").touch()
    with pytest.raises((FileNotFoundError, ValueError), match=message):
        split_files(tmp_path, "dev")


def test_shards_without_records_are_read_over(tmp_path, outcomes):
    write(tmp_path, outcomes[:1], 3)
    assert record_ids(split_files(tmp_path, "dev")) == ["q0"]
