"""The signature `tables` of an exported model: questions and tables as text, answered in the graph.

It reads plain notation, without rules of words and calibration; docs/serving.md says what that
costs. Numbers are digits with a sign, commas between thousands, a decimal point, an ordinal's
ending, a currency, a percent sign or a unit. Dates are those of ISO 8601 and years alone, times are
clocks such as 9:30. Wordpieces, ranks, relations and computed answers are as in the library.

Shapes: B batch, R rows and C columns of the largest table of the batch, K = R * C, S sequence; N
cells of all tables, row by row, P their pieces; Q values of a question, A aggregations.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
import tensorflow as tf
import tensorflow_text as tf_text

from mate_tf.answers.decoding import SELECTION_THRESHOLD
from mate_tf.features.config import FeatureConfig
from mate_tf.features.numeric import EQUAL, GREATER, LEAST_TOO_LARGE, LESS
from mate_tf.features.token_features import TokenFeatures
from mate_tf.features.wordpiece import MAX_WORD_CHARACTERS, Wordpiece
from mate_tf.tables import notations
from mate_tf.tables.columns import SHARE_OF_KIND
from mate_tf.tables.operators import ABSENT, OPERATORS
from mate_tf.task_configs import ClassificationConfig, TableQAConfig

_LENGTH_STEP = 128  # tokens are padded to a multiple
_NAN, _INF = np.float64("nan"), np.float64("inf")


class TextInput(NamedTuple):
    """Questions and their tables, padded with anything to the largest table of the batch."""

    questions: tf.Tensor  # string [B]
    headers: tf.Tensor  # string [B, C]
    cells: tf.Tensor  # string [B, R, C]
    num_rows: tf.Tensor  # int32 [B], of each table's body
    num_columns: tf.Tensor  # int32 [B]


def checked(config: FeatureConfig, given: TextInput) -> TextInput:
    """The input itself; an error, when it is run, for sizes that differ or are beyond a limit."""
    batch, rows, columns = tf.unstack(tf.shape(given.cells))
    shapes = list(map(tf.shape, given))
    expected = [batch, batch, columns, batch, rows, columns, batch, batch]
    is_wrong = (tf.concat(shapes, axis=0) != expected) | (batch == 0)
    message = (
        "expected questions [B], headers [B, C], cells [B, R, C], num_rows [B] and num_columns [B] "
        f"for at least 1 question, got the shapes {', '.join(['{}'] * len(shapes))}"
    )
    given = _once(given, is_wrong, message, *shapes)
    for name, size, limit in (
        ("num_rows", rows, config.max_row_id),
        ("num_columns", columns, config.max_column_id),
    ):
        numbers = getattr(given, name)
        is_wrong = (numbers < 1) | (numbers > size)
        message = f"expected {name} from 1 to {{}}, as the cells have, got {{}}"
        given = _once_for_each(given, is_wrong, message, numbers, size)
        if limit is not None:
            message = f"expected at most {limit - 1} {name[4:]}, got {{}}"
            given = _once_for_each(given, numbers >= limit, message, numbers)
    return given


def _once(given, is_wrong: tf.Tensor, message: str, *values: tf.Tensor):
    """The tensors if nothing is wrong, otherwise an error with values in its message."""
    check = tf.debugging.Assert(~tf.reduce_any(is_wrong), [tf.strings.format(message, values)])
    with tf.control_dependencies([check]):
        return tf.nest.map_structure(tf.identity, given)


def _once_for_each(given, is_wrong: tf.Tensor, message: str, numbers: tf.Tensor, *values):
    """The same with the number and the index of the first example, bool [B], that is wrong."""
    example = tf.argmax(is_wrong)
    return _once(given, is_wrong, f"{message} (example {{}})", *values, numbers[example], example)


_SPACE = r"[\t\n\r\p{Z}]+"
_DROPPED = r"[\p{Cc}\p{Cf}\x{FFFD}]+"
_CJK = (
    r"[\x{4E00}-\x{9FFF}\x{3400}-\x{4DBF}\x{20000}-\x{2A6DF}\x{2A700}-\x{2B73F}"
    r"\x{2B740}-\x{2B81F}\x{2B820}-\x{2CEAF}\x{F900}-\x{FAFF}\x{2F800}-\x{2FA1F}]"
)
_ALONE = rf"[!-/:-@\[-`{{-~\p{{P}}]|{_CJK}"
# Cleaning drops this character from every text, so that a word of it can only be ours.
_EMPTY_MARK = "\N{REPLACEMENT CHARACTER}"


def graph_wordpiece(wordpiece: Wordpiece) -> Callable[[tf.Tensor], tf.RaggedTensor]:
    """A tokenizer in the graph with the vocabulary of another one.

    It takes texts, string [N], in UTF-8 without its invalid bytes, and gives the ids of their
    pieces, int32 [N, (pieces)]; no row is empty. BertTokenizer reads 1,140 characters unlike BERT.
    """
    empty = wordpiece.vocabulary[wordpiece.empty]
    with tf.init_scope():  # for whatever graph comes
        matcher = tf_text.FastWordpieceTokenizer(
            vocab=wordpiece.vocabulary,
            token_out_type=tf.int32,
            unknown_token="[UNK]",
            no_pretokenization=True,
            max_bytes_per_word=4 * MAX_WORD_CHARACTERS,
        )

    def tokenize(texts: tf.Tensor) -> tf.RaggedTensor:
        texts = tf.strings.unicode_transcode(texts, "UTF-8", "UTF-8", errors="ignore")
        texts = tf.strings.regex_replace(texts, _SPACE, " ")
        texts = tf.strings.lower(tf.strings.regex_replace(texts, _DROPPED, ""), encoding="utf-8")
        is_empty = ~tf.strings.regex_full_match(texts, r"(?s).*[\p{L}\p{N}].*")
        is_empty |= tf.strings.strip(texts) == "n/a"  # [N]
        texts = tf.strings.regex_replace(tf_text.normalize_utf8(texts, "NFD"), r"\p{Mn}+", "")
        words = tf_text.regex_split(tf.where(is_empty, _EMPTY_MARK, texts), f" |{_ALONE}", _ALONE)
        flat = tf.where(words.values == _EMPTY_MARK, empty, words.values)
        is_long = tf.strings.length(flat, unit="UTF8_CHAR") > MAX_WORD_CHARACTERS
        flat = tf.where(is_long, "[UNK]", flat)
        return words.with_values(matcher.tokenize(flat)).merge_dims(1, 2)

    return tokenize


_CURRENCY, _UNIT = map(notations.any_of, (notations.CURRENCIES, notations.GLUED_UNITS))
_MINUS = "[-\N{MINUS SIGN}]"
_SIGN = rf"(?:\+|({_MINUS}))?"
_DIGITS = r"(?:[1-9]\d{0,2}(?:,\d{3})+|0|[1-9]\d*)(?:\.\d*)?|\.\d+"
_NUMBER = (  # minus, currency, minus, digits, unit
    rf"{_SIGN}(?:({_CURRENCY}) ?)?{_SIGN}({_DIGITS})(?:st|nd|rd|th)? ?({_UNIT}|{_CURRENCY})?"
)
_DATE = r"(\d{4})-(0?[1-9]|1[0-2])(?:-(0?[1-9]|[12]\d|3[01]))?"
_CLOCK = r"(\d{1,2}):([0-5]\d)(?::([0-5]\d))?"
_TIME = f"(?:{_DATE})?[ t]?(?:{_CLOCK})?"  # year, month, day, hour, minute, second
_IN_QUESTION = notations.ungrouped(
    rf"\b{_DATE}(?:[ t]{_CLOCK})?\b|\b{_CLOCK}\b"
    rf"|{_MINUS}?(?:(?:{_CURRENCY}) ?)?\b\d+(?:,\d{{3}})*(?:\.\d+)?(?:st|nd|rd|th)?\b"
)
# Seconds of the least part that a date gives, by how many it gives of year, month, day and time.
# Months have 31 days here, for dates are only compared.
_SECONDS = (1.0, 12 * 31 * 86_400.0, 31 * 86_400.0, 86_400.0, 1.0)


class Values(NamedTuple):
    """Readings of texts, each by itself; NaN of those that do not say it."""

    number: tf.Tensor  # float64
    unit: tf.Tensor  # string, of the number
    clock: tf.Tensor  # float64, seconds
    date: tf.Tensor  # float64, seconds; also of a number that can be a year
    num_parts: tf.Tensor  # int32, how many parts the date gives
    text: tf.Tensor  # string, in lower case; "" for none, such as n/a


def read_values(texts: tf.Tensor) -> Values:
    """Numbers, clocks and dates of texts, string of any shape."""
    texts = tf.strings.unicode_transcode(texts, "UTF-8", "UTF-8", errors="ignore")
    texts = tf.strings.strip(tf.strings.lower(texts, encoding="utf-8"))
    texts = tf.where(tf.strings.regex_full_match(texts, notations.MISSING.pattern), "", texts)
    number = _number(texts, _NUMBER, r"\1\3\4")
    is_year = tf.strings.regex_full_match(texts, r"\d{4}")
    is_year &= (number >= notations.YEARS[0]) & (number <= notations.YEARS[-1])
    given = tf.stack([_number(texts, _TIME, rf"\{part}") for part in range(1, 7)])
    given = tf.concat([tf.where(is_year, number, given[:1]), given[1:]], axis=0)
    has = ~tf.math.is_nan(given)
    filled = tf.where(has, given, tf.zeros_like(given))
    year, month, day, hour, minute, second = tf.unstack(filled)
    month, day = tf.maximum(month, 1.0) - 1.0, tf.maximum(day, 1.0) - 1.0
    seconds = hour * 3600 + minute * 60 + second
    return Values(
        number=tf.where(tf.abs(number) < LEAST_TOO_LARGE, number, _NAN),
        unit=_groups(texts, _NUMBER, r"\2\5"),
        clock=tf.where(has[3] & ~has[0], seconds, _NAN),
        date=tf.where(has[0], ((year * 12 + month) * 31 + day) * _SECONDS[3] + seconds, _NAN),
        num_parts=tf.math.count_nonzero(has[:4], axis=0, dtype=tf.int32),
        text=texts,
    )


def _groups(texts: tf.Tensor, pattern: str, groups: str) -> tf.Tensor:
    """Groups of what a pattern matches as a whole; "" of other texts."""
    replaced = tf.strings.regex_replace(texts, f"^(?:{pattern})$", groups)
    return tf.where(tf.strings.regex_full_match(texts, pattern), replaced, "")


def _number(texts: tf.Tensor, pattern: str, groups: str) -> tf.Tensor:
    """The number of these groups as float64; NaN where they are empty."""
    digits = tf.strings.regex_replace(_groups(texts, pattern, groups), ",", "")
    digits = tf.strings.regex_replace(digits, f"^{_MINUS}+", "-")
    return tf.strings.to_number(tf.where(digits == "", "nan", digits), tf.float64)


class Columns(NamedTuple):
    """Tables as they were understood."""

    values: tf.Tensor  # float64 [B, C, R], what cells are compared by; NaN for none
    num_parts: tf.Tensor  # int32 [B, C], of dates those that all of a column give; 0 of numbers
    headers: tf.Tensor  # string [B, C]
    cells: tf.Tensor  # string [B, R, C]
    read: Values  # [B, R, C] each


def read_columns(headers: tf.Tensor, cells: tf.Tensor) -> Columns:
    """Reads cells, string [B, R, C], as dates, clocks or numbers, which most of a column are."""
    read = read_values(cells)
    # Numbers that can be years are dates where others are, or all numbers can be years.
    has_date, has_number = (~tf.math.is_nan(it) for it in (read.date, read.number))
    are_dates = tf.reduce_any(has_date & ~has_number, axis=1, keepdims=True)
    are_dates |= tf.reduce_all(has_date | ~has_number, axis=1, keepdims=True)
    date = tf.where(are_dates, read.date, _NAN)
    kinds = tf.transpose(tf.stack([date, read.clock, read.number]), [1, 3, 0, 2])  # [B, C, 3, R]
    counts = tf.math.count_nonzero(~tf.math.is_nan(kinds), axis=3)  # [B, C, 3]
    kind = tf.argmax(counts, axis=2, output_type=tf.int32)  # [B, C], of equal ones the first
    num_filled = tf.math.count_nonzero(read.text != "", axis=1, dtype=tf.float64)  # [B, C]
    is_enough = tf.cast(tf.reduce_max(counts, axis=2), tf.float64) >= SHARE_OF_KIND * num_filled
    values = tf.gather(kinds, kind, batch_dims=2)  # [B, C, R]
    values = tf.where(is_enough[..., tf.newaxis], values, _NAN)
    num_parts = tf.where(tf.math.is_nan(date), len(_SECONDS) - 1, read.num_parts)
    num_parts = tf.where(kind == 0, tf.reduce_min(num_parts, axis=1), 0)
    return Columns(values, num_parts, headers, cells, read)


def _keys(values: tf.Tensor, num_parts: tf.Tensor) -> tf.Tensor:
    """Compares values [..., X] as numbers, or by so many parts of dates, int32 [...]."""
    num_parts = num_parts[..., tf.newaxis]
    parts = tf.floor(values / tf.gather(tf.constant(_SECONDS, tf.float64), num_parts))
    return tf.where(num_parts > 0, parts, values)


def ranks(columns: Columns) -> tuple[tf.Tensor, tf.Tensor]:
    """The rank of each cell's value from the smallest and the largest: int32 [B, R, C] each."""
    keys = _keys(columns.values, columns.num_parts)  # [B, C, R]
    has_rank = ~tf.math.is_nan(keys)
    keys = tf.where(has_rank, keys, _INF)
    in_order = tf.sort(keys)
    is_new = in_order[..., 1:] != in_order[..., :-1]
    is_new = tf.pad(is_new, [[0, 0], [0, 0], [1, 0]], constant_values=True) & (in_order < _INF)
    rank_in_order = tf.cumsum(tf.cast(is_new, tf.int32), axis=2)
    rank = tf.gather(rank_in_order, tf.searchsorted(in_order, keys), batch_dims=2)
    both = tf.stack([rank, rank_in_order[..., -1:] + 1 - rank])
    return tf.unstack(tf.transpose(tf.where(has_rank, both, 0), [0, 1, 3, 2]))


