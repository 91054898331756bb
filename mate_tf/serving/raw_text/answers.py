"""Answers read off a model's outputs in the graph, as the library reads them.

They are those of mate_tf/answers/decoding.py, without calibration, alternatives and least score.
Sums are added up one by one in double precision; the library adds them up exactly.

Shapes: B batch, S sequence, R rows and C columns of the largest table of the batch, A aggregations;
K body cells of all tables, padded, in one line.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import tensorflow as tf

from mate_tf.answers.answer import TokenFacts
from mate_tf.answers.decoding import ASKS_FOR_SEVERAL, SELECTION_THRESHOLD, SURE
from mate_tf.answers.row_words import FEWEST
from mate_tf.models.classification import ClassificationConfig
from mate_tf.models.table_qa import TableQAConfig
from mate_tf.serving.raw_text.cells import SPACE, days_of
from mate_tf.serving.raw_text.features import RawFeatures
from mate_tf.serving.raw_text.row_words import TableFacts, rows_in_words, rows_of_all, towards_words
from mate_tf.tables.table import ABSENT, AGGREGATIONS, PAIRED, TAPAS_AGGREGATIONS

_NONE, _COUNT = AGGREGATIONS.index("NONE"), AGGREGATIONS.index("COUNT")
_ABSENT = AGGREGATIONS.index(ABSENT)
_OF_UNITS = ("SUM", "AVERAGE", "DIFFERENCE")  # of numbers with units, or of lengths of time
_DIGITS = 12  # of a number that is no integer
_ZEROS = "0" * 330


def cell_answers(
    config: TableQAConfig, asked: RawFeatures, outputs: Mapping[str, tf.Tensor]
) -> dict[str, tf.Tensor]:
    """The answers of table question answering, of outputs as `decode_cells` takes them.

    Returns:
        cell_scores float32 [B, R, C], the probability that a cell is selected, 0 for padding,
        unseen cells and outside the chosen column; selected bool [B, R, C]; aggregations, answers
        string [B] and scores float32 [B]. Where the aggregation is ABSENT, nothing is selected and
        the answer is empty.
    """
    shape = tf.shape(asked.given.cells)
    probabilities, with_columns = _cell_probabilities(asked, outputs)  # float64 [B, R*C]
    batch, size = tf.unstack(tf.shape(probabilities))
    aggregations = tf.ones([batch, 1], tf.float64)
    if "aggregation_logits" in outputs:
        aggregations = tf.nn.softmax(tf.cast(outputs["aggregation_logits"], tf.float64))  # [B, A]
    absent = tf.reduce_sum(aggregations[:, _ABSENT:], axis=1)  # [B]
    is_absent = absent > config.absent_threshold
    aggregations = aggregations[:, :_ABSENT]
    facts = None
    if config.num_aggregation_labels > len(TAPAS_AGGREGATIONS):
        facts = _token_facts(asked)
        if config.plain_answers:
            column = tf.argmax(probabilities, axis=1, output_type=tf.int32) % shape[2]
            names = tf.gather(asked.given.headers, column, batch_dims=1)
            aggregations = towards_words(asked.given.questions, names, aggregations)
    likeliest = tf.argmax(aggregations, axis=1, output_type=tf.int32)  # [B]
    is_named, of_tables = tf.zeros_like(likeliest, tf.bool), None
    if config.plain_answers and facts is not None:
        of_tables = _table_facts(asked, facts)
        places, is_named, is_extreme = _swapped(asked, of_tables, probabilities, likeliest)
        probabilities = tf.gather(probabilities, places, batch_dims=1)
        with_columns = tf.gather(with_columns, places, batch_dims=1)
    selected = _selected(config, asked, probabilities, likeliest, is_named)
    is_of_all = tf.zeros_like(likeliest, tf.bool)
    if of_tables is not None:
        of_all = _cells_of_all(asked, of_tables, probabilities, tf.gather(FEWEST, likeliest))
        is_of_all = _is_one_of(likeliest, TAPAS_AGGREGATIONS) & tf.reduce_any(of_all, axis=1)
        is_of_all &= ~is_extreme
        selected = tf.where(is_of_all[:, tf.newaxis], of_all, selected)
    is_total = tf.broadcast_to(asked.columns.is_total[..., tf.newaxis], shape)
    counted = selected & ~tf.reshape(is_total, [batch, size])
    is_kept = tf.reduce_any(counted, axis=1) & ~_is_one_of(likeliest, PAIRED)
    counted = tf.where(is_kept[:, tf.newaxis], counted, selected)
    result = _computed(asked, facts, counted, likeliest)
    # What needs two cells and cannot be computed leaves the likelier one.
    best = tf.one_hot(tf.argmax(probabilities, axis=1), size, True, False)
    is_left = _is_one_of(likeliest, PAIRED) & ~result.is_possible
    chosen = tf.where(result.is_possible, likeliest, _NONE)
    of_aggregation = tf.gather(aggregations, chosen, batch_dims=1)
    count = tf.math.count_nonzero(selected, axis=1, dtype=tf.float64)  # [B]
    if config.plain_answers and "aggregation_logits" in outputs:
        number = tf.reduce_sum(tf.where(selected, result.numbers, 0.0), axis=1)  # NaN for none
        is_number = (likeliest == _COUNT) & (count == 1.0) & ~tf.math.is_nan(number) & ~is_of_all
        chosen = tf.where(is_number, _NONE, chosen)
        of_both = aggregations[:, _NONE] + aggregations[:, _COUNT]
        of_aggregation = tf.where(is_number, of_both, of_aggregation)
    total = tf.reduce_sum(tf.where(selected, with_columns, tf.zeros_like(with_columns)), axis=1)
    score = tf.math.divide_no_nan(total, count) * of_aggregation
    selected = tf.where(is_left[:, tf.newaxis], selected & best, selected)
    aggregation = tf.where(result.is_unlike, _NONE, chosen)
    selected = tf.where((aggregation == _NONE)[:, tf.newaxis], selected, counted)

    texts = tf.boolean_mask(tf.reshape(asked.given.cells, [batch, size]), selected)
    by_example = tf.RaggedTensor.from_value_rowids(
        texts, tf.where(selected)[:, 0], nrows=tf.cast(batch, tf.int64), validate=False
    )
    joined = tf.strings.reduce_join(by_example, axis=1, separator=", ")
    answers = tf.where(aggregation == _NONE, joined, result.texts)
    aggregation = tf.where(is_absent, _ABSENT, aggregation)
    return {
        "cell_scores": tf.cast(tf.reshape(tf.maximum(probabilities, 0.0), shape), tf.float32),
        "selected": tf.reshape(selected & ~is_absent[:, tf.newaxis], shape),
        "aggregations": tf.gather(tf.constant(AGGREGATIONS), aggregation),
        "answers": tf.where(is_absent, "", answers),
        "scores": tf.cast(tf.where(is_absent, absent, score), tf.float32),
    }


def _is_one_of(aggregations: tf.Tensor, names: Sequence[str]) -> tf.Tensor:
    """Whether each of int32 [B] is one of some aggregations: bool [B]."""
    return tf.gather(tf.constant([name in names for name in AGGREGATIONS]), aggregations)


def _cells_of_all(
    asked: RawFeatures, facts: TableFacts, probabilities: tf.Tensor, fewest: tf.Tensor
) -> tf.Tensor:
    """The cells of the likeliest column in the rows that meet all conditions: bool [B, R*C]."""
    shape = tf.shape(facts.cells)
    rows = rows_of_all(asked.given.questions, facts, fewest)
    column = tf.argmax(probabilities, axis=1, output_type=tf.int32)[:, tf.newaxis] % shape[2]
    cells = rows[..., tf.newaxis] & (column == tf.range(shape[2]))[:, tf.newaxis]
    return tf.reshape(cells, tf.shape(probabilities)) & (probabilities > -float("inf"))


def _table_facts(asked: RawFeatures, facts: TokenFacts) -> TableFacts:
    relations = _mean_by_cell(asked, asked.tokens.numeric_relations)
    of_cells = facts.mentioned, _token_cells(asked)[1], facts.ranks, facts.places, relations
    mentioned, num_tokens, ranks, places, relations = (
        tf.reshape(values, tf.shape(asked.given.cells)) for values in of_cells
    )
    headers, cells = (
        tf.strings.lower(texts, encoding="utf-8")
        for texts in (asked.given.headers, asked.given.cells)
    )
    of_columns = facts.names, asked.columns.is_time
    sizes = asked.given.num_rows, asked.given.num_columns
    return TableFacts(
        mentioned, num_tokens, ranks, places, *of_columns, relations, headers, cells, *sizes
    )


def _swapped(
    asked: RawFeatures, facts: TableFacts, probabilities: tf.Tensor, likeliest: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """Each cell's place, with the likeliest one and that of the row that the words name swapped.

    They are int32 [B, R*C]; the others say whether the words name a row, and whether it is an
    extreme among the rows beyond a value, bool [B].
    """
    shape = tf.shape(asked.given.cells)
    num_tokens = _token_cells(asked)[1]
    best = tf.argmax(probabilities, axis=1, output_type=tf.int32)  # [B]
    column = best % shape[2]
    row, possible, is_extreme = rows_in_words(asked.given.questions, facts, column)
    named = tf.where(row < 0, best, row * shape[2] + column)
    is_one = (likeliest == _NONE) & ~_asks_for_several(asked)
    is_extreme &= is_one
    is_one &= (row >= 0) & (tf.gather(num_tokens, named, batch_dims=1) > 0)
    of_best, of_named = (tf.gather(probabilities, c, batch_dims=1) for c in (best, named))
    is_open = (of_best <= SURE) | ~tf.gather(possible, best // shape[2], batch_dims=1)
    is_one &= (named == best) | (of_named > SELECTION_THRESHOLD) | is_open
    named = tf.where(is_one, named, best)[:, tf.newaxis]
    places = tf.range(shape[1] * shape[2])
    best = best[:, tf.newaxis]
    return (
        tf.where(places == best, named, tf.where(places == named, best, places)),
        is_one,
        is_extreme,
    )


def _asks_for_several(asked: RawFeatures) -> tf.Tensor:
    """Bool [B]."""
    text = tf.strings.lower(asked.given.questions, encoding="utf-8")
    return tf.strings.regex_full_match(text, ASKS_FOR_SEVERAL)


def _selected(
    config: TableQAConfig,
    asked: RawFeatures,
    probabilities: tf.Tensor,
    likeliest: tf.Tensor,
    is_named: tf.Tensor,
) -> tf.Tensor:
    """The cells that are selected, one alone where the words name its row: bool [B, R*C]."""
    batch, size = tf.unstack(tf.shape(probabilities))
    above = tf.zeros_like(probabilities, tf.bool)
    number = tf.ones([batch], tf.int32)
    if not config.cell_cross_entropy:
        is_one = tf.zeros_like(likeliest, tf.bool)
        if config.plain_answers:
            is_one = (likeliest == _NONE) & ~_asks_for_several(asked)
        thresholds = tf.constant([SELECTION_THRESHOLD, SURE], probabilities.dtype)
        above = probabilities > tf.gather(thresholds, tf.cast(is_one, tf.int32))[:, tf.newaxis]
        expected = tf.reduce_sum(tf.maximum(probabilities, 0.0), axis=1)
        counted = tf.cast(tf.maximum(tf.round(expected), 1.0), tf.int32)
        is_of_two = _is_one_of(likeliest, PAIRED)
        possible = tf.math.count_nonzero(probabilities > 0.0, axis=1, dtype=tf.int32)
        of_two = tf.where(is_of_two, tf.clip_by_value(possible, 1, 2), number)
        number = tf.where(likeliest == _COUNT, counted, of_two)
        above &= ~(is_of_two | is_named)[:, tf.newaxis]
    order = tf.math.top_k(probabilities, k=size).indices  # of equal ones the first comes first
    ranks = tf.math.top_k(-order, k=size).indices  # the place of each cell in that order
    is_likely = (ranks < number[:, tf.newaxis]) & (probabilities > -float("inf"))
    return tf.where(tf.reduce_any(above, axis=1, keepdims=True), above, is_likely)


class _Result(NamedTuple):
    """What is computed from the selected cells."""

    texts: tf.Tensor  # string [B]; "" for NONE
    is_possible: tf.Tensor  # bool [B], whether the cells have what the aggregation needs
    is_unlike: tf.Tensor  # bool [B], whether units cannot be added: the cells are the answer
    numbers: tf.Tensor  # float64 [B, R*C], of all cells; NaN for none


def _computed(
    asked: RawFeatures, facts: TokenFacts | None, selected: tf.Tensor, likeliest: tf.Tensor
) -> _Result:
    """What `answer_of_cells` computes (mate_tf/answers/answer.py); without facts TAPAS's."""
    shape = tf.shape(asked.given.cells)
    batch, size = tf.unstack(tf.shape(selected))
    of_cells = (asked.columns.numbers, asked.columns.units, asked.given.cells)
    numbers, units, texts = (tf.reshape(values, [batch, size]) for values in of_cells)
    is_summed = selected & ~tf.math.is_nan(numbers)
    num_numbers = tf.math.count_nonzero(is_summed, axis=1, dtype=tf.float64)
    sums = tf.reduce_sum(tf.where(is_summed, numbers, tf.zeros_like(numbers)), axis=1)
    plain = tf.strings.regex_replace(texts, f"^(?:{SPACE})|(?:{SPACE})$", "")
    plain = tf.strings.lower(plain, encoding="utf-8")
    is_filled = selected & (plain != "")
    has_unit = selected & (units >= 0)
    least = tf.reduce_min(tf.where(has_unit, units, units.dtype.max), axis=1)
    is_unlike = least < tf.reduce_max(tf.where(has_unit, units, -1), axis=1)
    is_unlike &= _is_one_of(likeliest, _OF_UNITS) & (num_numbers > 0.0)

    values = {
        "SUM": sums,
        "AVERAGE": tf.math.divide_no_nan(sums, num_numbers),
        "COUNT": tf.math.count_nonzero(is_filled, axis=1, dtype=tf.float64),
    }
    others = {"NONE": tf.fill([batch], "")}
    conditions: dict[tuple[str, ...], tf.Tensor] = {("SUM", "AVERAGE"): num_numbers > 0.0}
    if facts is not None:
        values["DISTINCT"] = _num_different(plain, is_filled)
        pair = tf.math.top_k(tf.cast(selected, tf.int32), k=tf.minimum(size, 2)).indices
        pair = tf.concat([pair, pair], axis=1)[:, :2]  # of a table of one cell
        apart = _difference(asked, tf.gather(numbers, pair, batch_dims=1), pair)
        has_two = tf.math.count_nonzero(selected, axis=1) == 2
        values["DIFFERENCE"] = tf.where(tf.math.is_nan(apart), tf.zeros_like(apart), apart)
        conditions["DIFFERENCE",] = has_two & (is_unlike | ~tf.math.is_nan(apart))
        texts_of, conditions_of = _compared(asked, facts, selected, pair, has_two, texts, plain)
        others, conditions = others | texts_of, conditions | conditions_of
    value = tf.zeros([batch], tf.float64)
    for name, of_name in values.items():
        value = tf.where(_is_one_of(likeliest, (name,)), of_name, value)
    is_duration = tf.broadcast_to(asked.columns.is_duration[:, tf.newaxis], shape)
    is_duration = tf.reduce_all(tf.reshape(is_duration, [batch, size]) | ~selected, axis=1)
    is_time = is_duration & _is_one_of(likeliest, _OF_UNITS)
    text = tf.where(is_time, clock_texts(value), format_numbers(value))
    for name, of_name in others.items():
        text = tf.where(_is_one_of(likeliest, (name,)), of_name, text)
    is_possible = tf.reduce_any(selected, axis=1)
    for of_condition, holds in conditions.items():
        is_possible &= holds | ~_is_one_of(likeliest, of_condition)
    return _Result(text, is_possible, is_unlike & is_possible, numbers)


