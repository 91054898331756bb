"""Supervision by operator and cells: what a question asks to do with which cells of its table.

An answer's text alone leaves open how it came about: "3" may stand in a cell, be a count of three
rows or a difference. What the question mentions often decides it. Cells are mentioned by their
whole text, columns by the words of their name.

Shapes: R rows and C columns of a table.
"""

import functools
import itertools
import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from mate_tf.features.english import normalize_denotation, says
from mate_tf.features.numeric import ranks, values_in_column
from mate_tf.tables.operators import OPERATORS
from mate_tf.tables.table import Coordinates, Question, Table, remember

_WORD = re.compile(r"\w+")
_NUMBER = re.compile(r"\d+(?:,\d{3})*(?:\.\d+)?")
_LONGEST_MENTION = 12  # words
_MOST_ROWS_OF_PAIRS = 8


@dataclass(frozen=True)
class Derived:
    """An operator, the cells that it is applied to, and how they were found."""

    aggregation: str
    coordinates: Coordinates
    how: str


class _Mentions:
    """The mentions of a table's cells and columns in a question."""

    def __init__(self, table: Table, text: str):
        words = _words(text)
        runs = {
            words[begin:end]
            for begin in range(len(words))
            for end in range(begin + 1, min(len(words), begin + _LONGEST_MENTION) + 1)
        }
        cells, names = _table_words(table)
        # The mentioned texts of each column, with their rows: [C].
        self.cells = [{cell: column[cell] for cell in column if cell in runs} for column in cells]
        stems = set(map(_stem, words))
        # How much of each column's name the question has, from 0 to 1; the best named one first.
        self.columns = [len(name & stems) / len(name) if name else 0.0 for name in names]  # [C]
        self.by_name = sorted(range(len(names)), key=lambda c: (-self.columns[c], c))  # [C]
        # The columns in which each row's cell is mentioned.
        self.rows: defaultdict[int, set[int]] = defaultdict(set)
        # The rows of each mentioned value, and of all of a column, with the column.
        self.sets: list[tuple[tuple[int, ...], int]] = []
        for column, rows_of_cells in enumerate(map(dict.values, self.cells)):
            rows = sorted({*itertools.chain(*rows_of_cells)})
            for row in rows:
                self.rows[row].add(column)
            self.sets += [(some, column) for some in rows_of_cells]
            if len(rows_of_cells) > 1:
                self.sets.append((tuple(rows), column))


_remembered = functools.partial(
    remember, size_of=lambda table, _: table.num_rows * table.num_columns
)


@_remembered
def _table_words(
    table: Table,
) -> tuple[list[dict[tuple[str, ...], tuple[int, ...]]], list[frozenset[str]]]:
    """The rows of each cell's words, column by column, and the words of each column's name."""
    cells = []
    for column in range(table.num_columns):
        rows_of: defaultdict[tuple[str, ...], list[int]] = defaultdict(list)
        for row in range(table.num_rows):
            rows_of[_words(normalize_denotation(table.rows[row][column]))].append(row)
        rows_of.pop((), None)
        cells.append({words: tuple(rows) for words, rows in rows_of.items()})
    return cells, [frozenset(map(_stem, _words(name))) for name in table.header]


def _words(text: str) -> tuple[str, ...]:
    return tuple(_WORD.findall(normalize_denotation(text)))


@functools.lru_cache(1 << 12)
def _stem(word: str) -> str:
    for end in ("ies", "es", "s"):
        if len(word) > len(end) + 2 and word.endswith(end):
            return word[: -len(end)] + ("y" if end == "ies" else "")
    return word


def derive(
    table: Table, question: Question, candidates: Sequence[Coordinates], number: float | None
) -> Derived | None:
    """The operator and the cells that give a question's answer; None where nothing decides it.

    `candidates` are for each answer the cells that hold it, which may be none; `number` is the
    answer as a number, if it is one.
    """
    mentions = _Mentions(table, question.text)
    text = question.text.lower()
    if len(candidates) > 1:
        return _listed(mentions, candidates) or _headers(table, mentions, question.answers)
    if number is not None:
        return _derive_number(table, text, mentions, candidates[0], number)
    if (answer := question.answers[0].strip().lower()) in ("yes", "no"):
        compared = _yes_or_no(table, text, mentions, answer == "yes")
        if found := compared or _looked_up(mentions, candidates[0]):
            return found
        # With the cell of the mentioned row in the named column, if there is one.
        column, row = mentions.by_name[0], _mentioned_row(mentions)
        rows = () if row is None or mentions.columns[column] <= 0 else (row,)
        return _derived(answer.upper(), rows, column, "yes or no")
    return (
        _choice(table, text, mentions, candidates[0])
        or _looked_up(mentions, candidates[0])
        or _placed(table, text, mentions, candidates[0])
        or _headers(table, mentions, question.answers)
    )


