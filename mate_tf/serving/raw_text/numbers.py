"""Numbers and dates in texts, their order and comparison, in the graph.

It computes what version 1 of mate_tf/features/numeric.py makes of texts, also for models of version
2: a column does not decide how its numbers and dates are written. Numbers such as 1,234.5 and dates
such as 2024-01-31 and May 5, 2024 are read alike in both; for other forms ask the library or the
server, which read them by their column. Each word is put between two marks, so
that regular expressions without look-around see where it begins and ends. One expression finds the
values from left to right, the longest first. Rare texts are read differently:

- Only ASCII digits are read.
- Values that overlap without one being within the other, as in "1 may 5" or "monday, may 5, 2004",
  are read from the left, each beginning where the last one ended.
- A number too large for single precision, or a February 29 that is not in its year, is not read,
  nor is any part of it.

A value has four fields: number, year, month and day. Values are compared by keys made of the fields
that all of them have; a column has either numbers or dates.

Shapes: N texts, V values of all texts, text by text; B batch, R rows, C columns, Q values of a
question; K and M any.
"""

import itertools
from typing import NamedTuple

import tensorflow as tf
import tensorflow_text as tf_text

from mate_tf.features.numeric import (
    CARDINALS,
    COMMON_TYPE_SHARE,
    EQUAL,
    GREATER,
    LESS,
    MONTHS,
    ORDINALS,
    WEEKDAYS,
)

EN_DASH = "\N{EN DASH}"
MINUS_SIGNS = f"-{EN_DASH}\N{MINUS SIGN}"
CURRENCY_SIGNS = "$€£¥₹"
DOLLARS = "us|au|ca|nz|hk|mx|a|c|s|r"  # what stands before the sign of some
MULTIPLES = "k|m|mn|b|bn|thousand|million|billion|trillion"  # as units, which are not read
POWER_OF_TEN = rf"[{MINUS_SIGNS}]?[0-9]+(?:\.[0-9]+)?e[+-]?[0-9][0-9]?"  # 2.5e-05, alone in a cell
LARGEST_POWER = 1e38  # the features are in single precision
_BEGIN, _END = "\x01", "\x02"
_SPACE = (
    r"[\t-\r\x{1c}-\x{20}\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}"
    r"\x{3000}]+"
)
_MINUS = "\N{MINUS SIGN}"
_SHORT_MONTHS = [month[:3] for month in MONTHS]
_YEAR = r"(?:000[1-9]|00[1-9]\d|0[1-9]\d\d|[1-9]\d{3})"
_LONE_YEAR = r"(?:1[5-9]\d\d|20\d\d|2100)"
_ORDINAL = "(?:st|nd|rd|th)?"
# Months by the number of their days, and the patterns of these.
_LENGTHS = (
    ((1, 3, 5, 7, 8, 10, 12), r"(?:0?[1-9]|[12]\d|3[01])"),
    ((4, 6, 9, 11), r"(?:0?[1-9]|[12]\d|30)"),
    ((2,), r"(?:0?[1-9]|[12]\d)"),
)


def _word(pattern: str) -> str:
    return f"{_BEGIN}(?:{pattern}){_END}"


def _names(months: tuple[int, ...]) -> str:
    names = [MONTHS[month - 1] for month in months] + [_SHORT_MONTHS[m - 1] for m in months]
    return "|".join([*names, *(["sept"] if 9 in months else [])])


def _dates() -> list[str]:
    """Expressions for dates, those of the most words first."""
    three, two = [], []
    year = _word(_YEAR)
    for months, day_numbers in _LENGTHS:
        name, number = _word(_names(months)), _word("|".join(f"0?{month}" for month in months))
        day, plain_day = _word(day_numbers + _ORDINAL), _word(day_numbers)
        three += [
            rf"{_word('|'.join(WEEKDAYS))}, {name}\.? {day}",
            rf"{name}\.? {day}, {year}",
            rf"{day} {name}\.? {year}",
            f"{number}-{plain_day}-{year}",
            f"{year}-{number}-{plain_day}",
            rf"{plain_day}\.{number}\.{year}",
        ]
        two += [rf"{name}\.? {year}", rf"{name}\.? {day}", f"{day} {name}", f"{year}-{number}"]
    return [*three, *two, _word("|".join(MONTHS)), _word(f"{_LONE_YEAR}s")]