def _compared(
    asked: RawFeatures,
    facts: TokenFacts,
    selected: tf.Tensor,
    pair: tf.Tensor,
    has_two: tf.Tensor,
    texts: tf.Tensor,
    plain: tf.Tensor,
) -> tuple[dict[str, tf.Tensor], dict[tuple[str, ...], tf.Tensor]]:
    """What comparing cells by their ranks gives, by operator, and where it is possible.

    `pair`, int32 [B, 2], has the first two selected cells, and `has_two`, bool [B], says whether
    there are two. `plain` has the texts [B, R*C] in lower case, without blanks around them. The
    results are string [B] and bool [B].
    """
    ranks = tf.gather(facts.ranks, pair, batch_dims=1)  # [B, 2]
    first, second = ranks[:, 0], ranks[:, 1]
    are_ranked = has_two & tf.reduce_all(ranks > 0.0, axis=1)
    names = _named_cells(asked, pair, facts)  # [B, 2]
    places = tf.gather(facts.places, names, batch_dims=1)
    is_turned = places[:, 0] > places[:, 1]
    one, other = tf.where(is_turned, second, first), tf.where(is_turned, first, second)
    of_pair = tf.gather(plain, pair, batch_dims=1)
    is_equal = tf.where(are_ranked, first == second, of_pair[:, 0] == of_pair[:, 1])
    order = tf.where(selected & (facts.ranks > 0.0), facts.ranks, -float("inf"))
    smallest = tf.argmin(tf.where(order > 0.0, order, float("inf")), axis=1)

    def read(cells: tf.Tensor) -> tf.Tensor:
        return tf.gather(texts, cells, batch_dims=1)

    of_operators = {
        "MAX": read(tf.argmax(order, axis=1)),
        "MIN": read(smallest),
        "GREATER": read(tf.where(second > first, names[:, 1], names[:, 0])),
        "LESS": read(tf.where(second < first, names[:, 1], names[:, 0])),
        "IS_GREATER": tf.where(one > other, "yes", "no"),
        "IS_LESS": tf.where(one < other, "yes", "no"),
        "IS_EQUAL": tf.where(is_equal, "yes", "no"),
    }
    return of_operators, {
        ("MAX", "MIN"): tf.reduce_any(order > 0.0, axis=1),
        ("GREATER", "LESS", "IS_GREATER", "IS_LESS"): are_ranked,
        ("IS_EQUAL",): has_two,
    }


