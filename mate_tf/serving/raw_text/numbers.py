"""Numbers and dates in texts and questions, in the graph.

It computes what `text_values` and `question_values` of mate_tf/features/numeric.py make of them.
`text_values` is version 1: of all cells and questions for its models, and of columns of text for
those of version 2 (mate_tf/serving/raw_text/columns.py). Each word is put between two marks, so
that regular expressions without look-around see where it begins and ends. One expression finds the
values from left to right, the longest first. Rare texts are read differently:

- Only ASCII digits are read.
- Values that overlap without one being within the other, as in "1 may 5" or "monday, may 5, 2004",
  are read from the left, each beginning where the last one ended.
- A number too large for single precision, or a February 29 that is not in its year, is not read,
  nor is any part of it.

Shapes: N texts, V values of all texts, text by text.
"""

from typing import NamedTuple

import numpy as np
import tensorflow as tf
import tensorflow_text as tf_text

from mate_tf.features.numeric import COMMON_TYPE_SHARE, WEEKDAYS
from mate_tf.serving.raw_text.cells import SPACE, plain_text, read_cells
from mate_tf.tables.notations import CARDINALS, MONTHS, ORDINALS, VALUE_IN_SENTENCE

_NAN = np.float64("nan")
_BEGIN, _END = "\x01", "\x02"
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
    """The numbers and dates of texts; a lone year is both."""

    texts: tf.Tensor  # the text of each, int64 [V], ascending
    numbers: tf.Tensor  # float64 [V], as exact as the text is; 0 where it is no number
    is_number: tf.Tensor  # bool [V]
    dates: tf.Tensor  # year, month and day, int32 [V, 3]; 0 where the text does not say it
    is_date: tf.Tensor  # bool [V]

    def first(
        self, values: tf.Tensor, is_one: tf.Tensor, shape: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """The first number or date of each text, 0 where there is none, and whether it has one.

        Of values, numbers [V] or dates [V, 3], where is_one, bool [V]; shape is that of the texts.
        """
        texts, values = tf.boolean_mask(self.texts, is_one), tf.boolean_mask(values, is_one)
        number = tf.shape(texts, tf.int64)[0]
        first = tf.math.unsorted_segment_min(tf.range(number), texts, tf.reduce_prod(shape))
        padded = tf.concat([values, tf.zeros([1, *values.shape[1:]], values.dtype)], axis=0)
        of_texts = tf.gather(padded, tf.minimum(first, number))
        full_shape = tf.concat([shape, tf.constant(values.shape[1:].as_list(), tf.int64)], axis=0)
        return tf.reshape(of_texts, full_shape), tf.reshape(first < number, shape)


class QuestionValues(NamedTuple):
    """The values in questions, in each way in which a column can be written."""

    numbers: tf.Tensor  # float64 [B, Q, 4]
    dates: tf.Tensor  # float64 [B, Q, 3, 4]


def text_values(texts: tf.Tensor) -> TextValues:
    """The numbers and dates in texts, string [N], from left to right."""
    marked = _marked(texts)
    found = tf_text.regex_split(marked, _VALUE, _VALUE)  # and what is between them
    is_value = tf.strings.regex_full_match(found.values, _VALUE)
    of_text = tf.boolean_mask(found.value_rowids(), is_value)  # [V]
    stretches = tf.boolean_mask(found.values, is_value)
    numbers, is_number = _numbers(stretches)
    dates, is_date = _date_fields(stretches)
    return TextValues(of_text, numbers, is_number, dates, is_date)


def fields_of_texts(
    values: TextValues, shape: tf.Tensor, is_read: tf.Tensor, num_rows: tf.Tensor
) -> tf.Tensor:
    """The first value of each cell, of its column's commonest type, if 70 % of cells have one.

    The values are of all cells, laid out flat, the shape is B, R and C. is_read is bool [B, R, C],
    num_rows int32 [B], and the result float64 [B, R, C, 5].
    """
    numbers, has_number = values.first(values.numbers, values.is_number, shape)
    dates, has_date = values.first(values.dates, values.is_date, shape)
    has_number, has_date = has_number & is_read, has_date & is_read
    num_numbers, num_dates = (
        tf.math.count_nonzero(has, axis=1, keepdims=True) for has in (has_number, has_date)
    )  # [B, 1, C]
    is_of_dates = num_dates >= num_numbers
    least = COMMON_TYPE_SHARE * tf.cast(num_rows, tf.float64)[:, tf.newaxis, tf.newaxis]
    is_enough = tf.cast(tf.maximum(num_dates, num_numbers), tf.float64) >= least
    number = tf.where(has_number & ~is_of_dates & is_enough, _rounded(numbers), _NAN)
    date = tf.where((has_date & is_of_dates & is_enough)[..., tf.newaxis], _of_four(dates), _NAN)
    return tf.concat([number[..., tf.newaxis], date], axis=-1)


def _rounded(numbers: tf.Tensor) -> tf.Tensor:
    """Numbers in single precision, as float64."""
    return tf.cast(tf.cast(numbers, tf.float32), tf.float64)


def _of_four(dates: tf.Tensor) -> tf.Tensor:
    """Year, month and day with 0 for none, as float64 with NaN, also for the seconds."""
    fields = tf.concat([dates, tf.zeros_like(dates[..., :1])], axis=-1)
    return tf.where(fields > 0, tf.cast(fields, tf.float64), _NAN)


def _marked(texts: tf.Tensor) -> tf.Tensor:
    """The texts in lower case, with one blank before all and between others, and marked words."""
    texts = tf.strings.unicode_transcode(texts, "UTF-8", "UTF-8", errors="ignore")
    # None of these is in a word or number, and TensorFlow stops to lower-case at a null.
    texts = tf.strings.regex_replace(texts, rf"[\x{{0}}{_BEGIN}{_END}]", "_")
    texts = tf.strings.lower(texts, encoding="utf-8")
    texts = tf.strings.regex_replace(texts, SPACE, " ")
    texts = tf.strings.join([" ", tf.strings.strip(texts)])
    texts = tf.strings.regex_replace(texts, r"[\p{L}\p{N}]+", rf"{_BEGIN}\0{_END}")
    return tf.where(tf.strings.regex_full_match(texts, _ANY_VALUE), texts, "")


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
    year, day = (tf.strings.to_number(texts, tf.int32) for texts in (years, days))
    month = tf.where(has_name, named, numbered)
    is_leap = (year % 4 == 0) & ((year % 100 != 0) | (year % 400 == 0))
    is_real = ~((month == 2) & (day == 29) & ~is_leap)
    return tf.stack([year, month, day], axis=1), is_date & is_real


def question_values(questions: tf.Tensor, version: int) -> QuestionValues:
    """The values in questions, string [B]."""
    batch = tf.shape(questions, tf.int64)[0]
    if version == 1:
        return _dense(batch, *_of_texts(questions))
    pattern = VALUE_IN_SENTENCE.pattern
    parts = tf_text.regex_split(plain_text(questions), pattern, pattern)
    is_value = tf.strings.regex_full_match(parts.values, pattern)
    examples = parts.value_rowids()
    places, numbers, dates = _of_texts(tf.boolean_mask(parts.values, ~is_value))
    others = tf.gather(tf.boolean_mask(examples, ~is_value), places)
    cells = read_cells(tf.boolean_mask(parts.values, is_value))
    found = tf.boolean_mask(examples, is_value)
    as_year = tf.stack([cells.numbers[:, 0], *[tf.fill(tf.shape(found), _NAN)] * 3], axis=1)
    is_year = cells.is_year[:, tf.newaxis, tf.newaxis]
    of_cells = tf.where(is_year, as_year[:, tf.newaxis], cells.dates)
    a, b, c = tf.unstack(cells.clock, axis=-1)
    clock = a * 3600 + b * 60 + tf.where(~tf.math.is_nan(c), c, 0.0)
    seconds = tf.where(cells.is_time, a, tf.where(~tf.math.is_nan(b), clock, cells.duration))
    of_numbers = tf.where(~tf.math.is_nan(cells.numbers), cells.numbers, seconds[:, tf.newaxis])
    both = ((others, found), (numbers, of_numbers), (dates, of_cells))
    return _dense(batch, *(tf.concat(values, axis=0) for values in both))


def _of_texts(texts: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """As version 1 reads texts: the text of each value, its numbers [V, 4] and dates [V, 3, 4]."""
    values = text_values(texts)
    numbers = tf.where(values.is_number, _rounded(values.numbers), _NAN)
    dates = tf.where(values.is_date[:, tf.newaxis], _of_four(values.dates), _NAN)
    return values.texts, tf.stack([numbers] * 4, axis=1), tf.stack([dates] * 3, axis=1)


def _dense(
    batch: tf.Tensor, examples: tf.Tensor, numbers: tf.Tensor, dates: tf.Tensor
) -> QuestionValues:
    order = tf.argsort(examples, stable=True)
    examples = tf.gather(examples, order)

    def dense(values: tf.Tensor) -> tf.Tensor:
        ragged = tf.RaggedTensor.from_value_rowids(
            tf.gather(values, order), examples, nrows=batch, validate=False
        )
        return ragged.to_tensor(_NAN)

    return QuestionValues(dense(numbers), dense(dates))
