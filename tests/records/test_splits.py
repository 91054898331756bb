import contextlib
import os
import pathlib
import random
import shutil
import signal
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from mate_tf.datasets.tasks import TASKS
from mate_tf.features.builder import FeatureBuilder
from mate_tf.features.config import FeatureConfig
from mate_tf.records.batches import read_records
from mate_tf.records.conversion import Outcome, convert_all
from mate_tf.records.conversion_file import Conversion
from mate_tf.records.splits import (
    LEFT_OUT,
    RECORDS,
    SUFFIXES,
    encode,
    place,
    prepare_folder,
    read_questions,
    split_files,
    split_writer,
    write_shard,
)
from mate_tf.tables.table import Question, Table
from tests import forked
from tests.small import assert_same_files, cases, stored_cases

TABLE = Table.from_rows([["a", "b"], ["1", "2"]])


@pytest.fixture(scope="module")
def outcomes(wordpiece) -> list[Outcome]:
    """Twenty, of which the last five have no features: they are too long."""
    builder = FeatureBuilder(wordpiece, FeatureConfig(max_seq_length=32))
    questions = [Question("a " * (1 if n < 15 else 50), f"q{n}", ("1",)) for n in range(20)]
    pairs = [(TABLE, question) for question in questions]
    return list(convert_all(TASKS["WTQ"], builder, pairs, is_training=True))


def write(directory, outcomes, num_shards=None, suffixes=SUFFIXES):
    with split_writer(str(directory), "dev", num_shards, 7, suffixes) as add:
        for outcome in outcomes:
            add(outcome)


def names_in(directory: pathlib.Path) -> list[str]:
    return sorted(file.name for file in directory.iterdir())


def record_ids(files) -> list[str]:
    records = read_records(files).as_numpy_iterator()
    return [record["question_id"][0].decode() for record in records]


def test_one_file_has_all_questions_in_order_and_empty_shards_are_skipped(tmp_path, outcomes):
    write(tmp_path, outcomes)
    assert names_in(tmp_path) == ["dev.jsonl", "dev.left_out.jsonl", "dev.tfrecord"]
    assert record_ids(split_files(tmp_path, "dev")) == [f"q{n}" for n in range(15)]
    read = list(read_questions(tmp_path, "dev"))
    assert read == [(TABLE, outcome.question) for outcome in outcomes]
    assert read[0][1].answer_coordinates == ((0, 0),)
    write(tmp_path, outcomes[:1], 3)
    assert record_ids(split_files(tmp_path, "dev")) == ["q0"]


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


def test_bytes_of_shards_depend_neither_on_the_order_nor_on_other_shards(tmp_path, outcomes):
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
    sentences = tmp_path.with_name("sentences")  # they have no file of questions
    write(sentences, outcomes, 2, [RECORDS, LEFT_OUT])
    suffixes = {name.partition(".")[2] for name in names_in(sentences)}
    assert suffixes == {"tfrecord", "left_out.jsonl"}


def test_a_failure_leaves_the_old_files(tmp_path, outcomes):
    write(tmp_path, outcomes)
    shutil.copytree(tmp_path, tmp_path.with_name("before"))
    for num_shards in (None, 2):
        writer = split_writer(str(tmp_path), "dev", num_shards)
        with pytest.raises(RuntimeError, match="no more"), writer as add:
            add(outcomes[0])
            raise RuntimeError("no more")
        assert_same_files(tmp_path, tmp_path.with_name("before"))


@cases(
    "names, message",
    ("", "expected dev.tfrecord in .*mate-tf data"),
    ("train developed", "expected dev.tfrecord in"),
    ("dev-00000-of-00003 dev-00002-of-00003", "3 shards, got 2 .*'dev'.*missing .*dev-00001-of"),
    ("dev dev-00000-of-00001", "one set of files .*'dev'"),
    ("dev-00000-of-00001 dev-00000-of-00002", "'dev', got 2"),
)
def test_a_split_that_is_not_whole_is_refused(tmp_path, names, message):
    for name in names.split():
        (tmp_path / f"{name}.tfrecord").touch()
    with pytest.raises((FileNotFoundError, ValueError), match=message):
        split_files(tmp_path, "dev")