def relations(columns: Columns, questions: tf.Tensor) -> tf.Tensor:
    """How the values in questions, string [B], compare with each cell's: bits, int32 [B, R, C]."""
    lower = tf.strings.lower(questions, encoding="utf-8")
    # What is between values says nothing.
    asked = read_values(tf_text.regex_split(lower, _IN_QUESTION, _IN_QUESTION).to_tensor())
    numbers = tf.where(tf.math.is_nan(asked.number), asked.clock, asked.number)
    given = tf.concat([numbers, asked.date], axis=1)[:, tf.newaxis]  # [B, 1, Q]
    num_parts = tf.concat([tf.zeros_like(asked.num_parts), asked.num_parts], axis=1)
    bits = tf.zeros_like(columns.values, tf.int32)  # [B, C, R]
    for number in range(len(_SECONDS)):
        fits = (num_parts == number)[:, tf.newaxis] & ~tf.math.is_nan(given)
        fits &= ((columns.num_parts > 0) == (number > 0))[..., tf.newaxis]  # [B, C, Q]
        common = tf.minimum(columns.num_parts, number)  # [B, C]
        keys, given_keys = _keys(columns.values, common), _keys(given, common)
        least = tf.reduce_min(tf.where(fits, given_keys, _INF), axis=2, keepdims=True)
        most = tf.reduce_max(tf.where(fits, given_keys, -_INF), axis=2, keepdims=True)
        is_same = keys[..., tf.newaxis] == given_keys[:, :, tf.newaxis]  # [B, C, R, Q]
        is_equal = tf.reduce_any(is_same & fits[:, :, tf.newaxis], axis=3)
        for bit, holds in ((EQUAL, is_equal), (LESS, least < keys), (GREATER, most > keys)):
            bits |= bit * tf.cast(holds, tf.int32)
    return tf.transpose(bits, [0, 2, 1])


