"""The row that a question's words name, in the graph: as mate_tf/answers/row_words.py.

Shapes: B batch, R rows and C columns of the largest table of the batch.
"""

from typing import NamedTuple

import tensorflow as tf

from mate_tf.answers import row_words
from mate_tf.answers.row_words import IN_PART, NAMED, RANKED
from mate_tf.features.numeric import EQUAL, GREATER, LESS
from mate_tf.tables.table import COMPUTED


class TableFacts(NamedTuple):
    """What the tokens of tables say: the fields of `RowFacts`, of a batch, and its sizes."""

    mentioned: tf.Tensor  # float64 [B, R, C]
    num_tokens: tf.Tensor  # int32 [B, R, C]
    ranks: tf.Tensor  # float64 [B, R, C]
    names: tf.Tensor  # float64 [B, C]
    is_time: tf.Tensor  # bool [B, C]
    num_rows: tf.Tensor  # int32 [B]
    num_columns: tf.Tensor  # int32 [B]


def rows_in_words(
    questions: tf.Tensor, headers: tf.Tensor, facts: TableFacts, columns: tf.Tensor
) -> tf.Tensor:
    """The row that the words of each question name, -1 for none: int32 [B].

    Questions are string [B], headers string [B, C], and the answers' columns int32 [B].
    """
    text = tf.strings.lower(questions, encoding="utf-8")  # [B]
    nth = tf.ones_like(facts.num_rows)
    for number, pattern in row_words.NTH.items():
        nth = tf.where(_is_in(pattern, text), number, nth)
    text = tf.where(nth > 1, tf.strings.regex_replace(text, row_words.ORDINAL, ""), text)
    names = tf.strings.lower(headers, encoding="utf-8")  # [B, C]
    words = {name: _is_in(pattern, text) for name, pattern in row_words.WORDS.items()}
    whole = tf.where(facts.mentioned >= 1.0, facts.num_tokens, 0)  # [B, R, C]
    is_extreme = words["most"] | words["least"]
    is_neighbour = words["next"] ^ words["previous"]
    is_newest_first = _is_newest_first(names, facts)
    neighbour = _neighbour(whole, facts, tf.where(words["next"] ^ is_newest_first, 1, -1))
    extreme = _extreme(text, names, facts, columns, words, whole, nth)
    extreme = tf.where(_is_in(row_words.COMPARED, text), -1, extreme)
    is_end = (words["first"] ^ words["last"]) & ~is_neighbour & ~_is_in(row_words.STEPS, text)
    among = _most(tf.reduce_max(whole, axis=2))  # [B, R]
    number = tf.math.count_nonzero(among, axis=1)
    is_end &= number != 1
    index = tf.range(tf.shape(among)[1])
    among |= (number == 0)[:, tf.newaxis] & (index < facts.num_rows[:, tf.newaxis])
    first = tf.argmax(among, axis=1, output_type=tf.int32)
    last = tf.reduce_max(tf.where(among, index, 0), axis=1)
    end = tf.where(words["first"] ^ is_newest_first, first, last)
    is_time = facts.is_time & _are_ranked(facts)
    num_times = tf.math.count_nonzero(is_time, axis=1)
    ranks = tf.gather(facts.ranks, tf.maximum(_only(is_time), 0), axis=2, batch_dims=1)
    ranks = tf.where(among, ranks, tf.zeros_like(ranks))
    in_time = tf.where(num_times == 1, _only_row(ranks, words["last"]), -1)
    end = tf.where((num_times == 0) | _is_in(row_words.IN_ORDER, text), end, in_time)
    row = tf.where((extreme < 0) & is_end, end, extreme)
    row = tf.where(is_neighbour & ~is_extreme, neighbour, row)
    row = tf.where(_is_in(row_words.NOT_ALONE, text), -1, row)
    is_looked_up = ~_is_in(row_words.NOT_LOOKED_UP, text)
    return tf.where(is_looked_up, _looked_up(whole, facts.mentioned), row)


