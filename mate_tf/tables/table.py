"""A table and a question about it, as plain immutable data."""

import dataclasses
import functools
import itertools
import math
import re
import statistics
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import index
from pathlib import Path
from typing import Any, TypeVar

from mate_tf.tables.cell_texts import are_texts, cell_texts
from mate_tf.tables.columns import Column, read_column
from mate_tf.tables.drawing import table_html
from mate_tf.tables.notations import TOTAL
from mate_tf.tables.operators import OPERATORS
from mate_tf.tables.part_of_speech import tag_id, words_with_tags
from mate_tf.tables.values import read_cell

_MOST_CLASSES = 2**31  # records hold 32 bits

Coordinates = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Table:
    """A rectangular table of text with a header; columns may share a name or have none.

    Other cells become text: None is empty, numbers and booleans are as Python writes them, but
    numbers from 1e-40 to 1e40 have no exponent.

    Attributes:
        header: the name of each column.
        rows: the body, a tuple of cells for each row.
        table_id: the table's name in errors and records.
        document_title, context_heading: the titles of the table's document and section.
        expansions: for each body cell the text that follows its own when it is tokenized, such as
            sentences from the page that it links to; () if no cell has any. It is no part of the
            cell's value: numbers, ranks, histograms and answers only use the rows.
        assumed: sentences that say what was assumed when the table was read.

    ValueError if there is no column or no body row, or rows or expansions do not have the header's
    length; if a cell is a container or bytes; if the name or a title is no text.
    """

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    table_id: str = "table"
    document_title: str = ""
    context_heading: str = ""
    expansions: tuple[tuple[str, ...], ...] = ()
    assumed: tuple[str, ...] = dataclasses.field(default=(), compare=False)

    def __post_init__(self) -> None:
        where = f"(table '{self.table_id}')"
        for name in ("table_id", "document_title", "context_heading"):
            _check_text(getattr(self, name), name, where)
        object.__setattr__(self, "header", self._texts(self.header, "header"))
        rows = tuple(self.rows)
        if not set(map(type, rows)) <= {tuple} or not are_texts(rows):
            rows = tuple(self._texts(row, f"row {i}") for i, row in enumerate(rows))
        object.__setattr__(self, "rows", rows)
        if not self.header:
            raise ValueError(f"expected at least 1 column, got 0 {where}")
        if not rows:
            raise ValueError(f"expected at least 1 row below the header, got 0 {where}")
        expanded = "expansions of row {}".format
        expansions = tuple(self._texts(row, expanded(i)) for i, row in enumerate(self.expansions))
        object.__setattr__(self, "expansions", expansions)
        if expansions and len(expansions) != len(rows):
            raise ValueError(
                f"expected expansions of {len(rows)} rows, got {len(expansions)} {where}"
            )
        for part, label in ((rows, "row {}".format), (expansions, expanded)):
            if set(map(len, part)) <= {len(self.header)}:
                continue
            for i, row in enumerate(part):
                check_width(row, self.header, f"(table '{self.table_id}', {label(i)})")

    @property
    def expanded_rows(self) -> tuple[tuple[str, ...], ...]:
        """The body as it is tokenized: each cell's own text and its expansion."""
        if not self.expansions:
            return self.rows
        return tuple(
            tuple(f"{cell} {more}" if more else cell for cell, more in zip(*pair, strict=True))
            for pair in zip(self.rows, self.expansions, strict=True)
        )

    @property
    def num_rows(self) -> int:
        return len(self.rows)

    @property
    def num_columns(self) -> int:
        return len(self.header)

    def column(self, index: int) -> Column:
        """A column with its kind and the values of its cells; it is read once and remembered."""
        columns: dict[int, Column] = self.__dict__.setdefault("_columns", {})
        if index not in columns:
            columns[index] = read_column([row[index] for row in self.rows], self.header[index])
        return columns[index]

    @functools.cached_property
    def _totals(self) -> tuple[tuple[int, ...], tuple[str, ...]]:
        return _read_totals(self)

    @functools.cached_property
    def total_rows(self) -> tuple[int, ...]:
        """The rows that are totals of others, which sums, averages and counts leave out."""
        return self._totals[0]

    @functools.cached_property
    def all_assumed(self) -> tuple[str, ...]:
        """The sentences about the table and about its columns."""
        columns = map(self.column, range(self.num_columns))
        sentences = (sentence for column in columns for sentence in column.assumed)
        return (*self.assumed, *self._totals[1], *sentences)

    def with_rows(self, rows: Sequence[int]) -> "Table":
        """The table with some of its rows, which are read as in the whole."""

        def some(values: Sequence[Any]) -> tuple[Any, ...]:
            return tuple(values[row] for row in rows)

        expansions = some(self.expansions) if self.expansions else ()
        table = dataclasses.replace(self, rows=some(self.rows), expansions=expansions)
        columns = {}
        for number, column in enumerate(map(self.column, range(self.num_columns))):
            names = ("values", "numbers", "units")
            parts: dict[str, Any] = {name: some(getattr(column, name)) for name in names}
            columns[number] = dataclasses.replace(column, **parts)
        totals = tuple(number for number, row in enumerate(rows) if row in self.total_rows)
        vars(table).update(_columns=columns, total_rows=totals, all_assumed=self.all_assumed)
        return table

    @classmethod
    def from_rows(
        cls,
        rows: Iterable[Sequence[Any]],
        header: Sequence[Any] | None = None,
        table_id: str = "table",
    ) -> "Table":
        """A table of lists, the first the header unless one is given, or dicts that may lack keys.

        `Table.of` also takes data frames. Errors are those of the constructor.
        """
        if is_frame(rows):
            return cls.of(rows, table_id)
        body: Any = list(rows)  # the constructor turns whatever cells hold into text
        are_dicts = {issubclass(kind, Mapping) for kind in set(map(type, body))}
        if are_dicts == {True}:
            header = list(header or dict.fromkeys(key for row in body for key in row))
            body = [[row.get(key) for key in header] for row in body]
        elif True in are_dicts:
            raise TypeError(f"expected rows that are all lists or all dicts (table '{table_id}')")
        names: Any = header
        if header is None:
            names, body = (body[0], body[1:]) if body else ([], [])
        return cls(names, body, table_id)

    @classmethod
    def from_csv(cls, path: str | Path, delimiter: str | None = None) -> "Table":
        """Reads delimited text; `mate_tf.read_table` reads files of all kinds, with its errors."""
        import mate_tf

        return mate_tf.read_table(Path(path), mate_tf.ReadOptions(delimiter=delimiter))

    @classmethod
    def of(cls, data: Any, table_id: str = "table") -> "Table":
        """A table from whatever holds one; arguments and errors as of `mate_tf.read_table`."""
        if isinstance(data, cls):
            return data
        import mate_tf

        return mate_tf.read_table(data, name=table_id)

    @classmethod
    def from_pandas(cls, frame: Any, table_id: str = "table") -> "Table":
        """A table from a data frame; see `mate_tf.read_table`."""
        return cls.of(frame, table_id)

    def to_pandas(self) -> Any:
        """The table as a pandas.DataFrame of texts; ModuleNotFoundError without pandas."""
        import pandas

        return pandas.DataFrame(list(self.rows), columns=list(self.header), dtype=object)

    def __repr__(self) -> str:
        columns = ", ".join(self.header)
        return f"<Table {self.table_id!r}, {self.num_rows} rows, columns {columns!r:.60}>"

    def _repr_html_(self) -> str:
        return table_html(self)

    def _texts(self, cells: Iterable[Any], row: str) -> tuple[str, ...]:
        return _texts(cells, "cells", f"(table '{self.table_id}', {row})")


