"""Pre-training examples: what is drawn and masked, and the features made of it."""

import collections
import dataclasses
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mate_tf.features import masked_lm
from mate_tf.features.config import ConversionError, MaskedLmConfig
from mate_tf.features.tokenized_table import tokenize_table
from mate_tf.tables.table import Table
from tests.features.examples import rows_of
from tests.small import cases

TABLE = Table.from_rows(
    [["city name", "people"], ["New York", 8], ["Newville", 3], ["a b c", "5 x"]], table_id="cities"
)
OTHER = Table.from_rows([["name"], ["Newville"], ["York"]], table_id="names")
TEXTS = ("new york city has people and names", "is newville a city?")
CONFIG = MaskedLmConfig(max_seq_length=64, masking_probability=0.3)


def builds(wordpiece, table=TABLE, texts=TEXTS, *, seeds=range(40), negative=None, **changes):
    """Examples of many seeds."""
    builder = masked_lm.MaskedLmBuilder(wordpiece, dataclasses.replace(CONFIG, **changes))
    return [builder.build(table, texts, random.Random(seed), negative) for seed in seeds]


def build(*args, **changes):
    return builds(*args, seeds=[0], **changes)[0]


def masked_positions(example):
    return example["masked_lm_positions"][example["masked_lm_weights"] == 1]


def unmasked(example):
    """The example's tokens with the labels in their places."""
    input_ids = example["input_ids"].copy()
    is_label = example["masked_lm_weights"] == 1
    input_ids[masked_positions(example)] = example["masked_lm_ids"][is_label]
    return input_ids


def cells_of(example):
    """The positions of each cell's tokens, by row and column id."""
    cells = collections.defaultdict(list)
    for position in np.flatnonzero(example["column_ids"]):
        key = int(example["row_ids"][position]), int(example["column_ids"][position])
        cells[key].append(position)
    return cells


def test_labels_are_what_the_text_and_the_table_say(wordpiece):

    def spelled(ids):
        return "".join(f" {id_} " for id_ in ids)

    both_orders = [spelled(np.concatenate(wordpiece.ids(t))) for t in (TEXTS, TEXTS[::-1])]
    some_is_masked = False
    for example in builds(wordpiece):
        input_ids = unmasked(example)
        some_is_masked |= bool(np.any(input_ids != example["input_ids"]))
        text = spelled(input_ids[1 : list(input_ids).index(wordpiece.sep)])
        assert any(text in whole for whole in both_orders)
        for (row, column), positions in cells_of(example).items():
            cell = (TABLE.header, *TABLE.rows)[row][column - 1]
            (ids,) = wordpiece.ids([cell])
            assert list(input_ids[positions]) == ids[: len(positions)]
    assert some_is_masked


@pytest.mark.parametrize(("table", "whole_cells"), [(TABLE, True), (OTHER, True), (TABLE, False)])
def test_cells_are_masked_as_wholes_where_asked_for_and_words_always(wordpiece, table, whole_cells):
    wholes = parts = 0
    for example in builds(wordpiece, table, TEXTS, whole_cells=whole_cells):
        masked = set(masked_positions(example))
        for position in np.flatnonzero(wordpiece.is_inner[unmasked(example)]):
            assert (position in masked) == (position - 1 in masked)
        for positions in cells_of(example).values():
            wholes += masked.issuperset(positions)
            parts += 0 < len(masked.intersection(positions)) < len(positions)
    assert wholes and (parts > 0) == (not whole_cells)


def test_an_example_follows_from_its_generator_and_says_whether_it_is_negative(wordpiece):
    one, again, other = builds(wordpiece, seeds=(1, 1, 2), negative=OTHER)
    np.testing.assert_equal(one, again)
    assert list(one["input_ids"]) != list(other["input_ids"])
    keys = ("a_0", "a_0", "a_1")
    one, again, other = (masked_lm.example_rng(key, 7, 128).random() for key in keys)
    assert one == again != other
    num = 400
    examples = builds(wordpiece, seeds=range(num), negative=OTHER)
    flags = np.array([example["next_sentence_labels"][0] for example in examples])
    for example, flag in zip(examples, flags, strict=True):
        assert example["is_random_table"] == flag
        assert example["table_id"] == [b"names" if flag else b"cities"]
    assert abs(flags.mean() - 0.5) < 4 * 0.5 / num**0.5
    assert not any(example["is_random_table"] for example in builds(wordpiece))


