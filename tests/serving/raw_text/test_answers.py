"""Answers that the graph reads off a model's outputs, against those of the library."""

import functools

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mate_tf.answers.answer import format_number
from mate_tf.answers.decoding import Asked, decode_cells
from mate_tf.answers.spans import decode_classes
from mate_tf.features.token_features import TokenFeatures
from mate_tf.models.classification import ClassificationConfig
from mate_tf.models.table_qa import TableQAConfig
from mate_tf.serving.raw_text.answers import cell_answers, class_answers, format_numbers
from mate_tf.serving.raw_text.columns import read_columns
from mate_tf.serving.raw_text.features import RawFeatures, RawInput, raw_input
from mate_tf.tables.table import Table

TABLES = [
    Table.from_rows(rows)
    for rows in (
        [["team", "price"], ["x", "-2.5"], ["y", "1,000"], ["Total", "997.5"]],
        [["city"], ["rome"], ["paris"]],
        [["rank", "b", "year"], ["0.1", "0.2", "2004"], ["may 5", "5 km", "\u22120.1"]],
        [
            ["date", "age", "paid"],
            ["2024-03-01", "A", "yes"],
            ["2023-12-31", " a", "No"],
            ["2020-02-29", "", "yes"],
        ],
    )
]
RELATIONS = np.array([2, 4, 1, 2, 4, 4, 2, 6], np.int32)
# Of each table two tokens of the question, one for each cell and a second for some, and padding.
LENGTH = 24
QUESTIONS = ("which is it?", "list all of them", "Which rivers flow?", "when was this?")
IN_ROWS = (
    "who came after x?|which one is before it?|who has the most?|what is the lowest price?|"
    "which is the oldest?|which is the cheapest?|what is the first one?|which is listed last?|"
    "how many are after x?|which is next after the highest?|how many are over 3?|"
    "which ones have at most 2?|total of those before May|more than 1 and less than 5|"
    "how many x are over 3 in all?|which ones are between 1 and 4?|"
    "which has the second highest price?|third oldest|the first x|how many of x do we have|"
    "or more than 3 or more|is x cheaper than y?|which is larger, x or y|is x older than y?|"
    "which is better, x or y|the lowest over 3|which is not paid and has the lowest age?|"
    "how many are unpaid?|second cheapest with at least 2|the most recent that is not paid|"
    "how many are paid and over 3?|how many are not unpaid or over 3?|the first before May unpaid|"
    "the most expensive with 2 or more|how many have not paid?|the soonest date"
).split("|")
CELLS = st.floats(0, 1, width=32) | st.sampled_from([0.0, 0.5, 0.75, 0.875, 1.0])
# Alike or well apart: which of two cells is the larger by less than the rounding is not defined.
LOGITS = st.integers(-72, 72).map(lambda eighths: eighths / 8)


def places(table):
    """The column and row ids of a sequence about a table, of whose last cell nothing is in it."""
    ids = [(0, 0), (0, 0)]
    for row in range(table.num_rows + 1):
        for column in range(1, table.num_columns + 1):
            ids += [(column, row)] * (1 + (row + column) % 2)
    ids = ids[:-1] if ids[-1] == ids[-2] else ids
    ids = [cell for cell in ids if cell != (table.num_columns, table.num_rows)] or ids
    return np.array(ids + [(0, 0)] * (LENGTH - len(ids))).T


COLUMN_IDS, ROW_IDS = np.stack([places(table) for table in TABLES], axis=1).astype(np.int32)


@functools.cache
def features(seed=0):
    """Token features of all tables: places, ranks, and words that the question has or not."""
    draw = np.random.default_rng(seed)
    is_cell = ROW_IDS > 0
    ids = {
        "column_ids": COLUMN_IDS,
        "row_ids": ROW_IDS,
        "segment_ids": (COLUMN_IDS > 0).astype(np.int32),
        "input_mask": ((np.arange(LENGTH) < 2) | (COLUMN_IDS > 0)).astype(np.int32),
        "input_ids": draw.integers(0, 4, COLUMN_IDS.shape, np.int32),
        # The same for all tokens of a cell, equal for some cells, and 0 for others; often falling.
        "column_ranks": is_cell * (ROW_IDS * draw.integers(1, 8) + COLUMN_IDS * 3 + seed) % 4,
        # The same for all tokens of a cell; the fifth says that the question has several values.
        "numeric_relations": is_cell
        * RELATIONS[(ROW_IDS * draw.integers(1, 8) + COLUMN_IDS * 5) % 8],
    }
    zeros = tf.zeros(COLUMN_IDS.shape, tf.int32)
    given = {name: tf.constant(values) for name, values in ids.items()}
    return TokenFeatures(*[zeros] * 9)._replace(**given)


@functools.cache
def raw_features(seed=0, questions=QUESTIONS):
    raw = raw_input([""] * len(TABLES), TABLES)
    headers, cells = (tf.constant(raw[name].tolist()) for name in ("headers", "cells"))
    columns = read_columns(headers, cells, tf.ones_like(cells, tf.bool), raw["num_rows"], 2)
    sizes = (tf.constant(raw[name]) for name in ("num_rows", "num_columns"))
    given = RawInput(tf.constant(questions), headers, cells, *sizes)
    return RawFeatures(features(seed), columns, given)


def arrays(values, width):
    """Four rows of so many values: of tokens, columns or aggregations."""
    return st.lists(values, min_size=4 * width, max_size=4 * width).map(
        lambda drawn: np.array(drawn, np.float32).reshape(4, width)
    )


