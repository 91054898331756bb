"""The comparison with goldens itself: what differs is found, what is absent is named."""

import numpy as np
import pytest

from tests.golden import interactions
from tests.golden.comparison import Golden
from tests.golden.test_heads import (
    counted_examples,
    possible_choices,
    span_prediction,
    supported_config,
)
from tests.golden.test_predictions import TASKS
from tests.golden_tally import Tally
from tests.small import cases

INFINITE, NAN = np.inf, np.nan
# A batch of three examples; the second has no labelled cell.
LABELS = np.array([[0, 1], [0, 0], [1, 1]], np.int32)


@pytest.fixture
def folder(tmp_path) -> Golden:
    return Golden(tmp_path, Tally())


@cases(
    "actual, expected, message",
    ([1.0, 2.0], [1.0, 2.1], r"x: largest difference 0\.1, allowed 2\.1e-05"),
    ([1.0], [1.0, 2.0], r"x: \(1,\) != \(2,\)"),
    ([1.0, 2.0], [1.0, NAN], r"x: NaN or infinite at other places, first at \(1,\)"),
    ([1.0, 2.0], [1.0, INFINITE], "NaN or infinite at other places"),
    ([1.0, NAN], [1.0, INFINITE], "NaN and infinity are exchanged"),
    ([-INFINITE], [INFINITE], "NaN and infinity are exchanged"),
    # An infinite value allows no other to differ.
    ([1.0, INFINITE], [2.0, INFINITE], "largest difference 1, allowed 2e-05"),
    # Equal as floats.
    ([2**62], [2**62 + 1], "largest difference 1, allowed"),
)
def test_a_wrong_value_is_found(folder, actual, expected, message):
    tolerance = 0.0 if isinstance(actual[0], int) else 1e-5
    with pytest.raises(AssertionError, match=message):
        folder.compare("family", "x", actual, expected, tolerance)


def test_what_is_equal_is_counted_and_what_is_not_there_named_or_listed_with_its_reason(folder):
    folder.compare("family", "x", [1.0, NAN, -INFINITE], [1.0, NAN, -INFINITE], 0.0)
    expected = {"loss": np.array([1.0, 1000.0]), "probs_0": np.ones(2)}
    for actual in ({"loss": np.ones(2)}, {"loss": np.ones(2), "probs_0": None}):
        with pytest.raises(AssertionError, match=r"x: the golden file has \['probs_0'\], which"):
            folder.compare_arrays("family", "x", actual, expected, 1e-5)
    left_out, actual = {"probs_.*": "not returned"}, {"loss": [1.0, 1000.001]}
    folder.compare_arrays("family", "x", actual, expected, 1e-5, left_out=left_out)
    assert [row[0] for row in folder.tally.compared["family"]] == ["x", "x loss"]
    assert folder.tally.left_out == [("family", "x probs_0", "not returned")]
    assert "not compared: 1 of family (x probs_0): not returned" in folder.tally.lines()
    with pytest.raises(AssertionError, match="x: the golden file has no array to compare"):
        folder.compare_arrays("family", "x", {}, {"probs_0": np.ones(2)}, 0.0, left_out=left_out)


def test_what_is_masked_does_not_count_and_the_rest_does(folder):
    expected = {"loss": np.array([1.0, 10000.0, 3.0])}
    counts = {"loss": np.array([True, False, True])}
    same = {"loss": np.array([1.0, 0.0, 3.0])}
    folder.compare_arrays("family", "x", same, expected, 1e-5, counts=counts)
    # Within 1e-5 of the masked value, which would otherwise hide it.
    other = {"loss": np.array([1.01, 10000.0, 3.0])}
    with pytest.raises(AssertionError, match=r"x loss: largest difference 0\.01"):
        folder.compare_arrays("family", "x", other, expected, 1e-5, counts=counts)
    with pytest.raises(AssertionError, match=r"x loss: its mask \(2,\) does not fit \(3,\)"):
        folder.compare_arrays("family", "x", same, expected, 1e-5, counts={"loss": np.ones(2)})
    counts = {"loss": np.zeros(3, bool)}
    folder.compare_arrays("family", "x", other, expected, 1e-5, counts=counts)
    assert folder.tally.left_out == [("family", "x loss", "all of it is masked")]


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


def test_unknown_options_are_named_and_what_can_be_chosen_must_be_the_same(folder):
    with pytest.raises(AssertionError, match=r"unknown keys of tapas_config: \['new_option'\]"):
        supported_config(folder, {"tapas_config": {"new_option": 1}}, 128)
    with pytest.raises(folder.NotSupportedError, match="use_gumbel_for_agg=True"):
        supported_config(folder, {"tapas_config": {"use_gumbel_for_agg": True}}, 128)
    with pytest.raises(folder.NotSupportedError, match=r"unknown arguments \{'new_mode': 1\}"):
        folder.encoder_config({"new_mode": 1})
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
    ([{"ids": [1, 3], "text": [b"a"]}], "x ids: largest difference 1"),
    ([{"ids": [1, 2], "text": [b"b"]}], "x text: first other at example 0"),
)
def test_examples_must_have_the_same_features(folder, actual, message):
    expected = {
        "ids": {"kind": "int64_list", "values": [1, 2]},
        "text": {"kind": "bytes_list", "values": ["a"]},
    }
    with pytest.raises(AssertionError, match=message):
        interactions.compare_examples(folder, "x", actual, [expected])


def test_every_golden_of_the_folders_belongs_to_a_test(request):
    """Other folders may hold goldens of kinds that nothing here compares."""
    kinds = (interactions.CLASSIFIER, interactions.READER)
    kinds += (interactions.CELL_SELECTION, interactions.MASKED_LM)
    unknown = [
        golden.name
        for golden in interactions.conversion_goldens(request.config)
        if not golden.entry["kind"].startswith(kinds)
    ]
    golden = request.config.golden
    tasks = {task for of_test in TASKS.values() for task in of_test}
    for name, entry in golden.load_index("e2e").items():
        unknown += [name] if entry["task"] not in tasks else []
    for name, entry in golden.load_index("heads").items():
        has_test = name.startswith(("_", "pretrain_", "train_")) or span_prediction(entry)
        unknown += [] if has_test else [name]
    assert not unknown, f"no test compares the goldens {unknown}"
