"""Answers read off a model's outputs in the graph, as the library reads them.

They are those of mate_tf/answers/decoding.py, without calibration, alternatives and least score.
Sums are added up one by one in double precision; the library adds them up exactly.

Shapes: B batch, S sequence, R rows and C columns of the largest table of the batch, A aggregations;
K body cells of all tables, padded, in one line.
"""

from collections.abc import Mapping

import tensorflow as tf

from mate_tf.answers.decoding import SELECTION_THRESHOLD
from mate_tf.models.classification import ClassificationConfig
from mate_tf.models.table_qa import TableQAConfig
from mate_tf.serving.raw_text.cells import SPACE
from mate_tf.serving.raw_text.features import RawFeatures
from mate_tf.tables.table import AGGREGATIONS

_NONE, _SUM, _COUNT = (AGGREGATIONS.index(name) for name in ("NONE", "SUM", "COUNT"))
_DIGITS = 12  # of a number that is no integer
_ZEROS = "0" * 330


def cell_answers(
    config: TableQAConfig, asked: RawFeatures, outputs: Mapping[str, tf.Tensor]
) -> dict[str, tf.Tensor]:
    """The answers of table question answering.

    Args:
        config: the model's.
        asked: the questions and tables.
        outputs: as `decode_cells` takes them.

    Returns:
        cell_scores float32 [B, R, C], the probability that a cell is selected, 0 for padding,
        unseen cells and outside the chosen column; selected bool [B, R, C]; aggregations, answers
        string [B] and scores float32 [B].
    """
    shape = tf.shape(asked.cells)
    probabilities, with_columns = _cell_probabilities(asked, outputs)  # float64 [B, R*C]
    batch, size = tf.unstack(tf.shape(probabilities))
    aggregations = tf.ones([batch, 1], tf.float64)
    if "aggregation_logits" in outputs:
        aggregations = tf.nn.softmax(tf.cast(outputs["aggregation_logits"], tf.float64))  # [B, A]
    likeliest = tf.argmax(aggregations, axis=1, output_type=tf.int32)  # [B]

    selected = tf.zeros_like(probabilities, tf.bool)
    number = tf.ones([batch], tf.int32)
    if not config.cell_cross_entropy:
        selected = probabilities > SELECTION_THRESHOLD
        expected = tf.reduce_sum(tf.maximum(probabilities, 0.0), axis=1)
        counted = tf.cast(tf.maximum(tf.round(expected), 1.0), tf.int32)
        number = tf.where(likeliest == _COUNT, counted, number)
    order = tf.math.top_k(probabilities, k=size).indices  # of equal ones the first comes first
    ranks = tf.math.top_k(-order, k=size).indices  # the place of each cell in that order
    is_likely = (ranks < number[:, tf.newaxis]) & (probabilities > -float("inf"))
    has_any = tf.reduce_any(selected, axis=1, keepdims=True)
    selected = tf.where(has_any, selected, is_likely)  # [B, R*C]

    count = tf.math.count_nonzero(selected, axis=1, dtype=tf.float64)  # [B]
    total = tf.reduce_sum(tf.where(selected, with_columns, tf.zeros_like(with_columns)), axis=1)
    score = tf.math.divide_no_nan(total, count)
    numbers, units = (
        tf.reshape(of_cells, [batch, size])
        for of_cells in (asked.columns.numbers, asked.columns.units)
    )
    is_total = tf.broadcast_to(asked.columns.is_total[..., tf.newaxis], shape)
    counted = selected & ~tf.reshape(is_total, [batch, size])
    counted = tf.where(tf.reduce_any(counted, axis=1, keepdims=True), counted, selected)
    is_summed = counted & ~tf.math.is_nan(numbers)
    num_numbers = tf.math.count_nonzero(is_summed, axis=1, dtype=tf.float64)
    is_computed = (likeliest == _COUNT) | ((likeliest != _NONE) & (num_numbers > 0.0))
    chosen = tf.where(is_computed & (count > 0.0), likeliest, _NONE)
    has_unit = counted & (units >= 0)
    least = tf.reduce_min(tf.where(has_unit, units, units.dtype.max), axis=1)
    is_unlike = least < tf.reduce_max(tf.where(has_unit, units, -1), axis=1)
    aggregation = tf.where(is_unlike & (chosen != _COUNT), _NONE, chosen)
    sums = tf.reduce_sum(tf.where(is_summed, numbers, tf.zeros_like(numbers)), axis=1)
    averages = tf.math.divide_no_nan(sums, num_numbers)
    value = tf.where(aggregation == _SUM, sums, averages)
    texts = tf.reshape(asked.cells, [batch, size])
    has_text = ~tf.strings.regex_full_match(texts, f"(?:{SPACE})?")
    filled = tf.math.count_nonzero(counted & has_text, axis=1, dtype=tf.float64)
    value = tf.where(aggregation == _COUNT, filled, value)
    is_duration = tf.broadcast_to(asked.columns.is_duration[:, tf.newaxis], shape)
    is_duration = tf.reduce_all(tf.reshape(is_duration, [batch, size]) | ~counted, axis=1)
    is_time = is_duration & (aggregation != _COUNT)
    computed = tf.where(is_time, clock_texts(value), format_numbers(value))

    selected = tf.where((aggregation == _NONE)[:, tf.newaxis], selected, counted)
    texts = tf.boolean_mask(texts, selected)
    by_example = tf.RaggedTensor.from_value_rowids(
        texts, tf.where(selected)[:, 0], nrows=tf.cast(batch, tf.int64), validate=False
    )
    joined = tf.strings.reduce_join(by_example, axis=1, separator=", ")
    score *= tf.gather(aggregations, chosen, batch_dims=1)
    return {
        "cell_scores": tf.cast(tf.reshape(tf.maximum(probabilities, 0.0), shape), tf.float32),
        "selected": tf.reshape(selected, shape),
        "aggregations": tf.gather(tf.constant(AGGREGATIONS), aggregation),
        "answers": tf.where(aggregation == _NONE, joined, computed),
        "scores": tf.cast(score, tf.float32),
    }