def _mentioned_row(mentions: _Mentions) -> int | None:
    """The only row with a mentioned value that no other row has."""
    rows = {rows[0] for rows, _ in mentions.sets if len(rows) == 1}
    return rows.pop() if len(rows) == 1 else None


def _headers(table: Table, mentions: _Mentions, answers: Sequence[str]) -> Derived | None:
    """Columns that the answers name, with their cells in the one row that is mentioned."""
    names = list(map(normalize_denotation, table.header))
    texts = list(map(normalize_denotation, answers))
    row = _mentioned_row(mentions)
    if row is None or any(names.count(text) != 1 for text in texts):
        return None
    cells = tuple((row, names.index(text)) for text in texts)
    return Derived("HEADER", tuple(sorted(cells)), "names of columns")


def _listed(mentions: _Mentions, candidates: Sequence[Coordinates]) -> Derived | None:
    """Several answers that stand in one column, each in one row or in one that is mentioned."""
    if not all(candidates):
        return None
    columns = set.intersection(*({column for _, column in cells} for cells in candidates))
    for column in filter(columns.__contains__, mentions.by_name):
        in_column = ([cell for cell in cells if cell[1] == column] for cells in candidates)
        best = {cell for cells in in_column if (cell := _best_of(mentions, cells))}
        if len(best) == len(candidates):
            return Derived("NONE", tuple(sorted(best)), "several cells")
    return None


def _best_of(mentions: _Mentions, cells: Sequence[tuple[int, int]]) -> tuple[int, int] | None:
    """The only cell, or the one whose row the question mentions, or else whose column it names."""
    if len(cells) > 1:
        cells = _highest(cells, lambda row, column: len(mentions.rows.get(row, set()) - {column}))
        cells = _highest(cells, lambda _, column: mentions.columns[column])
    return cells[0] if len(cells) == 1 else None


def _highest(cells: Sequence[tuple[int, int]], weigh: Callable[..., float]) -> Sequence[Any]:
    """The cells with the highest weight, or all if that is 0."""
    weights = [weigh(*cell) for cell in cells]
    return [cell for cell, weight in zip(cells, weights, strict=True) if weight == max(weights)]


def _looked_up(mentions: _Mentions, cells: Coordinates) -> Derived | None:
    best = _best_of(mentions, cells)
    return None if best is None else Derived("NONE", (best,), "a cell")


def _placed(table: Table, text: str, mentions: _Mentions, cells: Coordinates) -> Derived | None:
    """Of several cells with the answer the one whose row the words place.

    It is beside a mentioned row, at an end of the table, or the extreme of a named column.
    """
    by_row = {row: (row, column) for row, column in cells}
    row = -1
    step = 1 if says(text, "next") else -says(text, "previous")
    if len(mentions.rows) == 1 and step:
        row = min(mentions.rows) + step
    elif says(text, "first"):
        row = 0
    elif says(text, "last"):
        row = table.num_rows - 1
    placed = [by_row[row]] if row in by_row else []
    if not placed and says(text, "superlative") and (direction := _direction(text)):
        choose = max if direction > 0 else min
        for column, ranks_of_rows in enumerate(_all_ranks(table)):
            if len(ranks_of_rows) < 0.7 * table.num_rows or mentions.columns[column] <= 0:
                continue
            best = choose(ranks_of_rows.values())
            extreme = [row for row, rank in ranks_of_rows.items() if rank == best]
            placed += [by_row[row] for row in extreme if row in by_row and by_row[row][1] != column]
    is_one = len(set(placed)) == 1
    return Derived("NONE", (placed[0],), "a cell of a placed row") if is_one else None


