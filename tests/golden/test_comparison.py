"""The comparison with goldens itself: what differs is found, what is absent is named."""

import numpy as np
import pytest

from tests import golden_tally
from tests.golden import interactions
from tests.golden.comparison import (
    GOLDEN,
    PUBLIC,
    NotSupportedError,
    compare,
    compare_arrays,
)
from tests.golden.heads import (
    counted_examples,
    possible_choices,
    span_prediction,
    supported_config,
)
from tests.golden.test_predictions import OF_CELLS, OF_SPANS
from tests.small import cases

# A batch of three examples; the second has no labelled cell.
LABELS = np.array([[0, 1], [0, 0], [1, 1]], np.int32)


@pytest.fixture
def rows(monkeypatch) -> list[tuple]:
    """What the tally is told, which is none of the run's."""
    found: list[tuple] = []
    for name in ("compared", "left_out"):
        monkeypatch.setattr(golden_tally, name, lambda *row: found.append(row))
    return found


@cases(
    "actual, expected, message",
    ([1.0, 2.0], [1.0, 2.1], r"atol=2\.1e-05\s+family x\s+Mismatched elements: 1 / 2"),
    ([1.0], [1.0, 2.0], r"family x: \(1,\) != \(2,\)"),
    ([1.0, np.nan], [1.0, np.inf], "nan location mismatch"),
    ([-np.inf], [np.inf], "inf"),
    # An infinite value allows no other to differ.
    ([1.0, np.inf], [2.0, np.inf], "atol=2e-05"),
    ([2**62], [2**62 + 1], "family x"),  # equal as floats
)
def test_a_wrong_value_is_found(actual, expected, message):
    with pytest.raises(AssertionError, match=message):
        compare("family", "x", actual, expected, 1e-5)


def test_what_is_equal_is_counted_and_what_is_not_there_named_or_listed_with_its_reason(rows):
    compare("family", "x", [1.0, np.nan, -np.inf], [1.0, np.nan, -np.inf], 0.0)
    expected = {"loss": np.array([1.0, 1000.0]), "probs_0": np.ones(2)}
    for actual in ({"loss": expected["loss"]}, {"loss": expected["loss"], "probs_0": None}):
        with pytest.raises(AssertionError, match="family x probs_0 is not computed here"):
            compare_arrays("family", "x", actual, expected, 1e-5)
    rows.clear()
    left_out, actual = {"probs_.*": "not returned"}, {"loss": [1.0, 1000.001]}
    compare_arrays("family", "x", actual, expected, 1e-5, left_out=left_out)
    compared, other = rows
    assert compared[:2] == ("family", "x loss")
    assert other == ("family", "x probs_0", "not returned")
    lines = golden_tally.lines([("compared", *compared), ("left out", *other)])
    assert "not compared: 1 of family (x probs_0): not returned" in lines
    with pytest.raises(AssertionError, match="x: the golden file has no array to compare"):
        compare_arrays("family", "x", {}, {"probs_0": np.ones(2)}, 0.0, left_out=left_out)


def test_what_is_masked_does_not_count_and_the_rest_does(rows):
    expected = {"loss": np.array([1.0, 10000.0, 3.0])}
    counts = {"loss": np.array([True, False, True])}
    same = {"loss": np.array([1.0, 0.0, 3.0])}
    compare_arrays("family", "x", same, expected, 1e-5, counts=counts)
    # Within 1e-5 of the masked value, which would otherwise hide it.
    other = {"loss": np.array([1.01, 10000.0, 3.0])}
    with pytest.raises(AssertionError, match=r"family x loss\s+Mismatched elements: 1 / 2"):
        compare_arrays("family", "x", other, expected, 1e-5, counts=counts)
    with pytest.raises(AssertionError, match=r"x loss: its mask \(2,\) does not fit \(3,\)"):
        compare_arrays("family", "x", same, expected, 1e-5, counts={"loss": np.ones(2)})
    counts = {"loss": np.zeros(3, bool)}
    compare_arrays("family", "x", other, expected, 1e-5, counts=counts)
    assert rows[-1] == ("family", "x loss", "all of it is masked")