def test_ranks_and_numbers_are_of_the_whole_table_before_masking(wordpiece):
    rows = [["people"], [30], [10], [20]]
    seen = False
    for example in builds(wordpiece, Table.from_rows(rows)):
        for (row, _), positions in cells_of(example).items():
            if row:
                rank = {30: 3, 10: 1, 20: 2}[rows[row][0]]
                assert np.all(example["column_ranks"][positions] == rank)
                assert np.all(example["inv_column_ranks"][positions] == 4 - rank)
                assert np.all(example["numeric_values"][positions] == rows[row][0])
                seen |= positions[0] in masked_positions(example)
    assert seen


def test_features_of_text_alone_and_without_column_names(wordpiece):
    example = build(wordpiece, None, ["new york", "a"], max_seq_length=4, max_predictions=2)
    tokens = [wordpiece.vocabulary[id_] for id_ in unmasked(example)]
    assert tokens == "[CLS] new york [PAD]".split()
    for name in ("segment_ids", "column_ids", "row_ids", "column_ranks", "is_random_table"):
        assert not example[name].any()
    assert list(example["table_id"]) == [b""]
    long = build(wordpiece, None, ["new york " * 9], max_seq_length=4)
    assert long["input_mask"].all()
    for example in builds(wordpiece, strip_column_names=True):
        of_header = (example["row_ids"] == 0) & (example["column_ids"] > 0)
        assert set(unmasked(example)[of_header]) == {wordpiece.empty}


@pytest.mark.parametrize("original", [False, True])
def test_ids_stay_below_their_limits_but_in_the_original(wordpiece, original):
    table = Table.from_rows([["a"] * 6] * 7)
    examples = builds(
        wordpiece, table, TEXTS, max_column_id=4, max_row_id=5, original_conversion=original
    )
    most = {name: max(e[name].max() for e in examples) for name in ("column_ids", "row_ids")}
    assert most == {"column_ids": 3 + original, "row_ids": 4 + original}


@cases(
    "texts, changes, reason, message",
    ((), {}, "no fitting text", "expected at least 8 pieces of text, got 0 .table 'cities'"),
    (TEXTS, {"join_texts": False, "max_text_length": 8}, "no fitting text", "of 8 to 8 pieces"),
    (TEXTS, {"max_seq_length": 11}, "too long", "expected at most 11 tokens"),
)
def test_what_does_not_fit_is_an_error_with_its_reason(wordpiece, texts, changes, reason, message):
    with pytest.raises(ConversionError, match=message) as error:
        build(wordpiece, TABLE, texts, **changes)
    assert error.value.reason == reason
    with pytest.raises(ValueError, match="expected a table or a text, got neither"):
        build(wordpiece, None, ())


def test_limits_that_leave_no_room_are_errors():
    limits = dict(max_seq_length=3, max_predictions=0, masking_probability=1.5, min_text_length=0)
    limits |= dict(max_text_length=7, max_column_id=1, max_row_id=1)
    for limit, value in limits.items():
        with pytest.raises(ValueError, match=f"expected .*{limit}"):
            MaskedLmConfig(**{limit: value})


@pytest.mark.parametrize("num_pieces", [0, 1, 7, 8])
def test_what_there_is_of_a_text_is_taken_where_none_is_required(wordpiece, num_pieces):
    texts = ["a " * num_pieces] if num_pieces else []
    for example in builds(wordpiece, TABLE, texts, require_text=False, seeds=range(9)):
        tokens = unmasked(example)[: example["input_mask"].sum()].tolist()
        assert tokens.index(wordpiece.sep) == 1 + num_pieces
        assert example["column_ids"][2 + num_pieces] == 1


