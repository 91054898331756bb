"""Splits whose writing is killed and started again."""

import itertools
import pathlib
import random
import time
from collections.abc import Iterator

import numpy as np
import pytest

from mate_tf.features.config import FeatureConfig
from mate_tf.records.conversion import Outcome
from mate_tf.records.conversion_file import Conversion
from mate_tf.records.splits import prepare_folder, split_files, split_writer
from mate_tf.tables.table import Question, Table
from tests import forked

SPLITS = ("train", "dev")
NUM_KILLS = 10
CONVERSION = Conversion("JSONL", FeatureConfig(), None, "0" * 64)
TABLE = Table.from_rows([["a", "b"], ["1", "2"]])


def outcomes(first_answer: int) -> Iterator[Outcome]:
    choice = np.random.default_rng(first_answer)
    for number in range(first_answer, first_answer + 1000):
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


@pytest.mark.parametrize("num_shards", [None, 3])
def test_killed_at_any_moment_it_ends_with_the_same_bytes(tmp_path, num_shards):
    of_version = list[dict[str, bytes]]()
    for version in (0, 1):
        started = time.monotonic()
        directory = tmp_path / str(version)
        forked.finish(forked.start(convert, directory, num_shards, version))
        seconds = time.monotonic() - started
        of_version.append(contents(directory))

    output = tmp_path / "killed"
    moments = random.Random(5)
    for version, _ in itertools.product((0, 1), range(NUM_KILLS // 2)):
        process = forked.start(convert, output, num_shards, version)
        forked.kill(process, moments.uniform(0.0, seconds))
        left = contents(output)
        for split in whole_splits(output):
            of_split = {
                name: text
                for name, text in left.items()
                if name.startswith(split) and not name.endswith(".unfinished")
            }
            assert any(of_split.items() <= whole.items() for whole in of_version)
    forked.finish(forked.start(convert, output, num_shards, 1))
    assert contents(output) == of_version[1]