@cases(
    "options, aggregate_mask, selection",
    ({}, None, [True, True, True]),
    ({"mask_examples_without_labels": True}, None, [True, False, True]),
    ({}, [0.0, 1.0, 1.0], [True, False, False]),
    ({"mask_examples_without_labels": True}, [1.0, 0.0, 0.0], [False, False, True]),
)
def test_masks_of_losses_follow_from_labels_and_answers(options, aggregate_mask, selection):
    actual = {} if aggregate_mask is None else {"aggregate_mask": aggregate_mask}
    counted = counted_examples({"label_ids": LABELS}, actual, options)
    assert counted.pop("selection_loss_per_example").tolist() == selection
    computed = [] if aggregate_mask is None else [[bool(value) for value in aggregate_mask]] * 2
    assert [which.tolist() for which in counted.values()] == computed


def test_unknown_options_are_named_and_what_can_be_chosen_must_be_the_same():
    with pytest.raises(AssertionError, match=r"unknown keys of tapas_config: \['new_option'\]"):
        supported_config(PUBLIC, {"tapas_config": {"new_option": 1}}, 128)
    with pytest.raises(NotSupportedError, match="use_gumbel_for_agg=True"):
        supported_config(PUBLIC, {"tapas_config": {"use_gumbel_for_agg": True}}, 128)
    with pytest.raises(NotSupportedError, match=r"unknown arguments \{'new_mode': 1\}"):
        PUBLIC.encoder_config({"new_mode": 1})
    with pytest.raises(AssertionError, match=r"original's options .* got \{'new_option'\}"):
        interactions.feature_config({"max_seq_length": 8, "new_option": True})
    expected = {"column_logits": np.array([[1.0, -9999.0]])}
    found = possible_choices("x", {"column_logits": [[2.0, -10003.0]]}, expected, {})
    assert found["column_logits"].tolist() == [[True, False]]
    with pytest.raises(AssertionError, match="x column_logits: others are possible"):
        possible_choices("x", {"column_logits": [[-9999.0, 2.0]]}, expected, {})


@cases(
    "actual, message",
    ([], "x: 0 examples, not 1"),
    ([{"ids": [1, 2]}], r"x: only one side has \['text'\] in example 0"),
    ([{"ids": [1, 2], "text": [b"a"], "more": [1]}], r"only one side has \['more'\]"),
    ([{"ids": [1], "text": [b"a"]}], r"x ids: lengths \[1\], not \[2\]"),
    ([{"ids": [1, 3], "text": [b"a"]}], r"data x ids\s+Mismatched elements: 1 / 2"),
    ([{"ids": [1, 2], "text": [b"b"]}], "x text: first other at example 0"),
)
def test_examples_must_have_the_same_features(rows, actual, message):
    expected = {
        "ids": {"kind": "int64_list", "values": [1, 2]},
        "text": {"kind": "bytes_list", "values": ["a"]},
    }
    with pytest.raises(AssertionError, match=message):
        interactions.compare_examples("x", actual, [expected])


def test_every_golden_of_the_folders_belongs_to_a_test():
    """Other folders may hold goldens of kinds that nothing here compares."""
    kinds = (interactions.CLASSIFIER, interactions.READER)
    kinds += (interactions.CELL_SELECTION, interactions.MASKED_LM)
    unknown = [
        it.name for it in interactions.conversions() if not it.entry["kind"].startswith(kinds)
    ]
    for name, entry in GOLDEN.load_index("e2e").items():
        unknown += [name] if entry["task"] not in OF_CELLS | OF_SPANS else []
    for name, entry in GOLDEN.load_index("heads").items():
        has_test = name.startswith(("_", "pretrain_", "train_")) or span_prediction(entry)
        unknown += [] if has_test else [name]
    assert not unknown, f"no test compares the goldens {unknown}"


def test_none_of_the_public_numbers_is_absent_and_all_together_are_small():
    files = [path for path in PUBLIC.directory.rglob("*") if path.is_file()]
    assert len(files) == 17 and sum(path.stat().st_size for path in files) < 2**20