@dataclass(frozen=True)
class Question:
    """A question about a table and, if they are known, its answer and supervision.

    Coordinates are (row, column) of body cells, counted from zero.

    Attributes:
        text: the question.
        question_id: the name of the question in errors, records and predictions.
        answers: the gold answer, as texts.
        answer_coordinates: the cells that hold the answer.
        answer_number: the answer as a number, of one cell or computed from several. A number that
            is not finite in single precision is ignored, except with `original_conversion`.
        aggregation: one of OPERATORS, which is computed from `answer_coordinates`; "" where it
            is not known.
        previous_coordinates: the cells that answered the previous question of a conversation.
        class_index: the label if the question is classified, below 2**31; otherwise None.
        part_of_speech_tags: universal or Penn Treebank tags of the words between the text's
            blanks, if a data set has them (HybridQA's `question_postag`). They are used instead of
            a tagger's, but only if there is a tagger.
        previous_answers: the answer to the previous question of a conversation, as texts.

    ValueError if the text or the name is no text, or answers are a single text; if coordinates are
    not pairs of integers, or the number or the class is none; if the aggregation is unknown, or
    there is not one known tag for each word.
    """

    text: str
    question_id: str = "question"
    answers: tuple[str, ...] = ()
    answer_coordinates: Coordinates = ()
    answer_number: float | None = None
    aggregation: str = ""
    previous_coordinates: Coordinates = ()
    class_index: int | None = None
    part_of_speech_tags: tuple[str, ...] = ()
    previous_answers: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        where = f"(question '{self.question_id}')"
        _check_text(self.text, "text", where)
        _check_text(self.question_id, "question_id", where)
        if self.aggregation and self.aggregation not in OPERATORS:
            expected = f"expected an aggregation of {', '.join(OPERATORS)}"
            raise ValueError(f"{expected}, got {self.aggregation!r} {where}")
        for name in ("answers", "previous_answers"):
            object.__setattr__(self, name, _texts(getattr(self, name), "answers", where))
        for name in ("answer_coordinates", "previous_coordinates"):
            given = getattr(self, name)
            try:
                pairs = tuple((index(row), index(column)) for row, column in given)
            except (TypeError, ValueError):
                raise ValueError(
                    f"expected pairs of row and column as {name}, got {given!r} {where}"
                ) from None
            object.__setattr__(self, name, pairs)
        if self.answer_number is not None:
            object.__setattr__(self, "answer_number", _number(self.answer_number, where))
        if self.class_index is not None:
            object.__setattr__(self, "class_index", _class_index(self.class_index, where))
        tags = tuple(self.part_of_speech_tags)
        object.__setattr__(self, "part_of_speech_tags", tags)
        for tag in tags:
            _check_text(tag, "a part-of-speech tag", where)
        try:
            for word in words_with_tags(self.text, tags) if tags else ():
                tag_id(word.tag)
        except ValueError as error:
            raise ValueError(f"{error} {where}") from None


