"""Training on tables in random orders: all features of a cell go along; copies take turns."""

import dataclasses
import itertools
from collections import Counter

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from experiments.robustness import Order, random_order, reorder
from mate_tf.features.builder import FeatureBuilder
from mate_tf.features.config import FeatureConfig
from mate_tf.records.batches import perturbed_copy, reorder_features, training_batches
from mate_tf.tables.table import Question, Table
from tests.small import assert_same_features, write_records

LENGTH = 512
SEEDS = st.integers(0, 2**32)
TEXTS = ["", "New York", "newville", "12.5", "March 2004", "1,250 people", "third", "a-b", "n/a"]
CELLS = st.integers(-50, 3000).map(str) | st.dates().map(str) | st.sampled_from(TEXTS)


@st.composite
def pairs(draw) -> tuple[Table, Question]:
    """A table of up to 5 x 4 cells with everything that a question may say of them."""
    num_columns = draw(st.integers(1, 4))
    row = st.lists(CELLS, min_size=num_columns, max_size=num_columns)
    table = Table.from_rows(draw(st.lists(row, min_size=1, max_size=5)), draw(row), "drawn")
    expansions = st.lists(row, min_size=table.num_rows, max_size=table.num_rows)
    table = dataclasses.replace(table, expansions=draw(st.just(()) | expansions))
    cells = list(itertools.product(range(table.num_rows), range(table.num_columns)))
    some = st.lists(st.sampled_from(cells), unique=True, max_size=4).map(tuple)
    text = draw(st.sampled_from(["which city?", "5 or 2004?", "before March 2004"]))
    return table, Question(
        text,
        answers=("new york",),
        answer_coordinates=draw(some),
        previous_coordinates=draw(some),
        answer_number=draw(st.none() | st.just(3.5)),
        class_index=1,
    )


def features_of(wordpiece, table, question, **config):
    builder = FeatureBuilder(wordpiece, FeatureConfig(max_seq_length=LENGTH, **config))
    return builder.build(table, question).features


def tensors(features) -> dict[str, tf.Tensor]:
    return {name: tf.constant(values) for name, values in features.items()}


def reordered(features, order: Order) -> dict[str, np.ndarray]:
    """The features after reorder_features, whose ids count from 1."""
    ids = (tf.constant(places, tf.int32) + 1 for places in order)
    moved = reorder_features(tensors(features), *ids)
    return {name: values.numpy() for name, values in moved.items()}


@settings(max_examples=60)
@given(pair=pairs(), seed=SEEDS)
def test_features_of_the_reordered_table_are_the_reordered_features(wordpiece, pair, seed):
    order = random_order(pair[0], seed)
    features = features_of(wordpiece, *pair)
    assert_same_features(reordered(features, order), features_of(wordpiece, *reorder(*pair, order)))
    assert_same_features(reordered(reordered(features, order), order.inverse()), features)


def test_a_histogram_row_stays_last_and_its_cells_go_with_their_columns(wordpiece):
    rows = [["a", "1"], ["b", "2"], ["a", "1"], ["c", "3"], ["a", "2"], ["b", "1"]]
    table, question = Table.from_rows(rows, ["name", "people"]), Question("city?")
    order = Order((5, 0, 2, 4, 1, 3), (1, 0))
    features = features_of(wordpiece, table, question, histogram_row=True)
    actual = reordered(features, order)
    expected = features_of(wordpiece, *reorder(table, question, order), histogram_row=True)
    assert_same_features(actual, expected)
    is_histogram = np.isinf(actual["numeric_values_scale"])
    assert is_histogram.any() and set(actual["row_ids"][is_histogram]) == {7}
    # So they do where the order is drawn.
    is_histogram_before = np.isinf(features["numeric_values_scale"])
    copies = [perturbed_copy(tensors(features), 0, tf.constant(n, tf.int64)) for n in range(1, 9)]
    for copy in copies:
        np.testing.assert_array_equal(copy["row_ids"] == 7, is_histogram_before)
    assert len({copy["input_ids"].numpy().tobytes() for copy in copies}) > 1