def class_answers(
    config: ClassificationConfig, outputs: Mapping[str, tf.Tensor]
) -> dict[str, tf.Tensor]:
    """The answers of classification.

    Returns:
        class_logits float32 [B, classes], class_indices int32 [B], answers string [B] and scores
        float32 [B].
    """
    logits = outputs["class_logits"]
    names = config.class_names or tuple(map(str, range(config.num_classes)))
    index = tf.argmax(logits, axis=1, output_type=tf.int32)
    probabilities = tf.nn.softmax(tf.cast(logits, tf.float64))
    return {
        "class_logits": logits,
        "class_indices": index,
        "answers": tf.gather(tf.constant(names), index),
        "scores": tf.cast(tf.gather(probabilities, index, batch_dims=1), tf.float32),
    }


def format_numbers(values: tf.Tensor) -> tf.Tensor:
    """Writes finite numbers, float64 [N], as `format_number` does: string [N]."""
    integers = tf.strings.as_string(values + 0.0, precision=0)  # -0.0 becomes 0.0
    parts = tf.strings.as_string(tf.abs(values), precision=_DIGITS - 1, scientific=True)
    digits = tf.strings.regex_replace(parts, r"e.*|\.", "")
    exponent = tf.strings.to_number(tf.strings.regex_replace(parts, ".*e", ""), tf.int32)
    # Zeros on both sides; those not needed are removed below.
    digits = tf.strings.join([_zeros(-exponent), digits, _zeros(exponent + 1 - _DIGITS)])
    point = tf.maximum(exponent, 0) + 1
    all_of_it = tf.strings.length(digits)
    fraction = tf.strings.substr(digits, point, all_of_it - point)
    sign = tf.where(values < 0.0, "-", "")
    decimals = tf.strings.join([sign, tf.strings.substr(digits, 0 * point, point), ".", fraction])
    decimals = tf.strings.regex_replace(decimals, r"\.?0*$", "")
    return tf.where(values == tf.round(values), integers, decimals)


