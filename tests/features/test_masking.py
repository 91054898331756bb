"""The draws of pre-training examples: excerpts of texts and tables, and masks."""

import collections
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mate_tf.features.masked_lm import draw_corner, draw_masks, draw_text, whole_words
from mate_tf.features.tokenized_table import tokenize_table
from mate_tf.tables.table import Table

MASK, SIZE = 5, 100
WORDS = [[1], [2, 3], [4, 5, 6], [7], [8, 9, 10, 11]]


@pytest.mark.parametrize("num_predictions", range(13))
def test_no_more_than_asked_for_is_masked_and_words_are_whole(num_predictions):
    for seed in range(20):
        words = list(map(list, WORDS))
        masked = set(draw_masks(words, num_predictions, MASK, SIZE, random.Random(seed)))
        assert len(masked) <= num_predictions
        assert all(masked.isdisjoint(word) or masked.issuperset(word) for word in WORDS)
        # Nothing that would still fit was passed over.
        left = [len(word) for word in WORDS if masked.isdisjoint(word)]
        assert len(masked) + min(left, default=SIZE) > num_predictions


def test_shares_of_replacements_are_berts():
    num = 20_000
    masks = draw_masks([[position] for position in range(num)], num, MASK, SIZE, random.Random(0))
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


CELLS = st.lists(
    st.sampled_from(["", "a", "new york", "newville", "a b c d e f", "qqqq qq"]),
    min_size=1,
    max_size=3,
).map(" ".join)
TABLES = st.integers(1, 5).flatmap(
    lambda width: st.lists(st.lists(CELLS, min_size=width, max_size=width), min_size=2, max_size=7)
)


def counted_corner(tokens, budget, max_columns, max_rows, rng):
    """The definition: the tokens of every size tried are counted anew."""

    def taken(columns, rows, pieces):
        return (
            (tokens.column_ids <= columns)
            & (tokens.row_ids <= rows)
            & (tokens.word_begins < pieces)
        )

    size = [1, 1, 1]
    if taken(*size).sum() > budget:
        return None
    cells = tokens.row_ids * 1000 + tokens.column_ids
    most = [
        min(max_columns, tokens.column_ids.max()),
        min(max_rows, tokens.num_rows + 1),
        np.bincount(cells).max(),
    ]
    while any(size[axis] < most[axis] for axis in range(3)):
        for axis in range(3):
            if size[axis] < most[axis] and rng.random() < 0.5:
                size[axis] += 1
                if taken(*size).sum() > budget:
                    size[axis] -= 1
                    return taken(*size)
    return taken(*size)


@given(TABLES, st.integers(0, 60), st.integers(1, 6), st.integers(1, 9), st.integers(0, 9))
def test_corner_equals_the_definition(wordpiece, rows, budget, max_columns, max_rows, seed):
    tokens = tokenize_table(wordpiece, Table.from_rows(rows))
    generators = random.Random(seed), random.Random(seed)
    actual = draw_corner(tokens, budget, max_columns, max_rows, generators[0])
    expected = counted_corner(tokens, budget, max_columns, max_rows, generators[1])
    assert generators[0].getstate() == generators[1].getstate()
    if expected is None:
        assert actual is None
    else:
        np.testing.assert_array_equal(actual, expected)
        assert actual.sum() <= budget


@pytest.mark.parametrize("shape", ["wide", "long", "long cell"])
def test_corner_of_a_huge_table_is_found(wordpiece, shape):
    rows = {
        "wide": [["a"] * 10_000] * 2,
        "long": [["a"]] * 10_000,
        "long cell": [["a", "a"], ["a", "a " * 100_000]],
    }[shape]
    tokens = tokenize_table(wordpiece, Table.from_rows(rows))
    kept = draw_corner(tokens, 500, 10_000, 10_000, random.Random(0))
    assert 2 <= kept.sum() <= 500


TEXTS = ["newville a b", "new york", "qq w"]  # of 4, 2 and 3 pieces


def draw(wordpiece, texts, *, shortest=1, longest=9, join=True, seed=0):
    ids = draw_text(
        wordpiece.ids(texts), wordpiece.is_inner, shortest, longest, join, random.Random(seed)
    )
    return None if ids is None else " ".join(wordpiece.vocabulary[id_] for id_ in ids)


def test_a_stretch_of_text_has_whole_words_and_is_neither_short_nor_long(wordpiece):
    drawn = {draw(wordpiece, TEXTS, shortest=2, longest=3, seed=seed) for seed in range(200)}
    lengths = {len(text.split()) for text in drawn}
    assert lengths == {2, 3, 4}  # 4 where a word is completed
    for text in drawn:
        rest = text.replace("new ##ville", "").replace("q ##q", "")
        assert "q" not in rest and "##" not in rest
    assert any("b new york" in text for text in drawn)  # texts are joined
    assert any("york new" in text for text in drawn)  # in any order


def test_without_joining_one_whole_text_of_fitting_length_is_drawn(wordpiece):
    drawn = {
        draw(wordpiece, TEXTS, shortest=2, longest=3, join=False, seed=seed) for seed in range(20)
    }
    assert drawn == {"new york", "q ##q w"}


@pytest.mark.parametrize(
    ("texts", "shortest", "longest", "join"),
    [([], 1, 9, True), ([], 1, 9, False), (TEXTS, 10, 12, True), (TEXTS, 5, 9, False)],
)
def test_no_text_is_drawn_where_none_is_long_enough(wordpiece, texts, shortest, longest, join):
    assert draw(wordpiece, texts, shortest=shortest, longest=longest, join=join) is None