def rows_beyond(
    questions: tf.Tensor, relations: tf.Tensor, names: tf.Tensor, num_rows: tf.Tensor
) -> tf.Tensor:
    """The rows beyond the value that each question names, or between two values: bool [B, R].

    Args:
        questions: string [B].
        relations: float64 [B, R, C], the bits of `numeric_relations` of each cell.
        names: float64 [B, C], the share of each header's tokens that are in the question.
        num_rows: int32 [B].
    """
    text = tf.strings.lower(questions, encoding="utf-8")
    found = [_is_in(pattern, text) for pattern, _ in row_words.ALLOWED]
    allowed = tf.zeros_like(num_rows)  # [B]
    for is_found, (_, bits) in reversed(list(zip(found, row_words.ALLOWED, strict=True))):
        allowed = tf.where(is_found, bits, allowed)
    at_most, at_least, over, under = found
    is_unclear = _is_in(row_words.NOT_BEYOND, text) | (over & under & ~at_most & ~at_least)
    allowed = tf.where(is_unclear, 0, allowed)[:, tf.newaxis, tf.newaxis]
    is_between = _is_in(row_words.BETWEEN, text) & ~_is_in(row_words.APART, text)
    is_between = is_between[:, tf.newaxis, tf.newaxis]
    bits = tf.cast(tf.maximum(relations, 0.0), tf.int32)
    is_one = (bits == EQUAL) | (bits == LESS) | (bits == GREATER) | (is_between & (bits > 0))
    is_one &= tf.cast(bits, relations.dtype) == relations
    bits = tf.where(is_one, bits, 0)
    between = (tf.bitwise.bitwise_and(bits, EQUAL) > 0) | (bits == LESS | GREATER)
    rows = tf.where(is_between, between, tf.bitwise.bitwise_and(bits, allowed) > 0)  # [B, R, C]
    count = tf.math.count_nonzero(rows, axis=1, dtype=tf.int32)  # [B, C]
    comparable = tf.math.count_nonzero(is_one, axis=1, dtype=tf.float64)
    num_rows = num_rows[:, tf.newaxis]
    fits = comparable / tf.cast(num_rows, tf.float64) >= row_words.COMPARABLE
    fits &= tf.reduce_all((relations <= 0.0) | is_one, axis=1)
    fits &= (count > 0) & (count < num_rows)
    shares = tf.where(fits, names, -1.0)
    best = tf.reduce_max(shares, axis=1, keepdims=True)
    named = _only(fits & (shares == best) & (names >= NAMED))
    column = tf.where(named >= 0, named, _only(fits))  # [B]
    of_column = tf.gather(rows, tf.maximum(column, 0), axis=2, batch_dims=1)
    return of_column & (column >= 0)[:, tf.newaxis]


def rows_of_all(
    questions: tf.Tensor,
    cells: tf.Tensor,
    facts: TableFacts,
    places: tf.Tensor,
    relations: tf.Tensor,
    fewest: tf.Tensor,
) -> tf.Tensor:
    """The rows that meet all conditions of each question, or are beyond its value: bool [B, R].

    Args:
        questions: string [B].
        cells: string [B, R, C].
        facts: of the tables.
        places: float64 [B, R, C], where in the question the tokens of each cell are.
        relations: float64 [B, R, C], as of `rows_beyond`.
        fewest: int32 [B], how many conditions suffice, of FEWEST.
    """
    text = tf.strings.lower(questions, encoding="utf-8")
    lower = tf.strings.lower(cells, encoding="utf-8")
    beyond = rows_beyond(questions, relations, facts.names, facts.num_rows)
    is_beyond = tf.reduce_any(beyond, axis=1)  # [B]
    num_rows = facts.num_rows[:, tf.newaxis]
    is_row = (tf.range(tf.shape(cells)[1]) < num_rows)[..., tf.newaxis]  # [B, R, 1]
    is_yes, is_flag, is_one_letter = (
        tf.strings.regex_full_match(lower, what)
        for what in (row_words.YES, row_words.YES_OR_NO, row_words.ONE_LETTER)
    )
    is_yes &= is_row
    is_flag = tf.reduce_all(is_flag | ~is_row, axis=1) & tf.reduce_any(is_yes, axis=1)  # [B, C]
    said = (facts.mentioned >= 1.0) & ~is_flag[:, tf.newaxis] & ~is_one_letter & is_row
    said &= (relations == 0.0) | ~is_beyond[:, tf.newaxis, tf.newaxis]
    first = tf.reduce_min(tf.where(said, places, float("inf")), axis=1)  # [B, C]
    index = tf.range(tf.shape(cells)[2])
    is_again = first[..., tf.newaxis] == first[:, tf.newaxis]
    is_again = tf.reduce_any(is_again & (index[:, tf.newaxis] > index), axis=2)
    of_flags = is_yes & (facts.names >= 1.0)[:, tf.newaxis]
    met = tf.where(is_flag[:, tf.newaxis], of_flags, said & ~is_again[:, tf.newaxis])
    met = tf.concat([met, beyond[..., tf.newaxis]], axis=2)
    count = tf.math.count_nonzero(met, axis=1, dtype=tf.int32)
    is_condition = (count > 0) & (count < num_rows)  # [B, C+1]
    rows = tf.reduce_all(met | ~is_condition[:, tf.newaxis], axis=2) & is_row[..., 0]
    number = tf.math.count_nonzero(is_condition, axis=1, dtype=tf.int32)
    has_digit = _is_in(row_words.DIGIT, lower) & is_condition[:, tf.newaxis, :-1]
    is_alone = (number == 1) & (fewest == 1) & ~is_beyond
    is_alone &= tf.math.count_nonzero(rows, axis=1) > 1
    is_alone &= ~tf.reduce_any(met[..., :-1] & has_digit, axis=[1, 2])
    is_all = (number > 1) & tf.reduce_any(rows, axis=1) & (is_beyond | (fewest > 0)) | is_alone
    is_all &= ~_is_in(row_words.NOT_ALL, text)
    return tf.where(is_all[:, tf.newaxis], rows, beyond)


