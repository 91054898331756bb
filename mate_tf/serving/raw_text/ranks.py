"""The order of a column's numbers, and how a question's compare with them, in the graph.

It is what mate_tf/features/numeric.py makes of a cell's and a question's values, for a batch.

A value has four fields: number, year, month and day. What is compared are keys, made of the fields
that all of the compared values have; a column has either numbers or dates.

Shapes: B batch, R rows, C columns, V values of all questions, Q of one; K and M any.
"""

import itertools
from typing import NamedTuple

import tensorflow as tf

from mate_tf.features.numeric import COMMON_TYPE_SHARE, EQUAL, GREATER, LESS
from mate_tf.serving.raw_text.numbers import TextValues

# Of a number, and of a date so that later ones are larger.
_WEIGHTS = (1.0, 10_000.0, 100.0, 1.0)
# The fields that a value may have.
_KINDS = [(True, False, False, False)] + [
    (False, *given) for given in itertools.product((True, False), repeat=3) if any(given)
]


class ColumnValues(NamedTuple):
    """The values that the cells of columns are compared by."""

    fields: tf.Tensor  # float64 [B, C, R, 4], 0 where a field is not given
    has_value: tf.Tensor  # bool [B, C, R]
    common: tf.Tensor  # bool [B, C, 4], the fields that all values of the column have


def column_values(
    values: TextValues, shape: tf.Tensor, is_cell: tf.Tensor, num_rows: tf.Tensor
) -> ColumnValues:
    """The first value of each cell, of its column's commonest type, where 70 % have one.

    Args:
        values: of the texts of all cells, laid out flat.
        shape: B, R and C.
        is_cell: bool [B, R, C], false for padding.
        num_rows: int32 [B].
    """
    numbers, has_number = values.first(values.numbers, values.is_number, shape)
    dates, has_date = values.first(values.dates, values.is_date, shape)
    numbers = tf.cast(tf.cast(numbers, tf.float32), tf.float64)  # [B, R, C]
    has_number, has_date = has_number & is_cell, has_date & is_cell
    num_numbers, num_dates = (
        tf.math.count_nonzero(has, axis=1, keepdims=True) for has in (has_number, has_date)
    )  # [B, 1, C]
    is_of_dates = num_dates >= num_numbers
    least = COMMON_TYPE_SHARE * tf.cast(num_rows, tf.float64)[:, tf.newaxis, tf.newaxis]
    is_enough = tf.cast(tf.maximum(num_dates, num_numbers), tf.float64) >= least
    has_value = tf.where(is_of_dates, has_date, has_number) & is_enough  # [B, R, C]
    dates = tf.where(is_of_dates[..., tf.newaxis], dates, 0)
    numbers = tf.where(is_of_dates, tf.zeros_like(numbers), numbers)
    fields = tf.concat([numbers[..., tf.newaxis], tf.cast(dates, tf.float64)], axis=-1)
    fields = tf.where(has_value[..., tf.newaxis], fields, tf.zeros_like(fields))  # [B, R, C, 4]
    is_given = tf.concat(
        [tf.broadcast_to(~is_of_dates[..., tf.newaxis], tf.shape(fields[..., :1])), dates > 0],
        axis=-1,
    )
    common = tf.reduce_all(is_given | ~has_value[..., tf.newaxis], axis=1)  # [B, C, 4]
    return ColumnValues(
        tf.transpose(fields, [0, 2, 1, 3]), tf.transpose(has_value, [0, 2, 1]), common
    )


def ranks(columns: ColumnValues) -> tuple[tf.Tensor, tf.Tensor]:
    """The rank of each cell's value from the smallest and from the largest, int32 [B, R, C]."""
    has_rank = columns.has_value & tf.reduce_any(columns.common, axis=-1, keepdims=True)
    keys = _keys(columns.fields, columns.common[:, :, tf.newaxis])  # [B, C, R]
    keys = tf.where(has_rank, keys, tf.float64.max)
    in_order = tf.sort(keys)
    is_new = tf.concat(
        [tf.ones_like(in_order[..., :1], tf.bool), in_order[..., 1:] != in_order[..., :-1]], axis=-1
    )
    is_new &= in_order < tf.float64.max
    rank_in_order = tf.cumsum(tf.cast(is_new, tf.int32), axis=-1)
    places = _places(in_order, keys)
    rank = tf.gather(rank_in_order, places, batch_dims=2)
    inverse = rank_in_order[..., -1:] + 1 - rank
    return tuple(
        tf.transpose(tf.where(has_rank, of_cells, 0), [0, 2, 1]) for of_cells in (rank, inverse)
    )