def _derive_number(
    table: Table, text: str, mentions: _Mentions, cells: Coordinates, number: float
) -> Derived | None:
    asks_count = says(text, "how many")
    in_cell = _cell_of_number(mentions, cells, asks_count)
    if in_cell is not None and in_cell.how == "a cell of a mentioned row and column":
        return in_cell
    return (
        (says(text, "average") and _total(table, mentions, number, "AVERAGE"))
        or (says(text, "difference", "than", "apart") and _difference(table, mentions, number))
        or (says(text, "total") and _total(table, mentions, number, "SUM"))
        or (says(text, "share") and _share(table, mentions, number))
        or (asks_count and _count(table, text, mentions, number))
        or (asks_count and _total(table, mentions, number, "SUM"))
        or in_cell
        or _along_row(table, text, mentions, number)
    )


def _share(table: Table, mentions: _Mentions, percent: float) -> Derived | None:
    """Mentioned rows whose part of a column's sum, or of the number of rows, is the answer."""
    for rows, by in mentions.sets:
        for column in mentions.by_name:
            numbers = table.column(column).numbers
            given = [value for value in numbers if value is not None]
            part, whole = float(len(rows)), float(table.num_rows)
            if len(given) == len(numbers) and column != by:
                part, whole = math.fsum(numbers[row] or 0.0 for row in rows), math.fsum(given)
            if whole and abs(100 * part / whole - percent) <= 0.051:
                return _derived("SHARE", rows, column, "a part of a column")
    return None


def _along_row(table: Table, text: str, mentions: _Mentions, number: float) -> Derived | None:
    """The sum or the difference of the numbers of one mentioned row, in the named columns."""
    row = _mentioned_row(mentions)
    if row is None:
        return None
    named = [column for column, share in enumerate(mentions.columns) if share == 1.0]
    numbers = {(row, column): table.column(column).numbers[row] for column in named}
    cells = tuple(cell for cell, value in numbers.items() if value is not None)
    values = [value for value in numbers.values() if value is not None]
    if len(values) < 2:
        return None
    results = {"ROW_SUM": math.fsum(values)} if says(text, "total") else {}
    if len(values) == 2 and says(text, "difference", "than", "apart"):
        results["ROW_DIFFERENCE"] = abs(values[0] - values[1])
    for name, result in results.items():
        if math.isclose(result, number, rel_tol=1e-6, abs_tol=1e-6):
            return Derived(name, cells, "numbers of a row")
    return None


def _cell_of_number(mentions: _Mentions, cells: Coordinates, asks_count: bool) -> Derived | None:
    cells = tuple(cell for cell in cells if cell[1] not in mentions.rows.get(cell[0], ()))
    best = _best_of(mentions, cells)
    if best is None:
        return None
    row, column = best
    has_row, share = bool(mentions.rows.get(row, set()) - {column}), mentions.columns[column]
    if has_row and share > 0:
        return Derived("NONE", (best,), "a cell of a mentioned row and column")
    if has_row or share >= (1.0 if asks_count else 0.01):
        return Derived("NONE", (best,), "a cell of a mentioned row or column")
    return None if asks_count else Derived("NONE", (best,), "a cell")


def _count(table: Table, text: str, mentions: _Mentions, number: float) -> Derived | None:
    if number < 1 or number > table.num_rows or not number.is_integer():
        return None
    named_best = mentions.by_name[0]
    subject = named_best if mentions.columns[named_best] >= 0.5 else None
    if says(text, "different"):
        for column in mentions.by_name:
            distinct = {normalize_denotation(row[column]) for row in table.rows} - {""}
            if len(distinct) == number < table.num_rows and mentions.columns[column] > 0:
                return _derived("DISTINCT", range(table.num_rows), column, "different values")
    if says(text, "at most", "at least", "over", "under"):
        for column, rows in _rows_beyond(table, text, mentions):
            if len(rows) == number:
                return _derived("COUNT", rows, column, "rows beyond a value")
    for column in mentions.by_name:
        rows = _rows_that_say(table, text, column) if mentions.columns[column] >= 0.5 else ()
        if len(rows) == number:
            best = column if subject is None else subject
            return _derived("COUNT", rows, best, "rows that say yes or no")
    sets = dict(sorted(mentions.sets, key=lambda of: -of[1]))
    fitting = [(rows, column) for rows, column in sets.items() if len(rows) == number]
    for (first, column), (second, _) in itertools.combinations(sets.items(), 2):
        both = tuple(sorted(set(first) & set(second)))
        if both and len(both) == number and len(both) < min(len(first), len(second)):
            fitting.insert(0, (both, column))
    if fitting:
        rows, column = fitting[0]
        return _derived("COUNT", rows, column if subject is None else subject, "rows with a value")
    if number == table.num_rows and not sets:
        column = 0 if subject is None else subject
        return _derived("COUNT", range(table.num_rows), column, "all rows")
    return None