def towards_words(questions: tf.Tensor, names: tf.Tensor, aggregations: tf.Tensor) -> tf.Tensor:
    """Probabilities of operators, float64 [B, A], moved to those that the words mean.

    Questions are string [B], and so are the names of the columns that are compared.
    """
    text = tf.strings.lower(questions, encoding="utf-8")
    asked = text + "\n" + tf.strings.lower(names, encoding="utf-8")
    of_column = row_words.MORE_OF_COLUMN, row_words.LESS_OF_COLUMN
    more, less = (_is_in(pattern, asked) for pattern in of_column)  # [B]
    is_of_column = more ^ less
    more = tf.where(is_of_column, more, _is_in(row_words.COMPARED_MORE, text))
    less = tf.where(is_of_column, less, _is_in(row_words.COMPARED_LESS, text))
    columns = tf.unstack(aggregations, num=len(COMPUTED), axis=1)
    for is_said, moves in ((more & ~less, row_words.TO_MORE), (less & ~more, row_words.TO_LESS)):
        for here, there in (map(COMPUTED.index, move) for move in moves):
            moved = tf.where(is_said, columns[here], tf.zeros_like(columns[here]))
            columns[there], columns[here] = columns[there] + moved, columns[here] - moved
    return tf.stack(columns, axis=1)


def _is_in(pattern: str, texts: tf.Tensor) -> tf.Tensor:
    return tf.strings.regex_full_match(texts, f"(?s:.*)(?:{pattern})(?s:.*)")


def _only(are: tf.Tensor) -> tf.Tensor:
    """The index of the only true value of each row of bool [B, N]; -1 for none or several."""
    index = tf.argmax(are, axis=1, output_type=tf.int32)
    return tf.where(tf.math.count_nonzero(are, axis=1) == 1, index, -1)


def _looked_up(whole: tf.Tensor, mentioned: tf.Tensor) -> tf.Tensor:
    longest = tf.cast(tf.reduce_max(whole, axis=2), mentioned.dtype)  # [B, R]
    parts = tf.where(mentioned >= IN_PART, mentioned, tf.zeros_like(mentioned))
    is_whole = tf.reduce_any(longest > 0, axis=1, keepdims=True)
    longest = tf.where(is_whole, longest, tf.reduce_max(parts, axis=2))
    num_whole = tf.math.count_nonzero(whole, axis=2)
    return _only(_most(tf.where(_most(longest), 1 + num_whole, 0)))


def _most(values: tf.Tensor) -> tf.Tensor:
    """Whether each of [B, R] is the largest of its line, and above 0."""
    return (values == tf.reduce_max(values, axis=1, keepdims=True)) & (values > 0)


def _neighbour(whole: tf.Tensor, facts: TableFacts, step: tf.Tensor) -> tf.Tensor:
    row = _only(_most(tf.reduce_max(whole, axis=2)))
    is_there = (row >= 0) & (row + step >= 0) & (row + step < facts.num_rows)
    return tf.where(is_there, row + step, -1)