def relations(columns: ColumnValues, questions: TextValues) -> tf.Tensor:
    """How a question's values compare with each cell's: bits, int32 [B, R, C].

    Args:
        columns: of the tables.
        questions: the values of the B questions.
    """
    numbers = tf.cast(tf.cast(questions.numbers, tf.float32), tf.float64)
    dates = tf.cast(questions.dates, tf.float64)
    fields = tf.concat([numbers[:, tf.newaxis], dates], axis=1)  # [V, 4]
    bits = tf.zeros_like(columns.has_value, tf.int32)  # [B, C, R]
    batch = tf.shape(bits, tf.int64)[0]
    for kind in _KINDS:
        is_given = tf.reduce_all((questions.dates > 0) == [kind[1:]], axis=1)
        is_kind = questions.is_number if kind[0] else questions.is_date & is_given
        of_kind = tf.where(is_kind)[:, 0]
        asked = tf.RaggedTensor.from_value_rowids(
            tf.gather(fields, of_kind),
            tf.gather(questions.texts, of_kind),
            nrows=batch,
            validate=False,
        )
        bits |= _relations_of_kind(columns, asked, columns.common & [[kind]])
    return tf.transpose(bits, [0, 2, 1])


def _relations_of_kind(
    columns: ColumnValues, asked: tf.RaggedTensor, common: tf.Tensor
) -> tf.Tensor:
    """The bits for values of questions that have the same fields: int32 [B, C, R].

    Args:
        columns: of the tables.
        asked: float64 [B, (Q), 4].
        common: bool [B, C, 4], the fields that they have in common with each column's.
    """
    is_asked = tf.sequence_mask(asked.row_lengths())[:, tf.newaxis]  # [B, 1, Q]
    dense = asked.to_tensor()[:, tf.newaxis]  # [B, 1, Q, 4]
    common = common[:, :, tf.newaxis]  # [B, C, 1, 4]
    keys, of_question = _keys(columns.fields, common), _keys(dense, common)  # [B, C, R], [B, C, Q]
    largest = tf.float64.max
    above = tf.where(is_asked, of_question, largest)
    below = tf.where(is_asked, of_question, -largest)
    # One more than there are, so that there is one.
    in_order = tf.pad(tf.sort(above), [[0, 0], [0, 0], [0, 1]], constant_values=largest)
    least = tf.reduce_min(above, axis=-1, keepdims=True)
    most = tf.reduce_max(below, axis=-1, keepdims=True)
    is_equal = tf.gather(in_order, _places(in_order, keys), batch_dims=2) == keys
    bits = sum(
        bit * tf.cast(holds, tf.int32)
        for bit, holds in ((EQUAL, is_equal), (LESS, least < keys), (GREATER, most > keys))
    )
    is_compared = columns.has_value & tf.reduce_any(common, axis=-1)  # [B, C, R]
    return tf.where(is_compared, bits, 0)


def _keys(fields: tf.Tensor, common: tf.Tensor) -> tf.Tensor:
    """In what values [..., 4] compare by the fields that they have in common: [...]."""
    weights = tf.constant(_WEIGHTS, tf.float64) * tf.cast(common, tf.float64)
    return tf.reduce_sum(fields * weights, axis=-1)


def _places(in_order: tf.Tensor, keys: tf.Tensor) -> tf.Tensor:
    """The first place in order [B, C, M] that is not below each key [B, C, K]: int32 [B, C, K]."""
    places = tf.searchsorted(in_order, keys)
    return tf.minimum(places, tf.shape(in_order)[-1] - 1)
