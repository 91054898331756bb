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
    """What tables say: the fields of `RowFacts`, of a batch, with its headers and sizes."""

    mentioned: tf.Tensor  # float64 [B, R, C]
    num_tokens: tf.Tensor  # int32 [B, R, C]
    ranks: tf.Tensor  # float64 [B, R, C]
    places: tf.Tensor  # float64 [B, R, C]
    names: tf.Tensor  # float64 [B, C]
    is_time: tf.Tensor  # bool [B, C]
    relations: tf.Tensor  # float64 [B, R, C]
    headers: tf.Tensor  # string [B, C], in lower case
    cells: tf.Tensor  # string [B, R, C], in lower case
    num_rows: tf.Tensor  # int32 [B]
    num_columns: tf.Tensor  # int32 [B]

    @property
    def is_row(self) -> tf.Tensor:
        """Bool [B, R]."""
        return tf.range(tf.shape(self.cells)[1]) < self.num_rows[:, tf.newaxis]


class NamedRows(NamedTuple):
    """The rows that words name: the fields of `NamedRow`, of a batch."""

    row: tf.Tensor  # int32 [B], -1 for none
    possible: tf.Tensor  # bool [B, R]
    is_extreme: tf.Tensor  # bool [B]


def rows_in_words(questions: tf.Tensor, facts: TableFacts, columns: tf.Tensor) -> NamedRows:
    """The row that the words of each question name.

    Questions are string [B], and the answers' columns int32 [B].
    """
    text = tf.strings.lower(questions, encoding="utf-8")  # [B]
    nth = tf.ones_like(facts.num_rows)
    for number, pattern in row_words.NTH.items():
        nth = tf.where(_is_in(pattern, text), number, nth)
    text = _without(row_words.ORDINAL, text, nth > 1)
    bare = _without(row_words.NOT_SUPERLATIVE, text)
    is_superlative = _is_in(row_words.SUPERLATIVE, bare)
    met, are_flags, is_no = _flags(text, facts)
    is_negated = tf.reduce_any(is_no, axis=1)
    text = _without(row_words.NEGATED, text, is_negated & is_superlative)
    of_kind = _are_of_kind(text, facts)
    beyond, by_value = rows_beyond(questions, facts, of_kind)
    is_beyond = (by_value >= 0) & is_superlative & ~_is_in(row_words.NO_EXTREME, bare)
    by_value = tf.where(is_beyond, by_value, -1)
    text = _without(row_words.NOT_SUPERLATIVE, text, is_beyond)
    words = {name: _is_in(pattern, text) for name, pattern in row_words.WORDS.items()}
    whole = tf.where(facts.mentioned >= 1.0, facts.num_tokens, 0)  # [B, R, C]
    is_neighbour = words["next"] ^ words["previous"]
    is_newest_first = _is_newest_first(facts)
    neighbour = _neighbour(whole, facts, tf.where(words["next"] ^ is_newest_first, 1, -1))

    is_value = is_beyond[:, tf.newaxis, tf.newaxis] & (facts.relations != 0.0)
    among = _most(tf.reduce_max(tf.where(is_value, 0, whole), axis=2))  # [B, R]
    among |= tf.math.count_nonzero(among, axis=1, keepdims=True) < 2
    among &= facts.is_row
    is_asked = are_flags & tf.reduce_any(met, axis=1)
    of_flags = tf.reduce_all(met | ~is_asked[:, tf.newaxis], axis=2)
    for rows in (of_flags, beyond | ~is_beyond[:, tf.newaxis]):
        among &= rows | ~tf.reduce_any(among & rows, axis=1, keepdims=True)
    extreme = _extreme(text, facts, columns, words, among, nth, of_kind, by_value)
    extreme = tf.where(_is_in(row_words.COMPARED, text) & ~is_beyond, -1, extreme)
    possible = among & (nth == 1)[:, tf.newaxis]

    is_end = (words["first"] ^ words["last"]) & ~is_neighbour & ~_is_in(row_words.STEPS, text)
    among = _most(tf.reduce_max(whole, axis=2))
    number = tf.math.count_nonzero(among, axis=1)
    is_end &= number != 1
    among |= (number == 0)[:, tf.newaxis] & facts.is_row
    first = tf.argmax(among, axis=1, output_type=tf.int32)
    last = tf.reduce_max(tf.where(among, tf.range(tf.shape(among)[1]), 0), axis=1)
    end = tf.where(words["first"] ^ is_newest_first, first, last)
    is_time = facts.is_time & _are_ranked(facts)
    num_times = tf.math.count_nonzero(is_time, axis=1)
    ranks = tf.gather(facts.ranks, tf.maximum(_only(is_time), 0), axis=2, batch_dims=1)
    ranks = tf.where(among, ranks, tf.zeros_like(ranks))
    in_time = tf.where(num_times == 1, _only_row(ranks, words["last"]), -1)
    end = tf.where((num_times == 0) | _is_in(row_words.IN_ORDER, text), end, in_time)

    row = tf.where((extreme < 0) & is_end & ~is_beyond, end, extreme)
    is_next = is_neighbour & ~words["most"] & ~words["least"] & ~is_beyond
    row = tf.where(is_next, neighbour, row)
    is_not_alone = _is_in(row_words.NOT_ALONE, text) & ~is_beyond
    row = tf.where(is_not_alone, -1, row)
    is_looked_up = ~_is_in(row_words.NOT_LOOKED_UP, text) & ~is_beyond
    row = tf.where(is_looked_up, _looked_up(whole, facts.mentioned), row)
    is_other = (extreme < 0) | is_next | is_looked_up
    return NamedRows(row, possible | is_other[:, tf.newaxis], is_beyond & (row >= 0))