_POWER = _word(r"\d+e\d{1,2}")  # Python reads "1e5" as a number
_DIGITS = rf"{_BEGIN}?\d+(?:{_END},{_BEGIN}\d\d\d)*(?:{_END}\.(?:{_BEGIN}\d+)?)?|\.{_BEGIN}\d+"
_NUMBER = rf"(?:{_POWER}|(?: [+{_MINUS}-])?(?:{_DIGITS}){_END}?)"
_NUMBER_WORDS = [f"{_BEGIN}{word}{_END}" for word in (*CARDINALS, *ORDINALS)]
_VALUE = "|".join([*_dates(), *_NUMBER_WORDS, _NUMBER])
# A negative amount, as `unit_free_number` finds it: a sign first, or parentheses around it.
_CURRENCY = rf"(?:{_BEGIN}(?:{DOLLARS}){_END})?[{CURRENCY_SIGNS}]"
_NEGATIVE = (
    rf"(?s) (?:(?:{EN_DASH}|[{MINUS_SIGNS}]{_CURRENCY} ?|{_CURRENCY} ?[{MINUS_SIGNS}])"
    rf"\.?{_BEGIN}\d.*"
    rf"|(?:\( ?{_CURRENCY} ?|{_CURRENCY} ?\( ?)\.?{_BEGIN}\d[\d,.{_BEGIN}{_END}]* ?"
    rf"(?:%|{_BEGIN}?(?:{MULTIPLES}){_END})? ?\))"
)
_FULL_MONTH = _word("|".join(MONTHS))
_ANY_VALUE = rf"(?s).*(?:\d|{'|'.join([_FULL_MONTH, *_NUMBER_WORDS])}).*"

_SOME_MONTH = f"{_BEGIN}({'|'.join(_SHORT_MONTHS)})[a-z]*{_END}"
_SOME_DAY = rf"{_BEGIN}(\d\d?){_ORDINAL}{_END}"
_SOME_YEAR = rf"{_BEGIN}(\d{{4}}){_END}"
_SOME_NUMBER = rf"{_BEGIN}(\d\d?){_END}"
# The whole of a date, and its year, month and day between bars.
_FIELDS = (
    (rf"{_BEGIN}[a-z]+{_END}, {_SOME_MONTH}\.? {_SOME_DAY}", r"|\1|\2"),
    (rf"{_SOME_MONTH}\.? {_SOME_DAY}(?:, {_SOME_YEAR})?", r"\3|\1|\2"),
    (rf"{_SOME_MONTH}(?:\.? {_SOME_YEAR})?", r"\2|\1|"),
    (rf"{_SOME_DAY} {_SOME_MONTH}(?:\.? {_SOME_YEAR})?", r"\3|\2|\1"),
    (rf"{_SOME_NUMBER}-{_SOME_NUMBER}-{_SOME_YEAR}", r"\3|\1|\2"),
    (rf"{_SOME_YEAR}-{_SOME_NUMBER}(?:-{_SOME_NUMBER})?", r"\1|\2|\3"),
    (rf"{_SOME_NUMBER}\.{_SOME_NUMBER}\.{_SOME_YEAR}", r"\3|\2|\1"),
    (rf"{_BEGIN}({_LONE_YEAR})s?{_END}", r"\1||"),
)