def clock_texts(values: tf.Tensor) -> tf.Tensor:
    """Writes seconds, float64 [N], as `clock_text` does: string [N]."""
    seconds = tf.abs(values)
    whole = tf.cast(seconds, tf.int64)
    rest = tf.strings.as_string(seconds - tf.cast(whole, tf.float64), precision=6)
    rest = tf.strings.regex_replace(tf.strings.regex_replace(rest, "0+$", ""), r"^0|\.$", "")
    parts = [
        tf.strings.as_string(part, width=2, fill="0")
        for part in (whole // 3600, whole // 60 % 60, whole % 60)
    ]
    sign = tf.where(values < 0.0, "-", "")
    return tf.strings.join([sign, tf.strings.join(parts, ":"), rest])


def _zeros(number: tf.Tensor) -> tf.Tensor:
    """Strings [N] of as many zeros as the numbers int32 [N] say."""
    number = tf.maximum(number, 0)
    return tf.strings.substr(tf.fill(tf.shape(number), _ZEROS), 0 * number, number)


def _cell_probabilities(
    asked: RawFeatures, outputs: Mapping[str, tf.Tensor]
) -> tuple[tf.Tensor, tf.Tensor]:
    """The probability of each cell, -inf where it was not seen: float64 [B, R*C], in two ways.

    Returns:
        The probability by which cells are selected; and that given the cell's column, times the
        column's probability.
    """
    shape = tf.shape(asked.cells)
    cells, num_tokens = _token_cells(asked)  # [B * S], [B, R*C]
    is_seen = num_tokens > 0
    flat = [shape[0], shape[1] * shape[2]]

    def mean_by_cell(name: str) -> tf.Tensor:
        values = tf.reshape(tf.cast(outputs[name], tf.float64), [-1])
        sums = tf.math.unsorted_segment_sum(values, cells, tf.reduce_prod(shape))
        return tf.reshape(sums, flat) / tf.cast(tf.maximum(num_tokens, 1), tf.float64)

    unseen = tf.constant(-float("inf"), tf.float64)
    probabilities = tf.where(is_seen, mean_by_cell("token_probabilities"), unseen)
    if "column_logits" not in outputs:
        return probabilities, probabilities
    column_logits = tf.cast(outputs["column_logits"], tf.float64)
    columns = tf.tile(tf.range(1, shape[2] + 1), [shape[1]])  # [R*C]
    columns = tf.minimum(columns, tf.shape(column_logits)[1] - 1)
    likeliest = 1 + tf.argmax(column_logits[:, 1:], axis=1, output_type=tf.int32)  # [B]
    of_columns = tf.gather(tf.nn.softmax(column_logits), columns, axis=1)  # [B, R*C]
    in_columns = tf.sigmoid(mean_by_cell("token_logits"))
    in_columns = tf.where(probabilities > 0.0, probabilities, in_columns)
    in_columns = tf.where(is_seen, in_columns, unseen)
    is_chosen = columns == likeliest[:, tf.newaxis]
    return tf.where(is_chosen, in_columns, probabilities), in_columns * of_columns


def _token_cells(asked: RawFeatures) -> tuple[tf.Tensor, tf.Tensor]:
    """The body cell of each token, or -1, [B * S]; and the number of tokens of each, [B, R*C]."""
    shape = tf.shape(asked.cells)
    rows, columns = asked.tokens.row_ids - 1, asked.tokens.column_ids - 1
    cells = (tf.range(shape[0])[:, tf.newaxis] * shape[1] + rows) * shape[2] + columns
    cells = tf.reshape(tf.where((rows >= 0) & (columns >= 0), cells, -1), [-1])
    ones = tf.ones_like(cells)
    num_tokens = tf.math.unsorted_segment_sum(ones, cells, tf.reduce_prod(shape))
    return cells, tf.reshape(num_tokens, [shape[0], shape[1] * shape[2]])
