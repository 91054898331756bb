"""Every question of WikiTableQuestions' train and dev splits, from the official files to features.

Read, supervised and converted as the authors' release does it: the supervision, what becomes of
each conversion, and a digest of its features are those of the release.
"""

import hashlib
import re
from collections import defaultdict
from typing import Any

import numpy as np
import pytest

from mate_tf.datasets.supervision import SupervisionError, supervise
from mate_tf.datasets.wtq import read_wtq
from mate_tf.features.builder import FeatureBuilder
from mate_tf.features.config import ConversionError, FeatureConfig
from mate_tf.features.wordpiece import Wordpiece
from tests import golden_tally
from tests.data_folders import WTQ
from tests.golden.comparison import GOLDEN, GOLDEN_REAL, compare
from tests.golden.interactions import coordinates, load, of_question, to_table
from tests.small import cases

FAMILY = "wtq"
SAMPLE = 300  # questions of each split; all of them take minutes
CONVERSIONS = ("plain512", "drop512", "plain2048", "drop2048")
OF_POSITIONS = ("column_ids", "input_ids", "input_mask", "row_ids", "segment_ids")
INVALID = "Invalid answer"
REASONS = {
    "too many rows": "Too many rows",
    "too many columns": "Too many columns",
    "too long": "Sequence too long",
    "answer cut off": "Couldn't find all answers",
}
# What the release checks before it asks whether there is a valid answer.
CHECKED_BEFORE = {"Too many rows", "Too many columns"}


def digest(features, names) -> int:
    """The first 48 bits of a hash of some features, as the golden folder's README defines it."""
    hashed = hashlib.sha256()
    for name in sorted(names):
        values = features[name]
        hashed.update(name.encode())
        if values.dtype == object:
            hashed.update(b"\0".join(values))
        elif values.dtype.kind == "f":
            bits = values.astype("<f4").view("<u4")
            hashed.update(np.where(np.isnan(values), 0x7FC00000, bits).astype("<u4").tobytes())
        else:
            hashed.update(values.astype("<i8").tobytes())
    return int(hashed.hexdigest()[:12], 16)


def builders(wordpiece) -> dict[str, FeatureBuilder]:
    found = {}
    for name in CONVERSIONS:
        limits: dict[str, Any] = {
            "max_seq_length": int(name.lstrip("plaindro")),
            "max_column_id": 512,
        }
        rows: dict[str, Any] = {"max_row_id": 512, "drop_rows_to_fit": name.startswith("drop")}
        config = FeatureConfig(**limits, **rows, trim_cells=True, original_conversion=True)
        found[name] = FeatureBuilder(wordpiece, config)
    return found


@pytest.mark.medium
@pytest.mark.parametrize("split", ["dev", "train"])
@cases("at_most", SAMPLE, pytest.param(None, marks=pytest.mark.slow), ids=["sample", "all"])
def test_questions_are_converted_as_by_the_original(split, at_most):
    outcome_file, vocab_file = GOLDEN_REAL.require(f"wtq_outcomes_{split}.json.gz", "vocab.txt")
    if not WTQ.is_dir():
        golden_tally.absent(WTQ)
    outcomes = load(outcome_file)
    wordpiece = Wordpiece(vocab_file)
    unlimited = FeatureBuilder(wordpiece, FeatureConfig(max_seq_length=None, max_column_id=512))
    by_conversion = builders(wordpiece)
    numbers = defaultdict(lambda: ([], []))  # by name: the project's and the original's
    reasons = defaultdict(lambda: ([], []))

    def keep(name: str, actual, expected, of=numbers) -> None:
        for values, value in zip(of[name], (actual, expected), strict=True):
            values.append(value)

    for table, asked in read_wtq(WTQ, split, original=True):
        expected = outcomes.get(asked.question_id)
        if expected is None:
            continue
        try:
            question = supervise(table, asked, strict=split == "train", original=True)
            num_cells = len(question.answer_coordinates)
        except SupervisionError:
            question, num_cells = None, len(asked.answers)
        has_number = question is not None and question.answer_number is not None
        keep("table ids", table.table_id, expected["table"], reasons)
        keep("valid", question is not None, expected["valid"])
        keep("answer cells", num_cells, expected["coords"])
        keep("answer numbers", has_number, expected["has_float"])
        keep("lengths", unlimited.build(table, asked).report.num_tokens, expected["len"])
        for name, builder in by_conversion.items():
            reason, digests = "ok", []
            try:
                features = builder.build(table, question or asked).features
                digests = [digest(features, OF_POSITIONS), digest(features, features)]
            except ConversionError as error:
                reason = REASONS[error.reason]
            if question is None:
                if name.startswith("plain"):
                    unsupervised = f"infer{name.removeprefix('plain')}"
                    keep(unsupervised, reason, expected[unsupervised], reasons)
                reason = reason if reason in CHECKED_BEFORE else INVALID
                digests = []
            keep(f"{name} outcomes", reason, expected[name][0], reasons)
            keep(f"{name} digests", digests, [int(d, 16) for d in expected[name][1:]], reasons)
        if len(numbers["valid"][0]) == at_most:
            break
    compared = len(numbers["valid"][0])
    assert compared == (at_most or len(outcomes))
    for name, (actual, wanted) in reasons.items():
        different = [pair for pair in zip(actual, wanted, strict=True) if pair[0] != pair[1]]
        assert not different, f"{name}: {len(different)}, first {different[:3]}"
        compare(FAMILY, f"{split} {name}", len(actual) - len(different), len(wanted), 0)
    for name, (actual, wanted) in numbers.items():
        compare(FAMILY, f"{split} {name}", actual, wanted, 0.0)


@cases(
    "golden, split, release, interactions, strict",
    (GOLDEN_REAL, "dev", "wtq_dev150_input", "wtq_dev150_interactions", False),
    (GOLDEN, "training", "data/wtq_mini_input", "data/wtq_interactions_train", True),
)
def test_official_files_become_the_interactions(golden, split, release, interactions, strict):
    directory, file = golden.require(release, f"{interactions}.json.gz")
    expected = {item["id"]: item for item in load(file)}
    read = 0
    for table, question in read_wtq(directory, split, original=True):
        interaction = of_question(expected, question.question_id.removesuffix("_0"))
        (asked,) = interaction["questions"]
        answer = asked["answer"]
        assert table == to_table(interaction["table"])
        assert (question.question_id, question.text) == (asked["id"], asked["original_text"])
        assert question.answers == tuple(answer["answer_texts"])
        read += 1
        if not answer.get("is_valid", True):
            with pytest.raises(SupervisionError, match=re.escape(question.question_id)):
                supervise(table, question, strict, original=True)
            continue
        question = supervise(table, question, strict, original=True)
        assert question.answer_coordinates == coordinates(asked)
        assert question.answer_number == answer.get("float_value")
    compare(FAMILY, interactions, read, len(expected), 0.0)