@stored_cases("split, names, expected")
def test_records_of_the_release_are_found_by_its_names(tmp_path, split, names, expected):
    for name in names.split():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    if expected is None:
        with pytest.raises((FileNotFoundError, ValueError), match="expected "):
            split_files(tmp_path, split)
        return
    found = split_files(tmp_path, split)
    for file, begin in zip(found, expected.split(), strict=True):
        assert file.startswith(str(tmp_path / begin))


SPLITS = ("train", "dev")
CONVERSION = Conversion("JSONL", FeatureConfig(), None, "0" * 64)


def numbered(first_answer: int) -> Iterator[Outcome]:
    choice = np.random.default_rng(first_answer)
    for number in range(first_answer, first_answer + 40):
        features = {"input_ids": choice.integers(0, 30_000, 64)}
        yield Outcome(TABLE, Question("a", f"q{number}", (str(number),)), features)


def convert(directory: pathlib.Path, num_shards: int | None, first_answer: int = 0) -> None:
    prepare_folder(directory, CONVERSION, SPLITS, vocab_file=__file__)
    for split in SPLITS:
        with split_writer(str(directory), split, num_shards) as write:
            for outcome in numbered(first_answer):
                write(outcome)


def contents(directory: pathlib.Path) -> dict[str, bytes]:
    files = directory.iterdir() if directory.exists() else []
    return {file.name: file.read_bytes() for file in files}


def whole_splits(directory: pathlib.Path) -> Iterator[str]:
    for split in SPLITS:
        with contextlib.suppress(FileNotFoundError):
            split_files(directory, split)
            yield split


# The calls that change files.
CHANGES = (
    (pathlib.Path, "replace"),
    (tf.io.gfile, "remove"),
    (tf.io.gfile.GFile, "write"),
    (tf.io.TFRecordWriter, "write"),
)


def convert_killed(
    directory: pathlib.Path, num_shards: int | None, kill_at: int | None, log: pathlib.Path
) -> None:
    """Converts and logs each change of a file; dies before the one with the number `kill_at`."""
    names = list[str]()

    def counted(name: str, change: Callable[..., Any]) -> Callable[..., Any]:
        def function(*args, **kwargs):
            if len(names) == kill_at:
                os.kill(os.getpid(), signal.SIGKILL)
            names.append(name)
            return change(*args, **kwargs)

        return function

    for owner, name in CHANGES:
        setattr(owner, name, counted(name, getattr(owner, name)))
    convert(directory, num_shards, 1)
    log.write_text(" ".join(names))


@pytest.mark.parametrize("num_shards", [None, 3])
def test_killed_at_any_change_it_leaves_whole_splits_and_ends_with_the_same(tmp_path, num_shards):
    old, new, output, log = (tmp_path / name for name in ("old", "new", "output", "log"))
    forked.finish(forked.start(convert, old, num_shards, 0))
    shutil.copytree(old, new)
    forked.finish(forked.start(convert_killed, new, num_shards, None, log))
    names = log.read_text().split()
    replaced_or_removed = [n for n, name in enumerate(names) if name != "write"]
    assert {names[n] for n in replaced_or_removed} == {"replace", "remove"}
    choice = random.Random(5)
    moments = choice.sample(replaced_or_removed, 4) + choice.sample(range(len(names)), 1)
    shutil.copytree(old, output)
    for moment in moments:
        killed = forked.start(convert_killed, output, num_shards, moment, log)
        killed.join()
        assert killed.exitcode == -signal.SIGKILL
        left = {item for item in contents(output).items() if not item[0].endswith(".unfinished")}
        for split in whole_splits(output):
            of_split = {item for item in left if item[0].startswith(split)}
            assert any(of_split <= contents(whole).items() for whole in (old, new))
        forked.finish(forked.start(convert, output, num_shards, 1))
        assert contents(output) == contents(new)
