"""Splits whose writing is killed and started again."""

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

from mate_tf.features.config import FeatureConfig
from mate_tf.records.conversion import Outcome
from mate_tf.records.conversion_file import Conversion
from mate_tf.records.splits import prepare_folder, split_files, split_writer
from mate_tf.tables.table import Question, Table
from tests import forked

SPLITS = ("train", "dev")
CONVERSION = Conversion("JSONL", FeatureConfig(), None, "0" * 64)
TABLE = Table.from_rows([["a", "b"], ["1", "2"]])


def outcomes(first_answer: int) -> Iterator[Outcome]:
    choice = np.random.default_rng(first_answer)
    for number in range(first_answer, first_answer + 100):
        features = {"input_ids": choice.integers(0, 30_000, 64)}
        yield Outcome(TABLE, Question("a", f"q{number}", (str(number),)), features)


def convert(directory: pathlib.Path, num_shards: int | None, first_answer: int = 0) -> None:
    prepare_folder(directory, CONVERSION, SPLITS)
    for split in SPLITS:
        with split_writer(str(directory), split, num_shards) as write:
            for outcome in outcomes(first_answer):
                write(outcome)


def contents(directory: pathlib.Path) -> dict[str, bytes]:
    files = directory.iterdir() if directory.exists() else []
    return {file.name: file.read_bytes() for file in files}


def whole_splits(directory: pathlib.Path) -> Iterator[str]:
    for split in SPLITS:
        try:
            split_files(directory, split)
        except FileNotFoundError:
            continue
        yield split


# The calls that change files.
CHANGES = (
    (tf.io.gfile, "rename"),
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
def test_killed_at_any_change_it_leaves_whole_splits_and_then_ends_with_the_same_bytes(
    tmp_path, num_shards
):
    old, new, output, log = (tmp_path / name for name in ("old", "new", "output", "log"))
    forked.finish(forked.start(convert, old, num_shards, 0))
    shutil.copytree(old, new)
    forked.finish(forked.start(convert_killed, new, num_shards, None, log))
    names = log.read_text().split()
    renames_and_removals = [n for n, name in enumerate(names) if name != "write"]
    assert {names[n] for n in renames_and_removals} == {"rename", "remove"}
    choice = random.Random(5)
    moments = choice.sample(renames_and_removals, 6) + choice.sample(range(len(names)), 2)
    shutil.copytree(old, output)
    for moment in moments:
        killed = forked.start(convert_killed, output, num_shards, moment, log)
        killed.join()
        assert killed.exitcode == -signal.SIGKILL
        left = {
            name: text
            for name, text in contents(output).items()
            if not name.endswith(".unfinished")
        }
        for split in whole_splits(output):
            of_split = {item for item in left.items() if item[0].startswith(split)}
            assert any(of_split <= contents(whole).items() for whole in (old, new))
        forked.finish(forked.start(convert, output, num_shards, 1))
        assert contents(output) == contents(new)