CELLS = st.text(max_size=12) | st.floats() | st.none() | st.integers()
TABLES = st.none() | rows_of(CELLS, max_width=5).map(Table.from_rows)


CONFIGS = st.builds(
    MaskedLmConfig,
    max_seq_length=st.integers(4, 40),
    max_predictions=st.integers(1, 9),
    min_text_length=st.just(2),
    max_text_length=st.just(10),
    whole_cells=st.booleans(),
    join_texts=st.booleans(),
    max_column_id=st.just(4),
    max_row_id=st.just(5),
)
SOME_TEXTS = st.lists(st.just("") | st.text(min_size=5, max_size=40), max_size=4)


@given(TABLES, SOME_TEXTS, TABLES, st.integers(0, 2**32), CONFIGS)
def test_anything_gives_features_within_range_or_an_error(
    wordpiece, table, texts, negative, seed, config
):
    try:
        example = masked_lm.MaskedLmBuilder(wordpiece, config).build(
            table, texts, random.Random(seed), negative
        )
    except ValueError as error:
        assert "expected" in str(error) and "got" in str(error)
        return
    num_tokens = example["input_mask"].sum()
    assert np.all(np.diff(example["input_mask"]) <= 0)
    for name, limit in (("input_ids", len(wordpiece)), ("column_ids", 4), ("row_ids", 5)):
        assert example[name].shape == (config.max_seq_length,)
        assert example[name].min() >= 0 and example[name].max() < limit
        assert not example[name][num_tokens:].any()
    positions = masked_positions(example)
    assert len(positions) <= min(config.max_predictions, max(1, round(0.15 * num_tokens)))
    assert np.all(np.diff(positions) > 0) and np.all(positions < num_tokens)
    special = wordpiece.cls, wordpiece.sep
    assert not np.isin(unmasked(example)[positions], special).any()
    for name in ("masked_lm_positions", "masked_lm_ids", "masked_lm_weights"):
        assert example[name].shape == (config.max_predictions,)
        assert not example[name][len(positions) :].any()


MASK, SIZE = 5, 100
WORDS = [[1], [2, 3], [4, 5, 6], [7], [8, 9, 10, 11]]


@pytest.mark.parametrize("num_predictions", range(13))
def test_no_more_than_asked_for_is_masked_and_words_are_whole(num_predictions):
    for seed in range(20):
        words = list(map(list, WORDS))
        masked = set(masked_lm.draw_masks(words, num_predictions, MASK, SIZE, random.Random(seed)))
        assert len(masked) <= num_predictions
        assert all(masked.isdisjoint(word) or masked.issuperset(word) for word in WORDS)
        # Nothing that would still fit was passed over.
        left = [len(word) for word in WORDS if masked.isdisjoint(word)]
        assert len(masked) + min(left, default=SIZE) > num_predictions


def test_shares_of_replacements_are_berts():
    num = 20_000
    masks = masked_lm.draw_masks(
        [[position] for position in range(num)], num, MASK, SIZE, random.Random(0)
    )
    counts = collections.Counter(
        "mask" if to == MASK else "kept" if to is None else "random" for to in masks.values()
    )
    # A random piece is [MASK] itself once in SIZE.
    for name, share in (("mask", 0.8 + 0.1 / SIZE), ("kept", 0.1), ("random", 0.1 - 0.1 / SIZE)):
        deviation = (share * (1 - share) / num) ** 0.5
        assert abs(counts[name] / num - share) < 4 * deviation
    assert {to for to in masks.values() if to is not None} == set(range(SIZE))


@cases(
    "whole_cells, original, expected",
    (False, False, [[1, 2], [3], [5], [6], [7], [8, 9], [10]]),
    (True, False, [[1, 2], [3], [5], [6, 7], [8, 9, 10]]),
    (True, True, [[1, 2], [3], [5, 6, 7, 8, 9, 10]]),
)
def test_what_is_masked_together_in_one_column(wordpiece, whole_cells, original, expected):
    pieces = "[CLS] new ##ville a [SEP] name new york new ##ville a".split()
    input_ids = np.array([wordpiece.vocabulary.index(piece) for piece in pieces])
    column_ids = np.array([0] * 5 + [1] * 6)
    row_ids = np.array([0] * 5 + [0, 1, 1, 2, 2, 2])
    assert (
        masked_lm.whole_words(input_ids, column_ids, row_ids, wordpiece, whole_cells, original)
        == expected
    )