def is_frame(data: Any) -> bool:
    """Whether it is a data frame of a library that narwhals knows, or holds Arrow data."""
    interfaces = ("__dataframe__", "__arrow_c_stream__", "__arrow_c_array__")
    return any(hasattr(data, name) for name in interfaces) and (
        hasattr(data, "columns") or hasattr(data, "schema")
    )


def check_width(row: Sequence[Any], header: Sequence[Any], where: str) -> None:
    """Raises ValueError, which ends in `where`, unless the row has a cell for each column."""
    if len(row) != len(header):
        raise ValueError(f"expected {len(header)} cells as in the header, got {len(row)} {where}")


def id_bytes(name: str) -> bytes:
    """A table's or question's name in UTF-8. JSON may hold half a surrogate pair; it is escaped."""
    return name.encode("utf-8", "backslashreplace")


def _texts(values: Iterable[Any], name: str, where: str) -> tuple[str, ...]:
    """The texts of several cells or answers; ValueError where one has none."""
    try:
        if isinstance(values, str):
            raise TypeError(f"expected a list of {name}, got the text {values!r}")
        return tuple(cell_texts(values))
    except TypeError as error:
        raise ValueError(f"{error} {where}") from None


def _check_text(value: Any, name: str, where: str) -> None:
    if not isinstance(value, str):
        raise ValueError(f"expected a text as {name}, got {value!r} {where}")


def _number(value: Any, where: str) -> float:
    try:
        if isinstance(value, str | bool):
            raise TypeError
        return float(value)
    except (TypeError, ValueError):
        raise ValueError(f"expected a number as answer_number, got {value!r} {where}") from None
    except OverflowError:
        expected = "expected an answer_number of at most 308 digits"
        raise ValueError(f"{expected}, got {len(str(value))} {where}") from None


def _class_index(value: Any, where: str) -> int:
    try:
        number = -1 if isinstance(value, bool) else index(value)
    except TypeError:
        number = -1
    if not 0 <= number < _MOST_CLASSES:
        expected = f"expected a class_index from 0 to {_MOST_CLASSES - 1}"
        raise ValueError(f"{expected}, got {value!r} {where}")
    return number


