"""Columns of tables in the graph: how each was written, its values, their order and comparison.

It computes what mate_tf/tables/columns.py and `values_of_column`, `ranks` and `relations` of
mate_tf/features/numeric.py make of tables and questions.

A value has five fields: number, year, month, day and seconds; one that is not given is NaN. Values
are compared by keys made of the fields that all of them have.

Shapes: B batch, R rows, C columns, V values of all questions, Q values of a question; K and M any.
"""

import itertools
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from mate_tf.features.numeric import EQUAL, GREATER, LEAST_TOO_LARGE, LESS
from mate_tf.serving.raw_text.cells import (
    Cells,
    day_of_digits,
    in_utc,
    is_one_of,
    mapped,
    read_cells,
)
from mate_tf.serving.raw_text.numbers import QuestionValues, fields_of_texts, text_values
from mate_tf.tables import notations
from mate_tf.tables.columns import (
    DAY_NAME,
    HOURS_NAME,
    LENGTH_NAME,
    SAME,
    SHARE_OF_KIND,
    TIME_NAME,
    YEAR_NAME,
)

_NAN = np.float64("nan")
_KNOWN_UNITS = sorted(notations.UNITS | notations.CURRENCY_UNITS)
# Of numbers, and of dates so that later ones are larger.
_DAY = 86_400.0
_WEIGHTS = (1.0, 10_000.0 * _DAY, 100.0 * _DAY, _DAY, 1.0)
# The fields that a value may have.
_KINDS = [(True, False, False, False, False)] + [
    (False, *given) for given in itertools.product((True, False), repeat=4) if any(given)
]


class Columns(NamedTuple):
    """Tables as they were understood: what is computed of cells, and what they are compared by."""

    fields: tf.Tensor  # float64 [B, C, R, 5], what cells are compared by; NaN for none
    number_way: tf.Tensor  # int32 [B, C], which of `Cells.numbers` a column has
    date_way: tf.Tensor  # int32 [B, C], which of `Cells.dates`
    numbers: tf.Tensor  # float64 [B, R, C], to compute with; NaN for none
    units: tf.Tensor  # int32 [B, R, C], known ones; -1 for none
    is_duration: tf.Tensor  # bool [B, C]
    is_time: tf.Tensor  # bool [B, C], columns of dates or times of day
    is_total: tf.Tensor  # bool [B, R], rows that are totals of others