def build_features(
    wordpiece: Wordpiece, config: FeatureConfig, fixed_length: int | None, given: TextInput
) -> tuple[TokenFeatures, Columns]:
    """The features of a batch, int32 [B, S], of a fixed length where the model takes no other.

    InvalidArgumentError, when it is run, if a question and its table are too long, or as `checked`.
    """
    given = checked(config, given)
    shape = tf.shape(given.cells, tf.int64)
    is_column = tf.sequence_mask(given.num_columns, shape[2])[:, tf.newaxis]  # [B, 1, C]
    is_cell = tf.sequence_mask(given.num_rows, shape[1])[..., tf.newaxis] & is_column  # [B, R, C]
    headers = tf.zeros_like(given.headers) if config.strip_column_names else given.headers
    texts = tf.concat([headers[:, tf.newaxis], given.cells], axis=1)  # [B, R+1, C]
    is_text = tf.concat([is_column, is_cell], axis=1)
    tokenize = graph_wordpiece(wordpiece)
    pieces = tokenize(tf.boolean_mask(texts, is_text))  # [N, (pieces)]
    indices = tf.gather(tf.where(is_text), pieces.value_rowids())  # int64 [P, 3]
    table_ids = tf.RaggedTensor.from_value_rowids(
        pieces.values, indices[:, 0], shape[0], validate=False
    )  # [B, (tokens)]
    cls, sep = (tf.fill([shape[0], 1], special) for special in (wordpiece.cls, wordpiece.sep))
    text_ids = tf.concat([cls, tokenize(given.questions), sep], axis=1)
    num_tokens, longest = text_ids.row_lengths() + table_ids.row_lengths(), config.max_seq_length
    if longest is not None:  # before numbers are compared
        message = f"expected at most {longest} tokens, got {{}}"
        given = _once_for_each(given, num_tokens > longest, message, num_tokens)
    length = tf.constant(fixed_length or 0, tf.int64)
    if fixed_length is None:
        length = -(-tf.reduce_max(num_tokens) // _LENGTH_STEP) * _LENGTH_STEP
        length = tf.minimum(length, longest or length)

    read = read_columns(given.headers, tf.where(is_cell, given.cells, ""))
    _, rows, columns = tf.unstack(tf.cast(indices, tf.int32), axis=1)  # [P] each
    one = tf.ones_like(pieces.values)
    values = [pieces.values, one, one, columns + 1, rows, 0 * one]
    for grid in (*ranks(read), relations(read, given.questions)):  # [B, R, C] each
        values.append(tf.gather_nd(tf.pad(grid, [[0, 0], [1, 0], [0, 0]]), indices))
    text_values = tf.stack([text_ids.values, tf.ones_like(text_ids.values)], axis=1)
    text_values = text_ids.with_values(tf.pad(text_values, [[0, 0], [0, len(values) - 2]]))
    both = tf.concat([text_values, table_ids.with_values(tf.stack(values, axis=1))], axis=1)
    batch = both.to_tensor(shape=tf.stack([-1, length, -1]))  # [B, S, features]
    return TokenFeatures(*tf.unstack(batch, len(values), axis=2)), read


def cell_answers(
    config: TableQAConfig, tokens: TokenFeatures, columns: Columns, outputs: Mapping[str, tf.Tensor]
) -> dict[str, tf.Tensor]:
    """The answers to outputs as of `decode_cells`, as `export_saved_model` lists them.

    A cell's score is the probability that it is selected, 0 for padding and in other columns.
    """
    shape = tf.shape(columns.cells)
    probabilities, in_columns, in_answer = _cell_probabilities(tokens, shape, outputs)  # [B, K]
    names = ["NONE"]
    aggregations = tf.ones([shape[0], 1], tf.float64)
    if "aggregation_logits" in outputs:
        names = list(config.operators)
        aggregations = tf.nn.softmax(tf.cast(outputs["aggregation_logits"], tf.float64))  # [B, A]
    is_none = tf.constant([float(name == ABSENT) for name in names], tf.float64)  # [A]
    absent = tf.reduce_sum(aggregations * is_none, axis=1)  # [B]
    is_absent = absent > config.absent_threshold
    aggregations *= 1.0 - is_none
    likeliest = tf.argmax(aggregations, axis=1, output_type=tf.int32)  # [B]

    def is_one_of(*chosen: str) -> tf.Tensor:
        return tf.gather(tf.constant([name in chosen for name in names]), likeliest)  # [B]

    takes_two = is_one_of(*(name for name in names if OPERATORS[name].takes_two))  # [B]
    if "row_scores" in outputs:
        is_along = is_one_of(*(name for name in names if OPERATORS[name].along_row))[:, tf.newaxis]
        scores = _mean_by_cell(tokens, shape, outputs["row_scores"])
        in_row, with_row = _row_probabilities(in_columns, scores, shape)
        probabilities = tf.where(is_along, in_row, probabilities)
        in_answer = tf.where(is_along, with_row, in_answer)

    above, number = tf.zeros_like(probabilities, tf.bool), 1.0
    if not config.cell_cross_entropy:
        above = (probabilities > SELECTION_THRESHOLD) & ~takes_two[:, tf.newaxis]
        expected = tf.round(tf.reduce_sum(tf.maximum(probabilities, 0.0), axis=1))
        possible = tf.math.count_nonzero(probabilities > 0.0, axis=1, dtype=tf.float64)
        num_cells = tf.clip_by_value(possible, 1.0, 2.0)
        number = tf.where(takes_two, num_cells, tf.ones_like(num_cells))
        number = tf.where(is_one_of("COUNT"), tf.maximum(expected, 1.0), number)
        number = tf.where(is_one_of("NO"), tf.zeros_like(number), number)[:, tf.newaxis]
    order = tf.argsort(probabilities, direction="DESCENDING", stable=True)
    is_likely = (tf.cast(tf.argsort(order), tf.float64) < number) & (probabilities > -_INF)
    selected = tf.where(tf.reduce_any(above, axis=1, keepdims=True), above, is_likely)
    total = tf.reduce_sum(tf.where(selected, in_answer, tf.zeros_like(in_answer)), axis=1)
    score = total / tf.math.count_nonzero(selected, axis=1, dtype=tf.float64)
    score = tf.where(is_one_of("YES", "NO"), tf.ones_like(score), score)
    score *= tf.reduce_max(aggregations, axis=1)
    answers = tf.fill(shape[:1], "")
    results = _results(columns, selected)
    for name in filter(results.__contains__, names):
        answers = tf.where(is_one_of(name) & ~is_absent, results[name], answers)
    return {
        "cell_scores": tf.cast(tf.reshape(tf.maximum(probabilities, 0.0), shape), tf.float32),
        "selected": tf.reshape(selected & ~is_absent[:, tf.newaxis], shape),
        "aggregations": tf.where(is_absent, ABSENT, tf.gather(names, likeliest)),
        "answers": answers,
        "scores": tf.cast(tf.where(is_absent, absent, score), tf.float32),
    }


def _results(columns: Columns, selected: tf.Tensor) -> dict[str, tf.Tensor]:
    """Results of each operator on cells, bool [B, K]: string [B], "" where it is impossible."""
    cells, numbers, units, values = (
        tf.reshape(it, tf.shape(selected))
        for it in (
            *(columns.cells, columns.read.number, columns.read.unit),
            tf.transpose(columns.values, [0, 2, 1]),
        )
    )
    texts = tf.strings.strip(tf.strings.lower(cells, encoding="utf-8"))
    is_number, is_filled = selected & ~tf.math.is_nan(numbers), selected & (texts != "")
    count = tf.math.count_nonzero(is_number, axis=1, dtype=tf.float64)
    total = tf.reduce_sum(tf.where(is_number, numbers, tf.zeros_like(numbers)), axis=1)
    are_alike = (count > 0.0) & (_num_different(units, is_number & (units != "")) < 2.0)
    least = tf.reduce_min(tf.where(is_number, numbers, _INF), axis=1)

    def written(value: tf.Tensor, holds: tf.Tensor | bool = True) -> tf.Tensor:
        whole = tf.strings.as_string(value, precision=0)
        text = tf.strings.as_string(value, precision=12, shortest=True)
        return tf.where(holds, tf.where(value == tf.round(value), whole, text), "")

    def first(order: tf.Tensor) -> tf.Tensor:
        has_value = selected & ~tf.math.is_nan(order)
        cell = tf.argmin(tf.where(has_value, order, _INF), axis=1)
        is_there = tf.reduce_any(has_value, axis=1)
        return tf.where(is_there, tf.gather(cells, cell, batch_dims=1), "")

    def joined(texts: tf.Tensor) -> tf.Tensor:
        chosen = tf.ragged.boolean_mask(texts, selected)
        return tf.strings.reduce_join(chosen, axis=1, separator=", ")

    headers = tf.tile(columns.headers, [1, tf.shape(columns.cells)[1]])  # [B, K]
    results = {
        "COUNT": written(tf.math.count_nonzero(is_filled, axis=1, dtype=tf.float64)),
        "DISTINCT": written(_num_different(texts, is_filled)),
        "SUM": written(total, are_alike),
        "AVERAGE": written(total / count, are_alike),
        "DIFFERENCE": written(total - 2.0 * least, are_alike & (count == 2.0)),
        "MIN": first(numbers),
        "MAX": first(-numbers),
    }
    along_row = {f"ROW_{name}": text for name, text in results.items()}
    return (
        results
        | along_row
        | {
            "NONE": joined(cells),
            "MIN": first(values),  # of one column, whose dates and times compare too
            "MAX": first(-values),
            "HEADER": joined(headers),
            **{name: tf.fill(tf.shape(selected)[:1], name.lower()) for name in ("YES", "NO")},
        }
    )


def _num_different(texts: tf.Tensor, is_counted: tf.Tensor) -> tf.Tensor:
    """The number of different texts that count: string and bool [B, K] to float64 [B]."""
    keys = tf.strings.to_hash_bucket_fast(texts, 2**62)
    keys = tf.sort(tf.where(is_counted, keys, -1), axis=1)
    is_new = tf.concat([keys[:, :1] >= 0, keys[:, 1:] != keys[:, :-1]], axis=1)
    return tf.math.count_nonzero(is_new, axis=1, dtype=tf.float64)


def _mean_by_cell(tokens: TokenFeatures, shape: tf.Tensor, values: tf.Tensor) -> tf.Tensor:
    """The mean of tokens' values [B, S] over each cell: float64 [B, K], NaN where there is none."""
    rows, columns = tokens.row_ids - 1, tokens.column_ids - 1
    cells = (tf.range(shape[0])[:, tf.newaxis] * shape[1] + rows) * shape[2] + columns
    cells = tf.reshape(tf.where((rows >= 0) & (columns >= 0), cells, -1), [-1])  # [B * S]
    flat, count = tf.reshape(tf.cast(values, tf.float64), [-1]), tf.reduce_prod(shape)
    sums = tf.math.unsorted_segment_sum(flat, cells, count)
    counts = tf.math.unsorted_segment_sum(tf.ones_like(flat), cells, count)
    return tf.reshape(sums / counts, [shape[0], -1])


def _cell_probabilities(
    tokens: TokenFeatures, shape: tf.Tensor, outputs: Mapping[str, tf.Tensor]
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """The probability of each cell, -inf where there is none: float64 [B, K], in three ways.

    0 outside the chosen column; given its column; and the latter times the column's probability.
    """
    name = "token_logits" if "column_logits" in outputs else "token_probabilities"
    probabilities = _mean_by_cell(tokens, shape, outputs[name])
    is_cell = ~tf.math.is_nan(probabilities)
    if "column_logits" not in outputs:
        probabilities = tf.where(is_cell, probabilities, -_INF)
        return probabilities, probabilities, probabilities
    column_logits = tf.cast(outputs["column_logits"], tf.float64)
    columns = tf.tile(tf.range(1, shape[2] + 1), [shape[1]])  # [K]
    columns = tf.minimum(columns, tf.shape(column_logits)[1] - 1)
    likeliest = 1 + tf.argmax(column_logits[:, 1:], axis=1, output_type=tf.int32)  # [B]
    column_probs = tf.gather(tf.nn.softmax(column_logits), columns, axis=1)  # [B, K]
    in_columns = tf.where(is_cell, tf.sigmoid(probabilities), -_INF)
    is_other = is_cell & (columns != likeliest[:, tf.newaxis])
    probabilities = tf.where(is_other, tf.zeros_like(in_columns), in_columns)
    return probabilities, in_columns, in_columns * column_probs


def _row_probabilities(
    cells: tf.Tensor, scores: tf.Tensor, shape: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
    """Probabilities of cells [B, K], 0 outside the likeliest row, and times that of their row.

    Scores of cells for their rows are float64 [B, K]; anything where there is no cell.
    """
    is_cell = cells > -_INF
    scores = tf.reshape(tf.where(is_cell, scores, tf.zeros_like(scores)), shape)
    counts = tf.math.count_nonzero(tf.reshape(is_cell, shape), axis=2, dtype=tf.float64)
    logits = tf.reduce_sum(scores, axis=2) / counts  # [B, R]
    shares = tf.nn.softmax(tf.where(counts > 0.0, logits, -_INF))
    is_likeliest = tf.one_hot(tf.argmax(shares, axis=1), shape[1], dtype=tf.float64)
    by_cell = (tf.repeat(rows, shape[2], axis=1) for rows in (is_likeliest, shares))  # [B, K]
    in_row, with_row = (tf.where(is_cell, cells * rows, -_INF) for rows in by_cell)
    return in_row, with_row


def class_answers(
    config: ClassificationConfig, outputs: Mapping[str, tf.Tensor]
) -> dict[str, tf.Tensor]:
    """The answers of classification, as `export_saved_model` lists them."""
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