SOME_CELLS = st.sampled_from(["", "a", "new york", "newville", "a b c d e f", "qqqq qq"])
SOME_ROWS = rows_of(st.lists(SOME_CELLS, min_size=1, max_size=3).map(" ".join), max_width=5)


def counted_corner(tokens, budget, max_columns, max_rows, rng):
    """The definition: the tokens of every size tried are counted anew."""

    def taken(columns, rows, pieces):
        in_cells = (tokens.column_ids <= columns) & (tokens.row_ids <= rows)
        return in_cells & (tokens.word_begins < pieces)

    size = [1, 1, 1]
    if taken(*size).sum() > budget:
        return None
    longest = np.bincount(tokens.row_ids * 1000 + tokens.column_ids).max()
    most = [min(max_columns, tokens.num_columns), min(max_rows, tokens.num_rows + 1), longest]
    while any(size[axis] < most[axis] for axis in range(3)):
        for axis in range(3):
            if size[axis] < most[axis] and rng.random() < 0.5:
                size[axis] += 1
                if taken(*size).sum() > budget:
                    size[axis] -= 1
                    return taken(*size)
    return taken(*size)


@given(SOME_ROWS, st.integers(0, 60), st.integers(1, 6), st.integers(1, 9), st.integers(0, 9))
def test_corner_equals_the_definition(wordpiece, rows, budget, max_columns, max_rows, seed):
    tokens = tokenize_table(wordpiece, CONFIG, Table.from_rows(rows))
    generators = random.Random(seed), random.Random(seed)
    actual = masked_lm.draw_corner(tokens, budget, max_columns, max_rows, generators[0])
    expected = counted_corner(tokens, budget, max_columns, max_rows, generators[1])
    assert generators[0].getstate() == generators[1].getstate()
    np.testing.assert_array_equal(actual, expected)
    assert actual is None or actual.sum() <= budget


@pytest.mark.parametrize("shape", ["wide", "long", "long cell"])
def test_corner_of_a_huge_table_is_found(wordpiece, shape):
    rows = {
        "wide": [["a"] * 10_000] * 2,
        "long": [["a"]] * 10_000,
        "long cell": [["a", "a"], ["a", "a " * 100_000]],
    }[shape]
    tokens = tokenize_table(wordpiece, CONFIG, Table.from_rows(rows))
    kept = masked_lm.draw_corner(tokens, 500, 10_000, 10_000, random.Random(0))
    assert 2 <= kept.sum() <= 500


SAMPLES = ["newville a b", "new york", "qq w"]  # of 4, 2 and 3 pieces


def draw(wordpiece, texts, *, shortest=1, longest=9, join=True, seed=0):
    ids = masked_lm.draw_text(
        wordpiece.ids(texts), wordpiece.is_inner, shortest, longest, join, random.Random(seed)
    )
    return None if ids is None else " ".join(wordpiece.vocabulary[id_] for id_ in ids)


def test_a_stretch_has_whole_words_and_a_fitting_length_and_is_one_text_without_joining(wordpiece):
    drawn = {draw(wordpiece, SAMPLES, shortest=2, longest=3, seed=seed) for seed in range(200)}
    lengths = {len(text.split()) for text in drawn}
    assert lengths == {2, 3, 4}  # 4 where a word is completed
    for text in drawn:
        rest = text.replace("new ##ville", "").replace("q ##q", "")
        assert "q" not in rest and "##" not in rest
    assert any("b new york" in text for text in drawn)  # texts are joined
    assert any("york new" in text for text in drawn)  # in any order
    limits = {"shortest": 2, "longest": 3, "join": False}
    drawn = {draw(wordpiece, SAMPLES, seed=seed, **limits) for seed in range(20)}
    assert drawn == {"new york", "q ##q w"}