def _num_different(texts: tf.Tensor, is_counted: tf.Tensor) -> tf.Tensor:
    """The number of different texts that count: string and bool [B, K] to float64 [B]."""
    keys = tf.strings.to_hash_bucket_fast(texts, 2**62)
    keys = tf.sort(tf.where(is_counted, keys, -1), axis=1)
    is_new = tf.concat([keys[:, :1] >= 0, keys[:, 1:] != keys[:, :-1]], axis=1)
    return tf.math.count_nonzero(is_new, axis=1, dtype=tf.float64)


def _difference(asked: RawFeatures, numbers: tf.Tensor, pair: tf.Tensor) -> tf.Tensor:
    """The difference of two cells' numbers or dates: float64 [B], NaN where there is none."""
    fields = tf.transpose(asked.columns.fields, [0, 2, 1, 3])
    shape = tf.shape(fields)
    fields = tf.reshape(fields, [shape[0], shape[1] * shape[2], 5])
    year, month, day = tf.unstack(tf.gather(fields, pair, batch_dims=1)[..., 1:4], axis=-1)
    days = days_of(year, month, day)  # [B, 2], NaN where one is missing

    def apart(values: tf.Tensor) -> tf.Tensor:
        return tf.abs(values[:, 0] - values[:, 1])

    of_dates = tf.where(tf.math.is_nan(apart(days)), apart(year), apart(days))
    return tf.where(tf.math.is_nan(apart(numbers)), of_dates, apart(numbers))