def _extreme(
    text: tf.Tensor,
    names: tf.Tensor,
    facts: TableFacts,
    columns: tf.Tensor,
    words: dict[str, tf.Tensor],
    whole: tf.Tensor,
    nth: tf.Tensor,
) -> tf.Tensor:
    asked_of = text[:, tf.newaxis] + "\n" + names  # [B, C]
    says_either = (words["most"] ^ words["least"])[:, tf.newaxis]
    shares = tf.where(says_either, facts.names, tf.zeros_like(facts.names))
    is_most = tf.broadcast_to(words["most"][:, tf.newaxis], tf.shape(names))  # [B, C]
    for share, patterns in row_words.SCALES:
        most, least = (_is_in(pattern, asked_of) for pattern in patterns)
        is_scaled = (most ^ least) & (shares < NAMED)
        shares = tf.where(is_scaled, tf.constant(share, shares.dtype), shares)
        is_most = tf.where(is_scaled, most, is_most)
    index = tf.range(tf.shape(names)[1])
    is_there = _are_ranked(facts) & ~_is_in(row_words.PLACES, names)
    is_there &= index < facts.num_columns[:, tf.newaxis]
    shares = tf.where(is_there, shares, tf.zeros_like(shares))
    by = (shares == tf.reduce_max(shares, axis=1, keepdims=True)) & (shares >= NAMED)
    is_answer = index == columns[:, tf.newaxis]
    has_several = tf.math.count_nonzero(by, axis=1, keepdims=True) > 1
    by = _only(by & ~(has_several & is_answer))  # [B]
    at = tf.maximum(by, 0)
    among = _most(tf.reduce_max(whole, axis=2))  # [B, R]
    among |= tf.math.count_nonzero(among, axis=1, keepdims=True) < 2
    ranks = tf.gather(facts.ranks, at, axis=2, batch_dims=1)  # [B, R]
    ranks = tf.where(among, ranks, tf.zeros_like(ranks))
    row = _only_row(ranks, tf.gather(is_most, at, batch_dims=1), nth)
    is_named = (by >= 0) & ((by != columns) | _is_in(row_words.ASKS_FOR_VALUE, text))
    return tf.where(is_named, row, -1)


def _are_ranked(facts: TableFacts) -> tf.Tensor:
    """Whether most cells of a column have a value: bool [B, C]."""
    num_ranked = tf.math.count_nonzero(facts.ranks > 0, axis=1, dtype=tf.float64)
    return num_ranked / tf.cast(facts.num_rows, tf.float64)[:, tf.newaxis] >= RANKED


def _only_row(ranks: tf.Tensor, is_most: tf.Tensor, nth: tf.Tensor | int = 1) -> tf.Tensor:
    """The only row with the nth highest or lowest rank, of float64 [B, R]; -1 for several."""
    order = tf.where(is_most[:, tf.newaxis], ranks, -ranks)
    order = tf.where(ranks > 0, order, tf.constant(-float("inf"), tf.float64))
    nth = tf.broadcast_to(nth, tf.shape(order)[:1])
    at = tf.minimum(nth, tf.shape(order)[1]) - 1
    best = tf.gather(tf.sort(order, axis=1, direction="DESCENDING"), at, batch_dims=1)  # [B]
    is_nth = (order == best[:, tf.newaxis]) & (order > -float("inf"))
    return _only(is_nth & (at == nth - 1)[:, tf.newaxis])


def _is_newest_first(names: tf.Tensor, facts: TableFacts) -> tf.Tensor:
    """Bool [B]."""
    ranks, shape = facts.ranks, tf.shape(facts.ranks)
    index = tf.range(shape[1])
    is_row = (index < facts.num_rows[:, tf.newaxis])[..., tf.newaxis]  # [B, R, 1]
    never_later = (ranks[:, 1:] <= ranks[:, :-1]) | ~is_row[:, 1:]
    last = tf.gather(ranks, facts.num_rows - 1, axis=1, batch_dims=1)  # [B, C]
    falls = tf.reduce_all((ranks > 0) | ~is_row, axis=1) & tf.reduce_all(never_later, axis=1)
    falls &= ranks[:, 0] > last
    return tf.reduce_any(falls & _is_in(row_words.TIMES, names), axis=1)