def read_columns(
    headers: tf.Tensor, cells: tf.Tensor, is_cell: tf.Tensor, num_rows: tf.Tensor, version: int
) -> Columns:
    """Reads the columns of tables.

    Args:
        headers: string [B, C].
        cells: string [B, R, C], empty where there is padding.
        is_cell: bool [B, R, C], false for padding.
        num_rows: int32 [B].
        version: `FeatureConfig.numbers_version`.
    """
    shape = tf.shape(cells, tf.int64)
    flat = tf.reshape(cells, [-1])
    signed = tf.reshape(_with_signs(cells), [-1])
    parts = (
        tf.reshape(part, tf.concat([shape, tf.shape(part, tf.int64)[1:]], axis=0))
        for part in read_cells(signed)
    )
    read = Cells(*parts)
    names = tf.strings.lower(headers, encoding="utf-8")
    number_way, date_way = _number_way(read, cells), _date_way(read)
    number_index = tf.broadcast_to(number_way[:, tf.newaxis], tf.shape(cells))
    numbers = tf.gather(read.numbers, number_index, batch_dims=3)  # [B, R, C]
    units = tf.gather(read.units, number_index // 2, batch_dims=3)
    are_labels = _are_labels(units)[:, tf.newaxis]
    numbers, units = tf.where(are_labels, _NAN, numbers), tf.where(are_labels, "", units)
    numbers, units = _with_sides(read.text, numbers, units)
    date_index = tf.broadcast_to(date_way[:, tf.newaxis], tf.shape(cells))
    dates = tf.gather(read.dates, date_index, batch_dims=3)  # [B, R, C, 4]
    zone, has_zone = read.zone, _given(read.zone) & tf.reduce_all(_given(dates), axis=-1)
    least, most = _range(zone, _given(zone))
    is_shifted = has_zone & (least < most)[:, tf.newaxis]
    dates = tf.where(is_shifted[..., tf.newaxis], in_utc(dates, zone), dates)

    has_date = tf.reduce_any(_given(dates), axis=-1)
    may_be_years = tf.reduce_any(has_date, axis=1) | _has(names, YEAR_NAME.pattern)
    is_of_years = tf.reduce_any(read.is_year, axis=1) & may_be_years
    none = tf.fill(tf.shape(dates[..., 1:]), _NAN)
    as_year = tf.concat([numbers[..., tf.newaxis], none], axis=-1)
    is_lone_year = read.is_year & is_of_years[:, tf.newaxis]
    dates = tf.where(is_lone_year[..., tf.newaxis], as_year, dates)
    has_date |= is_lone_year
    is_of_days = ~tf.reduce_any(has_date, axis=1) & _has(names, DAY_NAME.pattern)  # [B, C]
    days = tf.reshape(day_of_digits(tf.reshape(read.text, [-1])), tf.shape(dates))
    dates = tf.where(is_of_days[:, tf.newaxis, :, tf.newaxis], days, dates)
    has_date |= tf.reduce_any(_given(dates), axis=-1)
    seconds, as_time = _seconds(read, names)
    is_hour = (units == "h") & (numbers >= 0) & (numbers < 24)  # 9h beside 9h30
    seconds = tf.where(is_hour & as_time[:, tf.newaxis], 3600 * numbers, seconds)
    times = tf.where(as_time[:, tf.newaxis], seconds, _NAN)
    lengths = tf.where(as_time[:, tf.newaxis] | _given(read.duration), read.duration, seconds)
    in_parts = _given(read.clock) & (read.clock != tf.floor(read.clock))
    has_part = tf.reduce_any(in_parts, axis=[1, 3]) & ~as_time  # 59.20 beside 1:02.05
    is_length = has_part[:, tf.newaxis] & ~_given(lengths) & (units == "")
    lengths = tf.where(is_length, numbers, lengths)
    sizes = mapped(units, notations.SECONDS, _NAN, tf.float64)
    least, most = _range(sizes, _given(sizes))
    has_lengths = tf.reduce_any(_given(lengths), axis=1) | (least < most)  # [B, C]
    is_filled = has_lengths[:, tf.newaxis] & ~_given(lengths)
    lengths = tf.where(is_filled, numbers * sizes, lengths)

    # In the order of preference where two kinds have as many cells.
    has = tf.stack([has_date, _given(times), _given(lengths), _given(numbers)], axis=1)
    counts = tf.math.count_nonzero(has, axis=2)  # [B, 4, C]
    num_filled = tf.math.count_nonzero(read.text != "", axis=1)  # [B, C]
    most, filled = (tf.cast(it, tf.float64) for it in (tf.reduce_max(counts, axis=1), num_filled))
    is_enough = most >= SHARE_OF_KIND * filled
    kind = tf.where(is_enough, tf.argmax(counts, axis=1, output_type=tf.int32), 4)
    kind = tf.where(num_filled > 0, kind, 5)  # 0 dates, 1 times, 2 lengths, 3 numbers, 4 text
    is_duration = kind == 2
    known = tf.where(is_duration[:, tf.newaxis], -1, _unit_places(units))
    amounts = tf.where(is_duration[:, tf.newaxis], lengths, numbers)
    is_amount = (kind == 2) | (kind == 3)
    is_total = _total_rows(read.text, tf.where(is_amount[:, tf.newaxis], amounts, _NAN))

    old = text_values(flat)
    others = amounts, known, is_duration, kind < 2, is_total
    if version == 1:
        fields = fields_of_texts(old, shape, is_cell, num_rows)
        way = tf.zeros_like(kind)
        return Columns(tf.transpose(fields, [0, 2, 1, 3]), way, way, *others)
    is_read = (read.text != "") & (read.order != 3)
    of_text = fields_of_texts(old, shape, is_cell & is_read, num_rows)
    of_kind = kind[:, tf.newaxis]
    has_number = _given(numbers)
    all_years = tf.reduce_all(read.is_year | ~has_number, axis=1, keepdims=True)
    is_of_years = (of_kind == 3) & all_years
    single = tf.where(tf.abs(numbers) < LEAST_TOO_LARGE, numbers, _NAN)
    number = tf.where((of_kind == 3) & ~all_years, single, _NAN)
    number = tf.where(of_kind == 2, lengths, tf.where(of_kind == 1, times, number))
    date = tf.where((of_kind == 0)[..., tf.newaxis], dates, _NAN)
    date = tf.where((is_of_years & read.is_year)[..., tf.newaxis], as_year, date)
    fields = tf.concat([number[..., tf.newaxis], date], axis=-1)
    fields = tf.where((of_kind == 4)[..., tf.newaxis], of_text, fields)
    return Columns(tf.transpose(fields, [0, 2, 1, 3]), number_way, date_way, *others)


def _total_rows(texts: tf.Tensor, amounts: tf.Tensor) -> tf.Tensor:
    """Which rows are totals of others, as `total_rows` of the library: bool [B, R].

    Args:
        texts: string [B, R, C], of cells; "" without a value.
        amounts: float64 [B, R, C], NaN where a column is none of numbers.
    """
    first = tf.argmax(texts != "", axis=2)  # [B, R]
    firsts = tf.gather(texts, first, batch_dims=2)
    is_named = tf.strings.regex_full_match(firsts, notations.TOTAL.pattern)
    none = tf.zeros_like(amounts)
    parts = tf.where(is_named[..., tf.newaxis] | ~_given(amounts), none, amounts)
    above = tf.cumsum(parts, axis=1, exclusive=True)
    # The first row of each block, which ends in a row that is called a total.
    batch, size = tf.unstack(tf.shape(is_named))
    rows = tf.broadcast_to(tf.range(size), [batch, size])
    blocks = tf.cumsum(tf.cast(is_named, tf.int32), axis=1, exclusive=True)
    blocks += size * tf.range(batch)[:, tf.newaxis]
    begins = tf.gather(tf.math.unsorted_segment_min(rows, blocks, batch * size), blocks)
    block = above - tf.gather(above, begins, batch_dims=1)
    is_first = (rows == 0)[..., tf.newaxis]
    others = tf.where(is_first, tf.reduce_sum(parts, axis=1, keepdims=True), none)
    is_sum = tf.zeros_like(amounts, tf.bool)
    for added in (above, block, others):
        near = SAME * tf.maximum(tf.maximum(tf.abs(amounts), tf.abs(added)), 1.0)
        is_sum |= tf.abs(amounts - added) <= near
    return is_named & tf.reduce_any(is_sum & (amounts != 0.0), axis=2)


def _with_signs(cells: tf.Tensor) -> tf.Tensor:
    """The cells with signs for arrows that point up, as in the library."""
    up, down, digit = (
        _has(cells, pattern.pattern)
        for pattern in (notations.UP, notations.DOWN, notations.NOT_ZERO)
    )
    has_down = tf.reduce_any(down, axis=1, keepdims=True)
    has_others = tf.reduce_any(digit & ~up, axis=1, keepdims=True)
    plus, minus = (tf.strings.regex_replace(cells, notations.UP.pattern, sign) for sign in "+-")
    return tf.where(up & has_down, plus, tf.where(up & has_others, minus, cells))


def _with_sides(
    texts: tf.Tensor, numbers: tf.Tensor, units: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
    """Numbers and units; debits are negative where each cell is a debit or a credit."""
    for sides in notations.SIDES:
        debit, credit = (tf.strings.regex_full_match(texts, side.pattern) for side in sides)
        has_both = tf.reduce_any(debit, axis=1) & tf.reduce_any(credit, axis=1)
        has_both &= tf.reduce_all(debit | credit | (texts == ""), axis=1)
        has_both = has_both[:, tf.newaxis]
        numbers = tf.where(has_both & debit, -numbers, numbers)
        units = tf.where(has_both, "", units)
    return numbers, units


def _range(values: tf.Tensor, is_given: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """The least and the most in each column, [B, C]; inf and -inf where there are none."""
    least = tf.reduce_min(tf.where(is_given, values, np.inf), axis=1)
    return least, tf.reduce_max(tf.where(is_given, values, -np.inf), axis=1)


def _given(values: tf.Tensor) -> tf.Tensor:
    return ~tf.math.is_nan(values)


def _or_zero(values: tf.Tensor) -> tf.Tensor:
    return tf.where(_given(values), values, 0.0)


def _has(names: tf.Tensor, pattern: str) -> tf.Tensor:
    return tf.strings.regex_full_match(names, f"(?s).*(?:{pattern}).*")


def _unit_places(units: tf.Tensor) -> tf.Tensor:
    """The number of each known unit, -1 for others: int32."""
    bare = tf.strings.regex_replace(tf.strings.regex_replace(units, r" \(.*", ""), r"\.+$", "")
    places = {unit: place for place, unit in enumerate(_KNOWN_UNITS)}
    return mapped(bare, places, -1, tf.int32)


def _number_way(cells: Cells, texts: tf.Tensor) -> tf.Tensor:
    """Which of the ways of writing numbers each column has, int32 [B, C]."""
    point, comma = tf.unstack(cells.is_both, axis=-1)
    points = tf.math.count_nonzero(point & ~comma, axis=1)
    commas = tf.math.count_nonzero(comma & ~point, axis=1)
    is_pointed = is_one_of(cells.units[..., 0], notations.POINTED_CURRENCIES)
    is_pointed &= cells.numbers[..., 0] != cells.numbers[..., 1]
    commas += tf.math.count_nonzero(is_pointed, axis=1)
    factor = cells.factor
    least = tf.reduce_min(tf.where(factor > 0, factor, 99), axis=1)
    most = tf.reduce_max(factor, axis=1)
    is_money = is_one_of(cells.units[..., 0], notations.CURRENCY_UNITS)
    others = tf.reduce_any(cells.has_power | is_money, axis=1)
    in_capitals, in_parts = (
        tf.strings.regex_full_match(texts, pattern.pattern)
        for pattern in (notations.IN_CAPITALS, notations.IN_PARTS)
    )
    in_capitals = tf.reduce_all(in_capitals | (cells.text == ""), axis=1)
    others |= in_capitals & tf.reduce_any(in_parts & (cells.text != ""), axis=1)
    is_weak = (most > 0) & (others | (least < most))
    return tf.where(commas > points, 1, 0) + tf.where(is_weak, 2, 0)


def _date_way(cells: Cells) -> tf.Tensor:
    """Which of the orders of day and month each column has, int32 [B, C]: 0 if undecided."""
    days, months, has_open = (tf.reduce_any(cells.order == order, axis=1) for order in (1, 2, 3))
    has_slash = tf.reduce_any((cells.order == 3) & _has(cells.text, "/"), axis=1)
    is_decided = tf.math.logical_xor(days, months) | (has_open & ~days & ~months & ~has_slash)
    return tf.where(is_decided, tf.where(days, 1, 2), 0)


def _are_labels(units: tf.Tensor) -> tf.Tensor:
    """In which columns [B, C] names follow the numbers, no units, as in the library."""
    is_other = (tf.strings.length(units, unit="UTF8_CHAR") > 1) & (_unit_places(units) < 0)
    begins = tf.strings.substr(units, 0, 2, unit="UTF8_CHAR")
    of_columns = tf.transpose(begins, [0, 2, 1])
    first = tf.gather(of_columns, tf.argmax(is_other, axis=1), batch_dims=2)  # [B, C]
    is_different = is_other & (begins != first[:, tf.newaxis])
    different, others = (tf.math.count_nonzero(it, axis=1) for it in (is_different, is_other))
    return (different > 0) & (2 * different >= others)


def _seconds(cells: Cells, names: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """The clocks in seconds, float64 [B, R, C], and whether a column's are times, bool [B, C]."""
    a, b, c = tf.unstack(cells.clock, axis=-1)
    is_clock, length = _given(a), tf.math.count_nonzero(_given(cells.clock), axis=-1)
    last = tf.where(length == 3, c, tf.where(length == 2, b, a))
    is_end = (a == 24) & (_or_zero(b) == 0) & (_or_zero(c) == 0)
    is_odd = is_clock & (((a >= 24) & ~is_end) | (last != tf.floor(last)))
    is_odd |= tf.reduce_any(cells.clock < 0, axis=-1)
    is_odd |= is_clock & tf.strings.regex_full_match(cells.text, r"\+.*")
    has_three = tf.reduce_any(length == 3, axis=1)
    lengths = tf.stack([tf.reduce_any(length == n, axis=1) for n in (1, 2, 3)])
    is_mixed = tf.math.count_nonzero(lengths, axis=0) > 1
    is_length = tf.reduce_any(is_odd | _given(cells.duration), axis=1) | is_mixed
    is_of_hours = _has(names, HOURS_NAME.pattern) & ~_has(names, TIME_NAME.pattern)
    is_length |= _has(names, LENGTH_NAME.pattern) | is_of_hours
    is_one_digit = is_clock & tf.strings.regex_full_match(cells.text, "[0-9]:.*")
    is_zero = is_clock & tf.strings.regex_full_match(cells.text, "00:.*")
    num_clocks = tf.math.count_nonzero(is_clock, axis=1)
    is_long = ~tf.reduce_any(is_one_digit, axis=1)
    is_long &= 2 * tf.math.count_nonzero(is_zero, axis=1) < num_clocks
    as_time = ~is_length & (_has(names, TIME_NAME.pattern) | ~has_three | is_long)
    as_time |= tf.reduce_any(cells.is_time, axis=1)
    two = tf.where((as_time | is_of_hours)[:, tf.newaxis], a * 3600 + b * 60, a * 60 + b)
    seconds = tf.where(length == 3, a * 3600 + b * 60 + c, tf.where(length == 2, two, a))
    return seconds, as_time & (num_clocks > 0)


def ranks(columns: Columns, version: int) -> tuple[tf.Tensor, tf.Tensor]:
    """The rank of each cell's value from the smallest and from the largest, int32 [B, R, C].

    Rows that are totals have none, but in version 1 of `FeatureConfig.numbers_version`.
    """
    if version > 1:
        is_total = columns.is_total[:, tf.newaxis, :, tf.newaxis]
        columns = columns._replace(fields=tf.where(is_total, _NAN, columns.fields))
    has_value, common = _compared(columns)
    has_rank = has_value & tf.reduce_any(common, axis=-1, keepdims=True)
    keys = _keys(columns.fields, common[:, :, tf.newaxis])  # [B, C, R]
    keys = tf.where(has_rank, keys, tf.float64.max)
    in_order = tf.sort(keys)
    is_first = tf.ones_like(in_order[..., :1], tf.bool)
    is_new = tf.concat([is_first, in_order[..., 1:] != in_order[..., :-1]], axis=-1)
    is_new &= in_order < tf.float64.max
    rank_in_order = tf.cumsum(tf.cast(is_new, tf.int32), axis=-1)
    places = _places(in_order, keys)
    rank = tf.gather(rank_in_order, places, batch_dims=2)
    inverse = rank_in_order[..., -1:] + 1 - rank
    return tuple(
        tf.transpose(tf.where(has_rank, of_cells, 0), [0, 2, 1]) for of_cells in (rank, inverse)
    )


def relations(columns: Columns, questions: QuestionValues) -> tf.Tensor:
    """How a question's values compare with each cell's: bits, int32 [B, R, C]."""
    by_way = tf.transpose(questions.numbers, [0, 2, 1])
    numbers = tf.gather(by_way, columns.number_way, batch_dims=1)[..., tf.newaxis]  # [B, C, Q, 1]
    by_way = tf.transpose(questions.dates, [0, 2, 1, 3])
    dates = tf.gather(by_way, columns.date_way, batch_dims=1)  # [B, C, Q, 4]
    none = tf.fill(tf.shape(dates), _NAN)
    of_numbers = tf.concat([numbers, none], axis=-1)
    of_dates = tf.concat([none[..., :1], dates], axis=-1)
    fields = tf.concat([of_numbers, of_dates], axis=2)  # [B, C, 2 Q, 5]
    is_given = _given(fields)
    has_value, common = _compared(columns)
    bits = tf.zeros_like(has_value, tf.int32)  # [B, C, R]
    for kind in _KINDS:
        is_asked = tf.reduce_all(is_given == list(kind), axis=-1)
        of_kind = common & [[kind]]
        found = _relations_of_kind(columns.fields, fields, is_asked, of_kind)
        bits |= tf.where(has_value, found, 0)
    return tf.transpose(bits, [0, 2, 1])


def _compared(columns: Columns) -> tuple[tf.Tensor, tf.Tensor]:
    """Which cells have a value, bool [B, C, R], and the fields that all of a column have."""
    is_given = _given(columns.fields)
    has_value = tf.reduce_any(is_given, axis=-1)
    return has_value, tf.reduce_all(is_given | ~has_value[..., tf.newaxis], axis=2)


def _relations_of_kind(
    cells: tf.Tensor, questions: tf.Tensor, is_asked: tf.Tensor, common: tf.Tensor
) -> tf.Tensor:
    """The bits for values of questions that have the same fields: int32 [B, C, R].

    Args:
        cells: float64 [B, C, R, 5].
        questions: float64 [B, C, Q, 5].
        is_asked: bool [B, C, Q].
        common: bool [B, C, 5], the fields that they have in common with each column's.
    """
    common = common[:, :, tf.newaxis]  # [B, C, 1, 5]
    keys, of_question = _keys(cells, common), _keys(questions, common)  # [B, C, R], [B, C, Q]
    largest = tf.float64.max
    above = tf.where(is_asked, of_question, largest)
    below = tf.where(is_asked, of_question, -largest)
    one_more = [[0, 0], [0, 0], [0, 1]]  # so that there is always one
    in_order = tf.pad(tf.sort(above), one_more, constant_values=largest)
    least = tf.reduce_min(in_order, axis=-1, keepdims=True)
    below = tf.pad(below, one_more, constant_values=-largest)
    most = tf.reduce_max(below, axis=-1, keepdims=True)
    is_equal = tf.gather(in_order, _places(in_order, keys), batch_dims=2) == keys
    bits = sum(
        bit * tf.cast(holds, tf.int32)
        for bit, holds in ((EQUAL, is_equal), (LESS, least < keys), (GREATER, most > keys))
    )
    return tf.where(tf.reduce_any(common, axis=-1), bits, 0)


def _keys(fields: tf.Tensor, common: tf.Tensor) -> tf.Tensor:
    """Keys [...] by which values [..., 5] compare in the fields that they have in common."""
    used = tf.where(common & _given(fields), fields, 0.0)
    return tf.reduce_sum(used * tf.constant(_WEIGHTS, tf.float64), axis=-1)


def _places(in_order: tf.Tensor, keys: tf.Tensor) -> tf.Tensor:
    """The first place in order [B, C, M] that is not below each key [B, C, K]: int32 [B, C, K]."""
    places = tf.searchsorted(in_order, keys)
    return tf.minimum(places, tf.shape(in_order)[-1] - 1)
