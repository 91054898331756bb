"""The rows and columns of a table in another order, and with them all that refers to its cells.

What a table says does not depend on their order, but a model that embeds it may: the TableFormer
paper measures how much (section 4.1), and trains on tables in random orders (section 4.3). A table
is reordered here as it is read, and as the features of a record.

Shape letters: S sequence, R rows and C columns of the table's body.
"""

import dataclasses
import random
from collections.abc import Mapping
from typing import Any, NamedTuple, TypeVar

import tensorflow as tf

from mate_tf.records.schema import OF_TOKENS
from mate_tf.tables.linked_table import LinkedTable
from mate_tf.tables.table import Coordinates, Question, Table, id_bytes

AnyTable = TypeVar("AnyTable", Table, LinkedTable)
Item = TypeVar("Item")

# Features that are places in the sequence.
_OF_PLACES = ("can_indexes", "masked_lm_positions")


class Order(NamedTuple):
    """An order of rows and columns: for each place the former one, both counted from zero."""

    rows: tuple[int, ...]
    columns: tuple[int, ...]

    def inverse(self) -> "Order":
        """The order that undoes this one."""
        return Order(*(tuple(sorted(range(len(old)), key=old.__getitem__)) for old in self))


def random_order(
    table: Table | LinkedTable, seed: int, rows: bool = True, columns: bool = True
) -> Order:
    """An order of a table's rows, of its columns, or of both that is drawn at random.

    It follows from the seed and the table's name and size alone, so that all questions of a
    conversation see the same table.
    """
    table = table.table if isinstance(table, LinkedTable) else table
    rng = random.Random(b"%d " % seed + id_bytes(table.table_id))
    sizes = table.num_rows, table.num_columns
    return Order(
        *(
            tuple(rng.sample(range(size), size) if wanted else range(size))
            for size, wanted in zip(sizes, (rows, columns), strict=True)
        )
    )


def reorder(table: AnyTable, question: Question, order: Order) -> tuple[AnyTable, Question]:
    """The table in an order, with links and expansions, and a question about it.

    A header moves with its column. Coordinates stay in their sequence and go with their cells;
    those outside of the table, which a conversion refuses, stay as they are.
    """
    of_kind: Any = _reorder_linked_table if isinstance(table, LinkedTable) else _reorder_table
    return of_kind(table, order), _reorder_question(question, order)


def permute(
    table: AnyTable, question: Question, seed: int, rows: bool = True, columns: bool = True
) -> tuple[AnyTable, Question]:
    """The same in a random order (`random_order`).

    Example:
        >>> table = Table.from_rows([["city", "year"], ["Rome", 2004], ["Bonn", 2005]])
        >>> table, question = permute(table, Question("?", answer_coordinates=((1, 0),)), seed=4)
        >>> [table.rows[row][column] for row, column in question.answer_coordinates]
        ['Bonn']
    """
    return reorder(table, question, random_order(table, seed, rows, columns))


def reorder_features(
    features: Mapping[str, tf.Tensor], rows: tf.Tensor, columns: tf.Tensor
) -> dict[str, tf.Tensor]:
    """The features of an example as of its table in another order.

    Of a table that is in the sequence whole they are those of the reordered table, but for what a
    conversion chooses by the order itself: the first occurrence of an answer's text
    (FeatureConfig.label_answer_spans), the order of equally frequent values in a histogram row, and
    aggregation candidates. These go with their tokens. A histogram row stays the last.

    Args:
        features: of one example, by name; [S] for the tokens.
        rows: for each row id, from 1, the former one: int32 [R].
        columns: the same for column ids: int32 [C].
    """
    num_rows = tf.size(rows)
    # The question and the header have id 0, a histogram row R + 1.
    old_rows = tf.concat([[0], rows, [num_rows + 1]], axis=0)  # [R+2]
    row_ids = tf.gather(tf.math.invert_permutation(old_rows), features["row_ids"])  # [S]
    old_columns = tf.concat([[0], columns], axis=0)  # [C+1]
    column_ids = tf.gather(tf.math.invert_permutation(old_columns), features["column_ids"])  # [S]

    # By padding, segment, row and column.
    is_padding = tf.cast(features["input_mask"] == 0, tf.int64)
    key = is_padding * 2 + tf.cast(features["segment_ids"], tf.int64)
    for ids, largest in ((row_ids, num_rows + 1), (column_ids, tf.size(columns))):
        key = key * tf.cast(largest + 1, tf.int64) + tf.cast(ids, tf.int64)
    former = tf.argsort(key, stable=True)  # [S]
    latter = tf.math.invert_permutation(former)  # [S]

    def moved(name: str, values: tf.Tensor) -> tf.Tensor:
        if name in OF_TOKENS:
            return tf.gather(values, former)
        return tf.gather(latter, values) if name in _OF_PLACES else values

    given = {**features, "row_ids": row_ids, "column_ids": column_ids}
    return {name: moved(name, values) for name, values in given.items()}