def _token_facts(asked: RawFeatures) -> TokenFacts:
    """The facts of all cells, float64 [B, R*C], and headers [B, C], as the library has them."""
    tokens = asked.tokens
    is_question = (tokens.segment_ids == 0) & (tokens.input_mask > 0)  # [B, S]
    longest = tf.maximum(tf.reduce_max(tf.reduce_sum(tf.cast(is_question, tf.int32), axis=1)), 1)
    words = tf.where(is_question, tokens.input_ids, -1)[:, tf.newaxis, :longest]  # [B, 1, Q]
    is_same = tf.cast(tokens.input_ids[..., tf.newaxis] == words, tf.int32)  # [B, S, Q]
    mentioned = tf.reduce_max(is_same, axis=-1)
    places = tf.argmax(is_same, axis=-1, output_type=tf.int32)
    shares = _mean_by_cell(asked, mentioned)
    of_places = tf.math.divide_no_nan(_mean_by_cell(asked, places), shares)
    batch, width = tf.unstack(tf.shape(asked.given.headers))
    in_header = (tokens.column_ids > 0) & (tokens.row_ids == 0) & (tokens.input_mask > 0)
    columns = tf.range(batch)[:, tf.newaxis] * width + tokens.column_ids - 1
    columns = tf.reshape(tf.where(in_header, columns, -1), [-1])
    counts, sums = (
        tf.math.unsorted_segment_sum(tf.reshape(values, [-1]), columns, batch * width)
        for values in (tf.ones_like(mentioned), mentioned)
    )
    names = tf.reshape(sums / tf.maximum(counts, 1), [batch, width])  # float64
    return TokenFacts(_mean_by_cell(asked, tokens.column_ranks), shares, of_places, names)