def _without(pattern: str, texts: tf.Tensor, where: tf.Tensor | bool = True) -> tf.Tensor:
    """Texts [B] with what matches left out, of some of them, bool [B]."""
    return tf.where(where, tf.strings.regex_replace(texts, pattern, ""), texts)


def _are_of_kind(text: tf.Tensor, facts: TableFacts) -> tf.Tensor:
    """The columns of a kind that each question, in lower case, speaks of: bool [B, C]."""
    columns = facts.headers + " " + facts.cells[:, 0]
    is_any = tf.zeros_like(facts.is_time)
    for asked, column in row_words.KINDS:
        is_any |= _is_in(asked, text)[:, tf.newaxis] & _is_in(column, columns)
    return is_any


def _flags(text: tf.Tensor, facts: TableFacts) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """The results of the library's `_flags`, of a batch."""
    is_yes, is_flag = (
        tf.strings.regex_full_match(facts.cells, what)
        for what in (row_words.YES, row_words.YES_OR_NO)
    )
    is_row = facts.is_row[..., tf.newaxis]
    is_yes &= is_row
    are_flags = tf.reduce_all(is_flag | ~is_row, axis=1) & tf.reduce_any(is_yes, axis=1)  # [B, C]
    words = tf.strings.split(tf.strings.regex_replace(text, row_words.NO_WORD, " ")).to_tensor()
    is_un = ("un" + facts.headers)[..., tf.newaxis] == words[:, tf.newaxis]
    is_un = tf.reduce_any(is_un, axis=2)  # [B, C]
    is_named = are_flags & ((facts.names >= 1.0) | is_un)
    is_negated = _is_in(row_words.NEGATED, text)[:, tf.newaxis]
    is_named &= ~is_negated | (tf.math.count_nonzero(is_named, axis=1, keepdims=True) == 1)
    is_no = is_named & (is_un ^ is_negated)
    met = is_named[:, tf.newaxis] & (is_yes ^ is_no[:, tf.newaxis]) & is_row
    return met, are_flags, is_no