def assert_read_like_the_library(config, outputs, seed=0, questions=QUESTIONS):
    asked = Asked(TABLES, features(seed), questions=questions)
    expected = decode_cells(config, outputs, asked)
    tensors = {name: tf.constant(values) for name, values in outputs.items()}
    of_graph = cell_answers(config, raw_features(seed, questions), tensors)
    actual = {name: values.numpy() for name, values in of_graph.items()}
    for index, answer in enumerate(expected):
        rows, columns = actual["selected"][index].nonzero()
        assert list(zip(rows, columns, strict=True)) == [(c.row, c.column) for c in answer.cells]
        assert actual["aggregations"][index].decode() == answer.aggregation
        assert actual["answers"][index].decode() == answer.text
        assert actual["scores"][index] == pytest.approx(answer.score, rel=1e-5, abs=1e-30)
        scores = actual["cell_scores"][index]
        assert [scores[c.row, c.column] for c in answer.cells] == pytest.approx(
            [cell.score for cell in answer.cells], rel=1e-5, abs=1e-30
        )
        table = TABLES[index]
        assert not scores[table.num_rows :].any() and not scores[:, table.num_columns :].any()


@pytest.mark.medium
@settings(max_examples=60)
@given(arrays(CELLS, LENGTH), arrays(LOGITS, 14), st.booleans())
@example(np.zeros((4, LENGTH), np.float32), np.eye(4, 14, dtype=np.float32), False)
@example(np.ones((4, LENGTH), np.float32), np.eye(4, 14, 1, dtype=np.float32), False)
@example(np.full((4, LENGTH), 0.3, np.float32), np.eye(14, dtype=np.float32)[[3] * 4], False)
@example(np.ones((4, LENGTH), np.float32), 8 * np.eye(4, 14, 10, dtype=np.float32), False)  # ABSENT
def test_cells_and_what_is_computed_of_them_are_the_library_s(cells, aggregations, of_cells):
    if of_cells:  # a softmax over cells, which knows no aggregation
        config = TableQAConfig(
            num_aggregation_labels=0,
            use_answer_as_supervision=False,
            select_one_column=False,
            cell_cross_entropy=True,
        )
        assert_read_like_the_library(config, {"token_probabilities": cells})
    else:
        config = TableQAConfig(num_aggregation_labels=14, select_one_column=False)
        outputs = {"token_probabilities": cells, "aggregation_logits": aggregations}
        assert_read_like_the_library(config, outputs)


@pytest.mark.medium
@settings(max_examples=60)
@given(
    arrays(LOGITS, LENGTH),
    arrays(LOGITS, 4),
    arrays(LOGITS, 14),
    st.integers(0, 40),
    st.tuples(*[st.sampled_from([*IN_ROWS, *QUESTIONS])] * 4),
)
def test_a_column_that_is_chosen_first_is_the_library_s(
    cells, columns, aggregations, seed, questions
):
    # As a model has them: next to nothing for columns that are not there, and a probability of 0
    # outside the column that is chosen, which may be none.
    widths = np.array([[table.num_columns] for table in TABLES])
    columns = np.where(np.arange(4) <= widths, columns, -10_000.0)
    chosen = columns.argmax(axis=1)[:, np.newaxis]
    outputs = {
        "token_probabilities": np.where(chosen == COLUMN_IDS, 1 / (1 + np.exp(-cells)), 0.0),
        "token_logits": cells,
        "column_logits": columns,
        "aggregation_logits": aggregations,
    }
    outputs = {name: values.astype(np.float32) for name, values in outputs.items()}
    config = TableQAConfig(num_aggregation_labels=14, plain_answers=True)
    assert_read_like_the_library(config, outputs, seed, questions)


def test_a_table_of_which_nothing_was_seen_has_no_answer():
    unseen = raw_features()
    unseen = unseen._replace(tokens=unseen.tokens._replace(row_ids=tf.zeros([4, LENGTH], tf.int32)))
    outputs = {"token_probabilities": tf.ones([4, LENGTH])}
    answers = cell_answers(TableQAConfig(), unseen, outputs)
    assert answers["answers"].numpy().tolist() == [b""] * 4
    assert answers["aggregations"].numpy().tolist() == [b"NONE"] * 4
    assert not answers["scores"].numpy().any() and not answers["selected"].numpy().any()


@pytest.mark.parametrize("names", [(), ("refuted", "entailed")])
def test_classes_are_the_library_s(names):
    config = ClassificationConfig(2, class_names=names)
    logits = np.array([[1.0, 2.0], [0.5, 0.5], [3.0, -1.0]], np.float32)
    actual = class_answers(config, {"class_logits": tf.constant(logits)})
    expected = decode_classes(config, {"class_logits": logits})
    assert [text.decode() for text in actual["answers"].numpy()] == [a.text for a in expected]
    assert actual["class_indices"].numpy().tolist() == [a.class_index for a in expected]
    np.testing.assert_allclose(actual["scores"], [a.score for a in expected], rtol=1e-6)
    np.testing.assert_array_equal(actual["class_logits"], logits)


FINITE = st.floats(allow_nan=False, allow_infinity=False, allow_subnormal=False)


@given(st.lists(FINITE | st.integers(-(10**15), 10**15)))
@example([0.0, -0.0, 0.1, -0.1, 1e-5, 1e22, 1e15, 123456789012.5, 1234567890123.5, 0.1 + 0.2])
@example([99999999999.99999, 999999999999.9, 1e-300, 1.7976931348623157e308, 0.5, 1 / 3, 100.0])
def test_numbers_are_written_as_the_library_writes_them(numbers):
    numbers = [float(number) for number in numbers]
    written = format_numbers(tf.constant(numbers, tf.float64, [len(numbers)]))
    assert [text.decode() for text in written.numpy()] == list(map(format_number, numbers))