def copy_of_epoch(
    features: Mapping[str, tf.Tensor], epoch: tf.Tensor, num_copies: int
) -> tf.Tensor:
    """Which of its copies an example's table has in an epoch, int64 []; 0 is the table as it is.

    Each has its turn; where the turns begin is another for each table.

    Args:
        features: of one example.
        epoch: int64 [].
        num_copies: in other orders.

    Raises:
        ValueError: if the features do not say which table they are of.
    """
    return (epoch + _table_id_hash(features)) % (num_copies + 1)


def perturbed_copy(
    features: Mapping[str, tf.Tensor], seed: int, copy: tf.Tensor
) -> dict[str, tf.Tensor]:
    """The features of an example in one of the random orders of its table.

    The order follows from the seed, the copy's number and the table (`table_id_hash`) alone.

    Args:
        features: of one example, by name; [S] for the tokens.
        seed: any number.
        copy: int64 []; copy 0 is the table as it is.

    Raises:
        ValueError: if the features do not say which table they are of.
    """
    table = _table_id_hash(features)

    def perturbed() -> dict[str, tf.Tensor]:
        of_copy = tf.stack([tf.constant(seed, tf.int64), copy])
        of_table = tf.random.experimental.stateless_fold_in(of_copy, table)
        of_rows, of_columns = tf.unstack(tf.random.split(of_table, 2))
        row_ids = features["row_ids"]
        if "numeric_values_scale" in features:  # infinite in a histogram row
            row_ids = tf.where(tf.math.is_inf(features["numeric_values_scale"]), 0, row_ids)
        return reorder_features(
            features,
            _shuffled_ids(row_ids, of_rows),
            _shuffled_ids(features["column_ids"], of_columns),
        )

    return tf.cond(copy > 0, perturbed, lambda: dict(features))


def _table_id_hash(features: Mapping[str, tf.Tensor]) -> tf.Tensor:
    if "table_id_hash" not in features:
        raise ValueError("expected table_id_hash among the features of perturbed tables, got none")
    return features["table_id_hash"][0]


def _shuffled_ids(ids: tf.Tensor, seed: tf.Tensor) -> tf.Tensor:
    """The ids from 1 to the largest in a random order."""
    return tf.random.experimental.stateless_shuffle(tf.range(1, tf.reduce_max(ids) + 1), seed)


def _reorder_linked_table(linked: LinkedTable, order: Order) -> LinkedTable:
    return dataclasses.replace(
        linked,
        table=_reorder_table(linked.table, order),
        passages=_grid(linked.passages, order),
    )


def _reorder_table(table: Table, order: Order) -> Table:
    return dataclasses.replace(
        table,
        header=tuple(table.header[column] for column in order.columns),
        rows=_grid(table.rows, order),
        expansions=_grid(table.expansions, order) if table.expansions else (),
    )


def _reorder_question(question: Question, order: Order) -> Question:
    to = order.inverse()
    num_rows, num_columns = map(len, to)

    def moved(cells: Coordinates) -> Coordinates:
        return tuple(
            (to.rows[row], to.columns[column])
            if 0 <= row < num_rows and 0 <= column < num_columns
            else (row, column)
            for row, column in cells
        )

    return dataclasses.replace(
        question,
        answer_coordinates=moved(question.answer_coordinates),
        previous_coordinates=moved(question.previous_coordinates),
    )


def _grid(cells: tuple[tuple[Item, ...], ...], order: Order) -> tuple[tuple[Item, ...], ...]:
    return tuple(tuple(cells[row][column] for column in order.columns) for row in order.rows)