def check_coordinates(table: Table, question: Question) -> None:
    """Raises ValueError unless the cells of this and the previous answer are in the table."""
    expected = f"expected cells within {table.num_rows} rows and {table.num_columns} columns"
    for row, column in (*question.answer_coordinates, *question.previous_coordinates):
        if not (0 <= row < table.num_rows and 0 <= column < table.num_columns):
            raise ValueError(f"{expected}, got {(row, column)}")


MOST_REMEMBERED = 4_000_000  # cells or tokens; about 200 MB once they are tokenized
_LEAST_SIZE = 2_000  # of a value, so that at most two thousand values are remembered

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


def _num_cells(_: Any, item: Any) -> int:
    table = getattr(item, "table", item)
    return table.num_rows * table.num_columns


def remember(
    make: Callable[[Key], Value],
    size_of: Callable[[Key, Value], int] = _num_cells,
    most: int = MOST_REMEMBERED,
) -> Callable[[Key], Value]:
    """As functools.lru_cache, but it counts cells or tokens: a few large tables may take gigabytes.

    It forgets what was used longest ago once all values but the latest have more than `most` cells
    or tokens. `size_of` gives those of a key and its value, by default the cells of the value, a
    table or what has one. Several threads may ask, and then each may make a value.
    """
    values: OrderedDict[Key, tuple[Value, int]] = OrderedDict()
    held = 0
    lock = threading.Lock()  # of both

    def remembered(key: Key) -> Value:
        nonlocal held
        with lock:
            if key in values:
                values.move_to_end(key)
                return values[key][0]
        value = make(key)
        size = max(size_of(key, value), _LEAST_SIZE)
        with lock:
            held += size - values.pop(key, (value, 0))[1]
            values[key] = value, size
            while held > most and len(values) > 1:
                held -= values.popitem(last=False)[1][1]
        return value

    return remembered


# Rows that are totals or statistics of others, such as "Total" and "Average" below a table.
_SAME = 1e-9  # the relative difference of sums that are the same
_STATISTICS: dict[str, Callable[[Sequence[float]], float]] = {
    r"average|avg|mean|ø|⌀|mittelwert|durchschnitt|moyenne|promedio|media|média|gemiddelde|średnia|"
    r"ortalama|среднее|平均|평균": statistics.fmean,
    r"median|médiane|mediana": statistics.median,
    r"min|minimum|lowest|smallest|最小|最低": min,
    r"max|maximum|highest|largest|最大|最高": max,
    r"count|n|number|anzahl|nombre|件数": len,
    r"std|std\.? ?dev|sd|standard deviation|standardabweichung": statistics.stdev,
}
_STATISTIC = {re.compile(rf"(?:{name})[.:]*"): one for name, one in _STATISTICS.items()}
_LEAST_NAMELESS = 3  # rows above a total without a name


def _read_totals(table: Table) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """The rows that are totals or statistics, and sentences about them.

    A total is called so, or is the last row and lacks a name, and a number in it is the sum of
    numbers above it, to half of its last digit for each of these. The sum is of all rows above, or
    of those since the last row that is called a total, or of all others for the first row. Rows
    that are called totals are not added up. Statistics are at the end of a table. Groups of a pivot
    table are totals of the rows below them.
    """
    rows = table.rows
    names = [next(filter(None, (read_cell(cell).text for cell in row)), "") for row in rows]
    named = [row for row, name in enumerate(names) if TOTAL.fullmatch(name)]
    by_row = _statistics(names)
    has_corner = table.num_columns > 1 and not rows[-1][0].strip()
    is_nameless = len(rows) > _LEAST_NAMELESS and has_corner
    if not named and not by_row and not is_nameless:
        return (), ()  # and no column is read
    columns = enumerate(map(table.column, range(table.num_columns)))
    numbers = {i: column.numbers for i, column in columns if column.kind in ("number", "duration")}
    if is_nameless and not named and not by_row and all(row[0].strip() for row in rows[:-1]):
        sums = [(row[-1], sum(it or 0.0 for it in row[:-1])) for row in numbers.values()]
        if sums and all(last and _is_same(last, total, "", 0) for last, total in sums):
            named = [len(rows) - 1]
    totals, unlike = _sums(rows, numbers, named)
    others = [row for row in range(len(rows)) if row not in totals and row not in by_row]
    for column, values in numbers.items():
        data = [number for row in others if (number := values[row]) is not None]
        for row, function in by_row.items() if len(data) > 1 else ():
            number = values[row]
            if number is not None and _is_same(number, function(data), rows[row][column], 1):
                totals[row] = "is computed from"
    if named and named[-1] == len(rows) - 1 and named[-1] not in totals:
        groups = _groups(list(numbers.values()), named[-1])
        totals |= dict.fromkeys(groups, "is a total of")
        unlike = [row for row in unlike if row not in groups]
    left_out = "others; sums, averages and counts leave it out"
    kept = "is not the sum of the rows above; sums, averages and counts include it"
    notes = [(row, f"{totals[row]} {left_out}") for row in sorted(totals)]
    notes += [(row, kept) for row in unlike]
    sentences = (
        f"Row {row + 1}, '{next(filter(str.strip, rows[row]))}', {note}." for row, note in notes
    )
    return tuple(sorted(totals)), tuple(sentences)