def _rows_that_say(table: Table, text: str, column: int) -> tuple[int, ...]:
    """The rows with a yes, or with a no where the words negate; () for another column."""
    cells = [row[column].strip().lower() for row in table.rows]
    if not {"yes", "no"} >= set(cells):
        return ()
    wanted = "no" if says(text, "not") or re.search(r"\bun\w+", text) else "yes"
    return tuple(row for row, cell in enumerate(cells) if cell == wanted)


def _derived(aggregation: str, rows: Sequence[int], column: int, how: str) -> Derived:
    return Derived(aggregation, tuple((row, column) for row in rows), how)


def _rows_beyond(
    table: Table, text: str, mentions: _Mentions
) -> Iterator[tuple[int, tuple[int, ...]]]:
    """The rows with more or less than a number of the question, column by column."""
    bounds = [float(number.replace(",", "")) for number in _NUMBER.findall(text)]
    is_less = says(text, "under", "at most")
    or_equal = says(text, "at least", "at most")
    for column in mentions.by_name:
        numbers = table.column(column).numbers
        given = [(row, value) for row, value in enumerate(numbers) if value is not None]
        if len(given) < 0.7 * table.num_rows:
            continue
        for bound in bounds:
            rows = tuple(
                row
                for row, value in given
                if (value < bound if is_less else value > bound) or (or_equal and value == bound)
            )
            if rows:
                yield column, rows


def _total(table: Table, mentions: _Mentions, number: float, aggregation: str) -> Derived | None:
    """The rows, all or those of mentioned values, whose numbers have the sum or average."""
    sets: list[tuple[int, ...]] = [rows for rows, _ in mentions.sets]
    sets += [tuple(sorted(mentions.rows)), tuple(range(table.num_rows))]
    fitting = []
    for column in mentions.by_name:
        numbers = table.column(column).numbers
        for rows in sets:
            given = [value for row in rows if (value := numbers[row]) is not None]
            if len(given) < 2 or len(given) < 0.7 * len(rows):
                continue
            result = math.fsum(given) / (len(given) if aggregation == "AVERAGE" else 1)
            digits = 0.0051 if aggregation == "AVERAGE" else 1e-6
            if abs(result - number) <= digits * max(1.0, abs(number) * 1e-3):
                fitting.append(_derived(aggregation, rows, column, "numbers of rows"))
        if fitting and mentions.columns[column] > 0:
            return fitting[0]
    return fitting[0] if len(fitting) == 1 else None


def _pairs(table: Table, mentions: _Mentions) -> Iterator[tuple[int, int, int]]:
    """Two rows of different mentioned values of one column: both rows, and the column."""
    for column, rows_by_cell in enumerate(mentions.cells):
        single = [rows[0] for rows in rows_by_cell.values() if len(rows) == 1]
        if 2 <= len(single) <= _MOST_ROWS_OF_PAIRS:
            for first, second in itertools.combinations(sorted(single), 2):
                yield first, second, column


def _difference(table: Table, mentions: _Mentions, number: float) -> Derived | None:
    fitting = []
    for first, second, by in _pairs(table, mentions):
        for column in range(table.num_columns):
            numbers = table.column(column).numbers
            one, other = numbers[first], numbers[second]
            if one is None or other is None or (column == by and one == other):
                continue
            if abs(abs(one - other) - number) <= 1e-6 * max(1.0, abs(number)):
                fitting.append((mentions.columns[column], -column, first, second))
    if not fitting:
        return None
    fitting.sort(reverse=True)
    share, column, first, second = fitting[0]
    if len(fitting) > 1 and fitting[1][0] == share and fitting[1][1] != column:
        return None
    return _derived("DIFFERENCE", (first, second), -column, "two mentioned rows")