def _named_cells(asked: RawFeatures, pair: tf.Tensor, facts: TokenFacts) -> tf.Tensor:
    """The cells that name the rows of two cells: int32 [B, 2]."""
    shape = tf.shape(asked.given.cells)
    width, num_columns = shape[2], asked.given.num_columns[:, tf.newaxis]
    rows, columns = pair // width, pair % width
    mentioned = tf.reshape(facts.mentioned, shape)
    of_columns = tf.reduce_sum(tf.gather(mentioned, rows, batch_dims=1), axis=1)  # [B, C]
    is_theirs = tf.reduce_any(columns[..., tf.newaxis] == tf.range(width), axis=1)
    of_columns = tf.where(is_theirs & (num_columns > 1), tf.constant(-1.0, tf.float64), of_columns)
    is_padding = tf.range(width) >= num_columns
    of_columns = tf.where(is_padding, tf.constant(-2.0, tf.float64), of_columns)
    column = tf.argmax(of_columns, axis=1, output_type=tf.int32)
    return rows * width + column[:, tf.newaxis]


def _mean_by_cell(asked: RawFeatures, values: tf.Tensor) -> tf.Tensor:
    """Averages token values [B, S] over each cell: float64 [B, R*C], 0 where it has no token."""
    shape = tf.shape(asked.given.cells)
    cells, num_tokens = _token_cells(asked)  # [B * S], [B, R*C]
    flat = tf.reshape(tf.cast(values, tf.float64), [-1])
    sums = tf.math.unsorted_segment_sum(flat, cells, tf.reduce_prod(shape))
    sums = tf.reshape(sums, [shape[0], shape[1] * shape[2]])
    return sums / tf.cast(tf.maximum(num_tokens, 1), tf.float64)


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
    zeros = tf.fill(tf.shape(digits), _ZEROS)
    left, right = (tf.maximum(n, 0) for n in (-exponent, exponent + 1 - _DIGITS))
    before, behind = (tf.strings.substr(zeros, 0 * n, n) for n in (left, right))
    digits = tf.strings.join([before, digits, behind])
    point = tf.maximum(exponent, 0) + 1
    fraction = tf.strings.substr(digits, point, tf.strings.length(digits) - point)
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
    clock = (whole // 3600, whole // 60 % 60, whole % 60)
    parts = [tf.strings.as_string(part, width=2, fill="0") for part in clock]
    sign = tf.where(values < 0.0, "-", "")
    return tf.strings.join([sign, tf.strings.join(parts, ":"), rest])


def _cell_probabilities(
    asked: RawFeatures, outputs: Mapping[str, tf.Tensor]
) -> tuple[tf.Tensor, tf.Tensor]:
    """The probability of each cell, -inf where it was not seen: float64 [B, R*C], in two ways.

    The first is that by which cells are selected, the second that given the cell's column, times
    the column's probability.
    """
    shape = tf.shape(asked.given.cells)
    is_seen = _token_cells(asked)[1] > 0
    unseen = tf.constant(-float("inf"), tf.float64)
    probabilities = tf.where(is_seen, _mean_by_cell(asked, outputs["token_probabilities"]), unseen)
    if "column_logits" not in outputs:
        return probabilities, probabilities
    column_logits = tf.cast(outputs["column_logits"], tf.float64)
    columns = tf.tile(tf.range(1, shape[2] + 1), [shape[1]])  # [R*C]
    columns = tf.minimum(columns, tf.shape(column_logits)[1] - 1)
    likeliest = 1 + tf.argmax(column_logits[:, 1:], axis=1, output_type=tf.int32)  # [B]
    of_columns = tf.gather(tf.nn.softmax(column_logits), columns, axis=1)  # [B, R*C]
    in_columns = tf.sigmoid(_mean_by_cell(asked, outputs["token_logits"]))
    in_columns = tf.where(probabilities > 0.0, probabilities, in_columns)
    in_columns = tf.where(is_seen, in_columns, unseen)
    is_chosen = columns == likeliest[:, tf.newaxis]
    return tf.where(is_chosen, in_columns, probabilities), in_columns * of_columns


def _token_cells(asked: RawFeatures) -> tuple[tf.Tensor, tf.Tensor]:
    """The body cell of each token, or -1, [B * S]; and the number of tokens of each, [B, R*C]."""
    shape = tf.shape(asked.given.cells)
    rows, columns = asked.tokens.row_ids - 1, asked.tokens.column_ids - 1
    cells = (tf.range(shape[0])[:, tf.newaxis] * shape[1] + rows) * shape[2] + columns
    cells = tf.reshape(tf.where((rows >= 0) & (columns >= 0), cells, -1), [-1])
    ones = tf.ones_like(cells)
    num_tokens = tf.math.unsorted_segment_sum(ones, cells, tf.reduce_prod(shape))
    return cells, tf.reshape(num_tokens, [shape[0], shape[1] * shape[2]])