def rows_beyond(
    questions: tf.Tensor, facts: TableFacts, of_kind: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
    """The rows beyond the value that each question names, or between two values: bool [B, R].

    And the column of the value, int32 [B], -1 for none. Questions are string [B]; the columns of a
    kind that they speak of are bool [B, C].
    """
    text, relations = tf.strings.lower(questions, encoding="utf-8"), facts.relations
    found = [_is_in(pattern, text) for pattern, _ in row_words.ALLOWED]
    allowed = tf.zeros_like(facts.num_rows)  # [B]
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
    num_rows = facts.num_rows[:, tf.newaxis]
    fits = comparable / tf.cast(num_rows, tf.float64) >= row_words.COMPARABLE
    fits &= tf.reduce_all((relations <= 0.0) | is_one, axis=1)
    fits &= (count > 0) & (count < num_rows)
    names = facts.names + row_words.OF_KIND * tf.cast(of_kind, facts.names.dtype)
    shares = tf.where(fits, names, -1.0)
    best = tf.reduce_max(shares, axis=1, keepdims=True)
    named = _only(fits & (shares == best) & (names >= NAMED))
    column = tf.where(named >= 0, named, _only(fits))  # [B]
    of_column = tf.gather(rows, tf.maximum(column, 0), axis=2, batch_dims=1)
    return of_column & (column >= 0)[:, tf.newaxis], column


def rows_of_all(questions: tf.Tensor, facts: TableFacts, fewest: tf.Tensor) -> tf.Tensor:
    """The rows that meet all conditions of each question, or are beyond its value: bool [B, R].

    Questions are string [B], and how many conditions suffice, of FEWEST, int32 [B].
    """
    text = tf.strings.lower(questions, encoding="utf-8")
    beyond, by_value = rows_beyond(questions, facts, _are_of_kind(text, facts))
    is_beyond = by_value >= 0  # [B]
    is_row = facts.is_row[..., tf.newaxis]  # [B, R, 1]
    of_flags, are_flags, is_no = _flags(text, facts)
    is_one_letter = tf.strings.regex_full_match(facts.cells, row_words.ONE_LETTER)
    said = (facts.mentioned >= 1.0) & ~are_flags[:, tf.newaxis] & ~is_one_letter & is_row
    is_numbered = tf.strings.regex_full_match(facts.cells, row_words.NUMBERED)
    is_value = (facts.relations != 0.0) & ~is_numbered
    said &= ~(is_value & is_beyond[:, tf.newaxis, tf.newaxis])
    first = tf.reduce_min(tf.where(said, facts.places, float("inf")), axis=1)  # [B, C]
    index = tf.range(tf.shape(said)[2])
    is_again = first[..., tf.newaxis] == first[:, tf.newaxis]
    is_again = tf.reduce_any(is_again & (index[:, tf.newaxis] > index), axis=2)
    met = tf.where(are_flags[:, tf.newaxis], of_flags, said & ~is_again[:, tf.newaxis])
    met = tf.concat([met, beyond[..., tf.newaxis]], axis=2)
    count = tf.math.count_nonzero(met, axis=1, dtype=tf.int32)
    is_condition = (count > 0) & (count < facts.num_rows[:, tf.newaxis])  # [B, C+1]
    rows = tf.reduce_all(met | ~is_condition[:, tf.newaxis], axis=2) & is_row[..., 0]
    number = tf.math.count_nonzero(is_condition, axis=1, dtype=tf.int32)
    has_digit = _is_in(row_words.DIGIT, facts.cells) & is_condition[:, tf.newaxis, :-1]
    is_alone = fewest == 1
    is_alone &= tf.math.count_nonzero(rows, axis=1) > 1
    is_alone &= ~tf.reduce_any(met[..., :-1] & has_digit, axis=[1, 2])
    is_no_alone = tf.reduce_any(is_condition[:, :-1] & is_no, axis=1) & (fewest > 0)
    is_alone = (number == 1) & ~is_beyond & (is_alone | is_no_alone)
    is_all = (number > 1) & tf.reduce_any(rows, axis=1) & (is_beyond | (fewest > 0)) | is_alone
    others = _without(row_words.NEGATED, text, tf.reduce_any(is_no, axis=1))
    is_all &= ~_is_in(row_words.NOT_ALL, others)
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
    facts: TableFacts,
    columns: tf.Tensor,
    words: dict[str, tf.Tensor],
    among: tf.Tensor,
    nth: tf.Tensor,
    of_kind: tf.Tensor,
    by_value: tf.Tensor,
) -> tf.Tensor:
    asked_of = text[:, tf.newaxis] + "\n" + facts.headers  # [B, C]
    says_either = (words["most"] ^ words["least"])[:, tf.newaxis]
    index = tf.range(tf.shape(facts.names)[1])
    is_named = says_either & (index != by_value[:, tf.newaxis])
    shares = tf.where(is_named, facts.names, tf.zeros_like(facts.names))
    is_most = tf.broadcast_to(words["most"][:, tf.newaxis], tf.shape(shares))  # [B, C]
    for share, patterns in row_words.SCALES:
        most, least = (_is_in(pattern, asked_of) for pattern in patterns)
        is_scaled = (most ^ least) & (shares < NAMED)
        shares = tf.where(is_scaled, tf.constant(share, shares.dtype), shares)
        is_most = tf.where(is_scaled, most, is_most)
    is_ranked = _are_ranked(facts) & (index < facts.num_columns[:, tf.newaxis])
    is_measure = is_ranked & ~_is_in(row_words.PLACES, facts.headers)
    shares = tf.where(is_measure, shares, tf.zeros_like(shares))
    for more, less, of_words in (
        (row_words.LATEST, row_words.EARLIEST, facts.is_time & is_ranked),
        (row_words.BIGGER, row_words.SMALLER, of_kind & is_measure),
    ):
        is_more, is_less = _is_in(more, text), _is_in(less, text)
        is_other = of_words & (index != by_value[:, tf.newaxis])
        of_words = tf.where(tf.reduce_any(is_other, axis=1, keepdims=True), is_other, of_words)
        is_meant = (is_more ^ is_less) & tf.reduce_any(of_words, axis=1)
        is_meant = (is_meant & tf.reduce_all(shares < NAMED, axis=1))[:, tf.newaxis]
        of_words = tf.where(of_words, NAMED + facts.names, tf.zeros_like(shares))
        shares = tf.where(is_meant, of_words, shares)
        is_most = tf.where(is_meant, is_more[:, tf.newaxis], is_most)
    by = (shares == tf.reduce_max(shares, axis=1, keepdims=True)) & (shares >= NAMED)
    is_answer = index == columns[:, tf.newaxis]
    has_several = tf.math.count_nonzero(by, axis=1, keepdims=True) > 1
    by = _only(by & ~(has_several & is_answer))  # [B]
    at = tf.maximum(by, 0)
    ranks = tf.gather(facts.ranks, at, axis=2, batch_dims=1)  # [B, R]
    ranks = tf.where(among, ranks, tf.zeros_like(ranks))
    row = _only_row(ranks, tf.gather(is_most, at, batch_dims=1), nth)
    is_possible = (by >= 0) & ((by != columns) | _is_in(row_words.ASKS_FOR_VALUE, text))
    return tf.where(is_possible, row, -1)


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


def _is_newest_first(facts: TableFacts) -> tf.Tensor:
    """Bool [B]."""
    ranks, is_row = facts.ranks, facts.is_row[..., tf.newaxis]
    never_later = (ranks[:, 1:] <= ranks[:, :-1]) | ~is_row[:, 1:]
    last = tf.gather(ranks, facts.num_rows - 1, axis=1, batch_dims=1)  # [B, C]
    falls = tf.reduce_all((ranks > 0) | ~is_row, axis=1) & tf.reduce_all(never_later, axis=1)
    falls &= ranks[:, 0] > last
    return tf.reduce_any(falls & _is_in(row_words.TIMES, facts.headers), axis=1)