def _compared(table: Table, column: int, first: int, second: int) -> int:
    """Whether the first row's value is larger (1), smaller (-1) or equal; 0 where none is known."""
    column_ranks = _all_ranks(table)[column]
    one, other = column_ranks.get(first), column_ranks.get(second)
    return 0 if one is None or other is None else (one > other) - (one < other)


@_remembered
def _all_ranks(table: Table) -> tuple[dict[int, int], ...]:
    """The rank of each row, column by column."""
    return tuple(
        {row: rank for row, (rank, _) in ranks(values_in_column(table, column)).items()}
        for column in range(table.num_columns)
    )


def _direction(text: str) -> int:
    return says(text, "more") - says(text, "less")


def _choice(table: Table, text: str, mentions: _Mentions, cells: Coordinates) -> Derived | None:
    """The one of two mentioned cells whose row has more or less of something."""
    direction = _direction(text)
    if not direction or not says(text, "or"):
        return None
    for first, second, by in _pairs(table, mentions):
        for row, other in ((first, second), (second, first)):
            if (row, by) not in cells:
                continue
            fitting = [
                column
                for column in mentions.by_name
                if column != by and _compared(table, column, row, other) == direction
            ]
            named = [column for column in fitting if mentions.columns[column] > 0]
            if named or len(fitting) == 1:
                name = "GREATER" if direction > 0 else "LESS"
                return _derived(name, (first, second), (named or fitting)[0], "one of two rows")
    return None


def _yes_or_no(table: Table, text: str, mentions: _Mentions, is_true: bool) -> Derived | None:
    """Whether the row that is mentioned first has more, less or as much of something."""
    direction = _direction(text)
    is_equal = says(text, "same")
    if not direction and not is_equal:
        return None
    fitting = []
    for first, second, by in _pairs(table, mentions):
        names = [normalize_denotation(table.rows[row][by]) for row in (first, second)]
        begins = [normalize_denotation(text).find(name) for name in names]
        row, other = (first, second) if begins[0] <= begins[1] else (second, first)
        for column in range(table.num_columns):
            if column == by or mentions.columns[column] <= 0:
                continue
            compared = _compared(table, column, row, other)
            holds = compared == (0 if is_equal else direction)
            if holds == is_true and row in _all_ranks(table)[column]:
                fitting.append((mentions.columns[column], -column, first, second))
    if not fitting:
        return None
    _, column, first, second = max(fitting)
    name = "IS_EQUAL" if is_equal else "IS_GREATER" if direction > 0 else "IS_LESS"
    return _derived(name, (first, second), -column, "two rows compared")


def derive_from_cells(
    table: Table, coordinates: Coordinates, answers: Sequence[str], number: float | None
) -> Derived | None:
    """The operator that gives an answer from cells that are known; None where none does."""
    texts = [normalize_denotation(table.rows[row][column]) for row, column in coordinates]
    if sorted(texts) == sorted(map(normalize_denotation, answers)):
        return Derived("NONE", coordinates, "given cells")
    if texts and [text.strip().lower() for text in answers] in (["yes"], ["no"]):
        return Derived(answers[0].strip().upper(), coordinates, "given cells")
    names = sorted(normalize_denotation(table.header[column]) for _, column in coordinates)
    is_along = len({row for row, _ in coordinates}) == 1
    if is_along and names == sorted(map(normalize_denotation, answers)):
        return Derived("HEADER", coordinates, "given cells")
    values = [table.column(column).numbers[row] for row, column in coordinates]
    given = [value for value in values if value is not None]
    if number is None or not texts:
        return None
    is_along &= len(coordinates) > 1
    results = {"NONE": given[0]} if len(given) == len(texts) else {}
    if results and len(texts) > 1:
        extremes = {"MAX": max, "MIN": min}
        for name, operator in OPERATORS.items():
            compute = extremes.get(name, operator.compute)
            if compute and not operator.along_row and (len(texts) == 2 or not operator.takes_two):
                results[name] = compute(given)
    results |= {"COUNT": float(len(texts)), "DISTINCT": float(len(set(texts)))}
    for name, result in results.items():
        if math.isclose(result, number, rel_tol=1e-6, abs_tol=1e-6):
            name = f"ROW_{name}" if is_along and f"ROW_{name}" in OPERATORS else name
            return Derived(name, coordinates, "given cells")
    return None