class TextValues(NamedTuple):
    """The numbers and dates of texts; a lone year is both.

    Attributes:
        texts: the text of each, int64 [V], ascending.
        numbers: float64 [V], as exact as the text is; 0 where it is no number.
        is_number: bool [V].
        amounts: float64 [V], to compute with: the numbers with signs and powers of ten, which the
            features of trained models lack.
        dates: year, month and day, int32 [V, 3]; 0 where the text does not say it.
        is_date: bool [V].
    """

    texts: tf.Tensor
    numbers: tf.Tensor
    is_number: tf.Tensor
    amounts: tf.Tensor
    dates: tf.Tensor
    is_date: tf.Tensor

    def first(
        self, values: tf.Tensor, is_one: tf.Tensor, shape: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """The first number or date of each text, 0 where there is none, and whether it has one.

        Args:
            values: numbers [V] or dates [V, 3].
            is_one: bool [V], whether they are.
            shape: int64, of the texts.
        """
        texts, values = tf.boolean_mask(self.texts, is_one), tf.boolean_mask(values, is_one)
        number = tf.shape(texts, tf.int64)[0]
        first = tf.math.unsorted_segment_min(tf.range(number), texts, tf.reduce_prod(shape))
        padded = tf.concat([values, tf.zeros([1, *values.shape[1:]], values.dtype)], axis=0)
        of_texts = tf.gather(padded, tf.minimum(first, number))
        full_shape = tf.concat([shape, tf.constant(values.shape[1:].as_list(), tf.int64)], axis=0)
        return tf.reshape(of_texts, full_shape), tf.reshape(first < number, shape)


def text_values(texts: tf.Tensor) -> TextValues:
    """The numbers and dates in texts, string [N], from left to right."""
    marked = _marked(texts)
    found = tf_text.regex_split(marked, _VALUE, _VALUE)  # and what is between them
    is_value = tf.strings.regex_full_match(found.values, _VALUE)
    of_text = tf.boolean_mask(found.value_rowids(), is_value)  # [V]
    stretches = tf.boolean_mask(found.values, is_value)
    numbers, is_number = _numbers(stretches)
    dates, is_date = _date_fields(stretches)
    is_first = tf.concat([tf.ones_like(of_text[:1]), of_text[1:] - of_text[:-1]], axis=0) > 0
    is_signed = tf.strings.regex_full_match(marked, _NEGATIVE)  # [N]
    amounts = tf.where(is_first & tf.gather(is_signed, of_text), 0.0 - tf.abs(numbers), numbers)
    powers, is_power = (tf.gather(of_texts, of_text) for of_texts in _powers(marked))
    amounts = tf.where(is_first & is_power, powers, amounts)
    return TextValues(of_text, numbers, is_number, amounts, dates, is_date)


def _marked(texts: tf.Tensor) -> tf.Tensor:
    """The texts in lower case, with one blank before all and between others, and marked words."""
    texts = tf.strings.unicode_transcode(texts, "UTF-8", "UTF-8", errors="ignore")
    # None of these is in a word or number, and TensorFlow stops to lower-case at a null.
    texts = tf.strings.regex_replace(texts, rf"[\x{{0}}{_BEGIN}{_END}]", "_")
    texts = tf.strings.lower(texts, encoding="utf-8")
    texts = tf.strings.regex_replace(texts, _SPACE, " ")
    texts = tf.strings.join([" ", tf.strings.strip(texts)])
    texts = tf.strings.regex_replace(texts, r"[\p{L}\p{N}]+", rf"{_BEGIN}\0{_END}")
    return tf.where(tf.strings.regex_full_match(texts, _ANY_VALUE), texts, "")


def _powers(marked: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Texts that are a number with a power of ten: the numbers, float64 [N], and bool [N]."""
    texts = tf.strings.regex_replace(marked, f"^ |[{_BEGIN}{_END}]", "")
    is_power = tf.strings.regex_full_match(texts, POWER_OF_TEN)
    texts = tf.strings.regex_replace(texts, f"[{MINUS_SIGNS}]", "-")
    numbers = tf.strings.to_number(tf.where(is_power, texts, "0"), tf.float64)
    return numbers, is_power & (tf.abs(numbers) < LARGEST_POWER)


def _numbers(stretches: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """The number of each stretch, float64 [V], and whether it is one, bool [V]."""
    is_word = stretches[:, tf.newaxis] == _NUMBER_WORDS  # [V, words]
    of_word = tf.argmax(is_word, axis=1) % len(CARDINALS)  # [V]
    is_digits = tf.strings.regex_full_match(stretches, _NUMBER)
    digits = tf.where(is_digits, stretches, "0")
    digits = tf.strings.regex_replace(digits, f"[{_BEGIN}{_END}, +]", "")
    digits = tf.strings.regex_replace(digits, r"\.$", "")
    digits = tf.strings.regex_replace(digits, rf"^([{_MINUS}-]?)\.", r"\10.")
    numbers = tf.strings.to_number(tf.strings.regex_replace(digits, _MINUS, "-"), tf.float64)
    is_number = is_digits & tf.math.is_finite(tf.cast(numbers, tf.float32))
    numbers = tf.where(is_number, numbers, tf.cast(of_word, tf.float64))
    return numbers, is_number | tf.reduce_any(is_word, axis=1)


def _date_fields(stretches: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Year, month and day of each stretch, int32 [V, 3], and whether it is a date, bool [V]."""
    fields = stretches
    for pattern, rewritten in _FIELDS:
        fields = tf.strings.regex_replace(fields, f"^(?:{pattern})$", rewritten)
    is_date = tf.strings.regex_full_match(fields, r"\d*\|\w*\|\d*")
    fields = tf.where(is_date, fields, "||")
    years, months, days = (
        tf.strings.regex_replace(fields, r"(.*)\|(.*)\|(.*)", rf"0\{place}") for place in (1, 2, 3)
    )
    is_name = months[:, tf.newaxis] == [f"0{name}" for name in _SHORT_MONTHS]  # [V, 12]
    has_name = tf.reduce_any(is_name, axis=1)
    named = 1 + tf.argmax(is_name, axis=1, output_type=tf.int32)
    numbered = tf.strings.to_number(tf.where(has_name, "0", months), tf.int32)
    dates = tf.stack(
        [
            tf.strings.to_number(years, tf.int32),
            tf.where(has_name, named, numbered),
            tf.strings.to_number(days, tf.int32),
        ],
        axis=1,
    )
    year, month, day = tf.unstack(dates, axis=1)
    is_leap = (year % 4 == 0) & ((year % 100 != 0) | (year % 400 == 0))
    return dates, is_date & ~((month == 2) & (day == 29) & ~is_leap)


# Of numbers, and of dates so that later ones are larger.
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
    """The first value of each cell, of its column's commonest type, if 70 % of cells have one.

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
    # One more, so that there is always one.
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
    """Keys [...] by which values [..., 4] compare in the fields that they have in common."""
    weights = tf.constant(_WEIGHTS, tf.float64) * tf.cast(common, tf.float64)
    return tf.reduce_sum(fields * weights, axis=-1)


def _places(in_order: tf.Tensor, keys: tf.Tensor) -> tf.Tensor:
    """The first place in order [B, C, M] that is not below each key [B, C, K]: int32 [B, C, K]."""
    places = tf.searchsorted(in_order, keys)
    return tf.minimum(places, tf.shape(in_order)[-1] - 1)