def _statistics(names: Sequence[str]) -> dict[int, Callable[[Sequence[float]], float]]:
    """The rows at the end that are called statistics, with the function of each."""
    functions = [
        next((one for name, one in _STATISTIC.items() if name.fullmatch(text)), None)
        for text in names
    ]
    found, first = {}, 0
    for row in range(len(names) - 1, 1, -1):
        if (function := functions[row]) is not None:
            found[row], first = function, row
        elif not TOTAL.fullmatch(names[row]):
            break
    return {} if any(functions[:first]) else found  # all rows are some


def _sums(
    rows: Sequence[Sequence[str]],
    numbers: dict[int, tuple[float | None, ...]],
    named: Sequence[int],
) -> tuple[dict[int, str], list[int]]:
    """Of the rows that are called totals those that are, and those that are not."""
    totals: dict[int, str] = {}
    unlike: dict[int, None] = {}
    for column, values in numbers.items():
        parts = [number or 0.0 for number in values]
        for row in named:
            parts[row] = 0.0
        sums = [0.0, *itertools.accumulate(parts)]  # of the rows above each
        for row, before in zip(named, [0, *named], strict=False):
            total, count = values[row], row if row else len(rows)
            if not total:
                continue
            unlike[row] = None
            for added in (sums[row], sums[row] - sums[before], sums[-1] if row == 0 else 0.0):
                if _is_same(total, added, "", 0):
                    totals[row] = "is a total of"
                elif _is_same(total, added, rows[row][column], count):
                    totals.setdefault(row, "is a rounded total of")
    return totals, [row for row in unlike if row not in totals]


def _is_same(total: float, added: float, text: str, count: int) -> bool:
    """Whether a number is another one, to half of its last digit for each of some numbers.

    Of whole numbers this is at most a hundredth of it.
    """
    decimals = re.search(r"\d[.,](\d{1,3})(?!.*\d)", text)
    is_whole = total == int(total) and not (decimals and decimals[1] in ("0", "00"))
    if is_whole or decimals is None:
        rounding = min(0.5 * count, 0.01 * abs(total)) if text else 0.0
    else:
        rounding = 0.5 * count * 10.0 ** -len(decimals[1])
    return math.isclose(total, added, rel_tol=_SAME, abs_tol=rounding + _SAME)


def _groups(columns: Sequence[tuple[float | None, ...]], last: int) -> list[int]:
    """The rows that are sums of those below them, up to the next such one, and the grand total."""
    heads: list[int] = []
    for numbers in columns:
        values = [number or 0.0 for number in numbers[:last]]
        found, row = [], 0
        while row < last:
            head, end, added = row, row + 1, 0.0
            while end < last and (end == head + 1 or not _is_same(values[head], added, "", 0)):
                added += values[end]
                end += 1
            if not _is_same(values[head], added, "", 0):
                return []
            found.append(head)
            row = end
        is_whole = _is_same(numbers[last] or 0.0, sum(values[head] for head in found), "", 0)
        if not is_whole or (heads and found != heads) or last < 2 * len(found) + 1:
            return []
        heads = found
    return [*heads, last] if len(heads) > 1 else []