def test_rows_that_are_not_in_the_sequence_leave_no_gap(wordpiece):
    table = Table.from_rows([["a b c", str(n)] for n in range(30)], ["x", "y"])
    config = FeatureConfig(max_seq_length=64, drop_rows_to_fit=True)
    features = FeatureBuilder(wordpiece, config).build(table, Question("city?")).features
    copy = perturbed_copy(tensors(features), 1, tf.constant(1, tf.int64))
    assert copy["row_ids"].numpy().max() == features["row_ids"].max() < 30
    assert Counter(copy["input_ids"].numpy()) == Counter(features["input_ids"])
    ids = copy["row_ids"].numpy()[features["input_mask"] == 1]
    assert (np.diff(ids) >= 0).all()


LETTERS = Table.from_rows([[c, str(n)] for n, c in enumerate("abcdefgh")], ["name", "x"])


def names(batches) -> list[list[bytes]]:
    return [batch["question_id"][:, 0].numpy().tolist() for batch in batches]


@pytest.fixture
def write(tmp_path, wordpiece):
    """Writes twelve questions, of several lengths, about so many tables."""

    def write_questions(num_tables):
        tables = [dataclasses.replace(LETTERS, table_id=f"t{n}") for n in range(num_tables)]
        asked = [Question("a " * (1 + 20 * (n % 3)), f"q{n}") for n in range(12)]
        pairs = zip(itertools.cycle(tables), asked, strict=False)
        write_records(tmp_path / "train.tfrecord", (features_of(wordpiece, *it) for it in pairs))
        return tmp_path / "train.tfrecord"

    return write_questions


@pytest.fixture
def file(write):
    return write(2)


def epochs(file, count, copies, seed=5):
    """The first epochs of training, of six batches each: for each question table and tokens."""
    batches = iter(training_batches(file, 2, seed, (64,), perturbed_copies=copies))
    found = []
    for _ in range(count):
        tables = {}
        for batch in itertools.islice(batches, 6):
            columns = ("question_id", "table_id", "input_ids", "segment_ids")
            rows = zip(*(batch[key].numpy() for key in columns), strict=True)
            for name, table_id, ids, segments in rows:
                tables[name[0]] = (table_id[0], ids[segments == 1].tobytes())
        assert len(tables) == 12
        found.append(tables)
    return found


def orders_of(found, table_id: bytes) -> list[bytes]:
    """The order of a table in each epoch, which all of its questions share."""
    of_epochs = [{ids for table, ids in it.values() if table == table_id} for it in found]
    return [order for (order,) in of_epochs]


def test_each_table_takes_its_copies_and_itself_in_turn(file):
    plain = epochs(file, 1, copies=0)
    found = epochs(file, 4, copies=2)
    assert found[3] == found[0]
    fewer, other = epochs(file, 2, copies=1), epochs(file, 3, copies=2, seed=6)
    copies = set()
    for table_id in (b"t0", b"t1"):
        of_plain = set(orders_of(plain, table_id))
        orders = set(orders_of(found[:3], table_id))
        assert len(orders) == 3 and of_plain < orders
        # A copy is the same one, however many there are.
        assert of_plain < set(orders_of(fewer, table_id)) < orders
        assert set(orders_of(other, table_id)) & orders == of_plain
        copies |= orders
    assert len(copies) == 5  # of two tables that are alike, those as they are are the same


def test_an_epoch_has_tables_as_they_are_and_in_other_orders(write):
    file = write(12)
    (plain,), (first,) = (epochs(file, 1, copies=copies) for copies in (0, 2))
    assert 0 < sum(first[name] == plain[name] for name in plain) < 12


@pytest.mark.parametrize("skip", [1, 7, 30])
def test_training_on_copies_resumes_exactly_in_the_order_of_plain_training(file, skip):
    def batches(copies, skip, count):
        found = training_batches(file, 2, 5, (64,), skip, perturbed_copies=copies)
        return list(itertools.islice(found, count))

    whole, resumed = batches(3, 0, skip + 4)[skip:], batches(3, skip, 4)
    for expected, actual in zip(whole, resumed, strict=True):
        assert_same_features(actual, expected)
    assert names(resumed) == names(batches(0, skip, 4))
