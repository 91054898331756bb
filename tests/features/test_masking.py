import collections
import random

import numpy as np
import pytest

from mate_tf.features.masked_lm import draw_masks, whole_words

MASK, SIZE = 5, 100
WORDS = [[1], [2, 3], [4, 5, 6], [7], [8, 9, 10, 11]]


def draw(words, num_predictions, seed):
    return draw_masks([list(word) for word in words], num_predictions, MASK, SIZE, _rng(seed))


def _rng(seed):
    return random.Random(seed)


@pytest.mark.parametrize("num_predictions", range(13))
def test_no_more_than_asked_for_is_masked_and_words_are_whole(num_predictions):
    for seed in range(20):
        masked = set(draw(WORDS, num_predictions, seed))
        assert len(masked) <= num_predictions
        assert all(masked.isdisjoint(word) or masked.issuperset(word) for word in WORDS)
        # Nothing that would still fit was passed over.
        left = [len(word) for word in WORDS if masked.isdisjoint(word)]
        assert len(masked) + min(left, default=SIZE) > num_predictions


def test_shares_of_replacements_are_berts():
    num = 20_000
    masks = draw_masks([[position] for position in range(num)], num, MASK, SIZE, _rng(0))
    counts = collections.Counter(
        "mask" if to == MASK else "kept" if to is None else "random" for to in masks.values()
    )
    # A random piece is [MASK] itself once in SIZE.
    for name, share in (("mask", 0.8 + 0.1 / SIZE), ("kept", 0.1), ("random", 0.1 - 0.1 / SIZE)):
        deviation = (share * (1 - share) / num) ** 0.5
        assert abs(counts[name] / num - share) < 4 * deviation
    assert {to for to in masks.values() if to is not None} == set(range(SIZE))


@pytest.mark.parametrize(
    ("whole_cells", "original", "expected"),
    [
        (False, False, [[1, 2], [3], [5], [6], [7], [8, 9], [10]]),
        (True, False, [[1, 2], [3], [5], [6, 7], [8, 9, 10]]),
        (True, True, [[1, 2], [3], [5, 6, 7, 8, 9, 10]]),
    ],
)
def test_what_is_masked_together_in_one_column(wordpiece, whole_cells, original, expected):
    pieces = "[CLS] new ##ville a [SEP] name new york new ##ville a".split()
    input_ids = np.array([wordpiece.vocabulary.index(piece) for piece in pieces])
    column_ids = np.array([0] * 5 + [1] * 6)
    row_ids = np.array([0] * 5 + [0, 1, 1, 2, 2, 2])
    assert whole_words(input_ids, column_ids, row_ids, wordpiece, whole_cells, original) == expected
