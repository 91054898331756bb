"""WikiSQL: questions with their queries, in the layout of its release (Zhong et al., 2017).

A query selects one column of the rows that fulfil all its conditions, and may aggregate it. Texts
are compared by their words and signs; case and spacing do not matter.
"""

import json
import math
import operator
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from mate_tf.dataclass_json import require
from mate_tf.datasets.json_lines import naming
from mate_tf.datasets.supervision import parse_number, words_and_signs
from mate_tf.reading.text_files import open_bytes, read_json_values
from mate_tf.tables.cell_texts import cell_text
from mate_tf.tables.table import Coordinates, Question, Table, remember

TYPES = ("text", "real")
QUERY_AGGREGATIONS = ("", "MAX", "MIN", "COUNT", "SUM", "AVG")
OPERATORS = ("=", ">", "<")

_COMPARE = {"=": operator.eq, ">": operator.gt, "<": operator.lt}
_OF_ANSWERS = {"COUNT": "COUNT", "SUM": "SUM", "AVG": "AVERAGE"}
_EXTREMES = {"MAX": max, "MIN": min}
_FIRST_NUMBER = re.compile(r"[-+]?(?:\d*\.\d+|\d+)", re.ASCII)


class Condition(NamedTuple):
    """A cell of the column has to be equal to, greater or less than the value."""

    column: int
    operator: str
    value: Any


class Query(NamedTuple):
    """SELECT aggregation(column) WHERE condition AND condition ..."""

    column: int
    aggregation: str
    conditions: tuple[Condition, ...]


class Answer(NamedTuple):
    """The result of a query in the terms of `Question`; NO_ANSWER for none."""

    coordinates: Coordinates
    aggregation: str
    number: float | None
    texts: tuple[str, ...]


NO_ANSWER = Answer((), "NONE", None, ())


def execute(rows: Sequence[Sequence[Any]], types: Sequence[str], query: Query) -> Answer:
    """Executes a query on a table's body, whose cells are texts and numbers; types are of TYPES.

    The answer of MAX and MIN is every cell with the extreme value, without an aggregation. On a
    column of numbers, the value of a condition is the first number in it. COUNT of no row is 0. Any
    other query without rows, and a sum of cells that are no numbers, has no answer.
    """
    selected = [
        i
        for i, row in enumerate(rows)
        if all(_holds(row[c.column], types[c.column], c) for c in query.conditions)
    ]
    kind = types[query.column]
    if query.aggregation in _EXTREMES:
        read = _text if kind == "text" else _number
        typed = ((i, read(rows[i][query.column])) for i in selected)
        values: dict[int, Any] = {i: value for i, value in typed if value is not None}
        extreme = _EXTREMES[query.aggregation](values.values(), default=None)
        selected = [i for i, value in values.items() if value == extreme]
    cells = [rows[i][query.column] for i in selected]
    coordinates = tuple((i, query.column) for i in selected)
    aggregation = _OF_ANSWERS.get(query.aggregation, "NONE")
    if aggregation == "NONE":
        texts = tuple(map(_text, cells))
        if query.aggregation:
            texts = texts[:1]  # several cells, but one value
        number = _number(cells[0]) if len(texts) == 1 else None
        return Answer(coordinates, aggregation, number, texts)
    result = float(len(cells)) if aggregation == "COUNT" else _sum(cells)
    if result is None:
        return NO_ANSWER
    if aggregation == "AVERAGE":
        result /= len(cells)
    text = str(int(result)) if result.is_integer() else repr(result)
    return Answer(coordinates, aggregation, result, (text,))


def _sum(cells: Sequence[Any]) -> float | None:
    numbers = [number for number in map(_number, cells) if number is not None]
    if not cells or len(numbers) < len(cells):
        return None
    try:
        return math.fsum(numbers)
    except OverflowError:
        return None


def _holds(cell: Any, kind: str, condition: Condition) -> bool:
    compare = _COMPARE[condition.operator]
    if kind == "text":
        return compare(words_and_signs(_text(cell)), words_and_signs(_text(condition.value)))
    number, limit = _number(cell), _number(condition.value)
    if limit is None and (match := _FIRST_NUMBER.search(_text(condition.value))):
        limit = float(match[0])
    return number is not None and limit is not None and compare(number, limit)


def _text(cell: Any) -> str:
    """A cell's text; floats are as the release writes them, 3.0 and not 3."""
    return float.__repr__(cell) if isinstance(cell, float) else cell_text(cell)


def _number(cell: Any) -> float | None:
    try:
        number = float(cell) if isinstance(cell, int | float) else parse_number(_text(cell))
    except OverflowError:  # an integer of more than 308 digits
        return None
    return number if number is not None and math.isfinite(number) else None


def execute_as_original(
    rows: Sequence[Sequence[Any]], types: Sequence[str], query: Query
) -> Answer:
    """Executes a query as the authors' release of TAPAS does, and as its checkpoints were trained.

    MAX and MIN give one cell, the last or the first with the extreme value. One cell that reads as
    a number gives that number ("12.0" for "12", 5.5 for "5,5"), no row NaN, and a sum of several
    texts these texts. What compares values of different types has no answer, nor a sum of one text.
    """
    aggregation = _OF_ANSWERS.get(query.aggregation, "NONE")
    number: float | None = None
    try:
        typed = [list(map(_original_typed, row, types)) for row in rows]
        coordinates = [
            (i, query.column)
            for i, row in enumerate(typed)
            if all(_original_holds(row[c.column], types[c.column], c) for c in query.conditions)
        ]
        if query.aggregation in _EXTREMES and len(coordinates) > 1:
            extreme = _EXTREMES[query.aggregation]
            coordinates = [extreme(coordinates, key=lambda at: (typed[at[0]][at[1]], at))]
        values = [typed[i][j] for i, j in coordinates]
        if aggregation == "COUNT":
            number = float(len(values))
        elif not values:
            number = math.nan
        elif len(values) == 1:
            number = _original_number(values[0])
            if number is None and aggregation != "NONE":
                return NO_ANSWER
        elif aggregation != "NONE" and all(isinstance(value, int | float) for value in values):
            number = float(sum(values))
            number = number / len(values) if aggregation == "AVERAGE" else number
    except (TypeError, OverflowError):
        return NO_ANSWER
    texts = [str(number)] if number is not None else [str(rows[i][j]) for i, j in coordinates]
    return Answer(tuple(coordinates), aggregation, number, tuple(texts))


def _original_holds(cell: Any, kind: str, condition: Condition) -> bool:
    value = _original_typed(condition.value, kind)
    if not isinstance(cell, type(value)):
        raise TypeError
    if isinstance(value, str):
        cell, value = words_and_signs(cell), words_and_signs(value)
    return _COMPARE[condition.operator](cell, value)


def _original_typed(cell: Any, kind: str) -> Any:
    """A cell, of a column of numbers its number; TypeError where it has none."""
    number = cell if kind == "text" else _original_number(cell)
    if kind != "text" and number is None:
        raise TypeError
    return number


def _original_number(value: Any) -> float | None:
    if not isinstance(value, int | float | str):
        return None
    return parse_number(value if isinstance(value, str) else repr(value), original=True)


_TITLES = {"document_title": "page_title", "context_heading": "section_title"}


class _Typed(NamedTuple):
    table: Table
    rows: list[list[Any]]
    types: list[str]


def read_wikisql(
    directory: str | Path, split: str, original: bool = False, supervised: bool = True
) -> Iterator[tuple[Table, Question]]:
    """Yields each question with its table and its query's answer (see `execute`), if it has one.

    The folder is the release, with its folder `data` unpacked; the split "train", "dev" or "test".
    "dev-7-0_0" is question 7 of the split, counted from 0. Unless `supervised`, questions have only
    the texts of the answer. With `original` it reads as the authors' release of TAPAS does: queries
    are executed by `execute_as_original`, and tables are named "table_csv/..." and have no titles.
    Errors are those of `read_wtq`.
    """
    path = Path(directory) / "data" / f"{split}.jsonl"
    tables_path = path.with_name(f"{split}.tables.jsonl")
    run = execute_as_original if original else execute
    lines = _lines_of_tables(tables_path)

    @remember
    def read_table(table_id: str) -> _Typed:
        number, line = lines[table_id]
        with naming(f"(file '{tables_path}', line {number})"):
            return _read_table(line, original)

    for number, record in read_json_values(path):
        with naming(f"(file '{path}', line {number})"):
            match record:
                case {"question": str(text), "table_id": str(table_id)}:
                    known = f"a table of '{tables_path}'"
                    require(table_id in lines, f"expected {known}, got {table_id!r}")
                case _:
                    expected = "expected texts as 'question' and 'table_id'"
                    raise ValueError(f"{expected}, got {record!r:.80}")
        table, rows, types = read_table(table_id)
        with naming(f"(file '{path}', line {number})"):
            answer = run(rows, types, _query(record.get("sql"), len(types)))
        given: Any = (answer.coordinates, answer.number, answer.aggregation) if supervised else ()
        yield table, Question(text, f"{split}-{number - 1}-0_0", answer.texts, *given)


def _lines_of_tables(path: Path) -> Mapping[str, tuple[int, bytes]]:
    """The line of each table, and its number; as JSON they would take more memory."""
    lines: dict[str, tuple[int, bytes]] = {}
    with open_bytes(path) as file:
        for number, line in enumerate(file, start=1):
            if not line.strip():
                continue
            try:
                lines[str(json.loads(line)["id"])] = (number, line)
            except (KeyError, TypeError, ValueError, RecursionError) as error:
                raise ValueError(
                    f"expected a table as a JSON object with an 'id', got: {error!r} "
                    f"(file '{path}', line {number})"
                ) from None
    return lines


def _read_table(content: bytes, original: bool) -> _Typed:
    record = json.loads(content)
    header, types, rows = (record.get(key) for key in ("header", "types", "rows"))
    if not all(isinstance(value, list) for value in (header, types, rows)):
        raise ValueError("expected a table with the lists 'header', 'types' and 'rows'")
    if len(types) != len(header) or not set(types) <= set(TYPES):
        raise ValueError(f"expected for each of {len(header)} columns one of {TYPES}, got {types}")
    if original:
        texts = json.loads(content, parse_float=lambda number: str(float(number)))["rows"]
        return _Typed(Table.from_rows(texts, header, f"table_csv/{record['id']}.csv"), rows, types)
    titles = {name: record[key] for name, key in _TITLES.items() if record.get(key)}
    table = replace(Table.from_rows(rows, header, str(record["id"])), **titles)
    return _Typed(table, rows, types)


def _query(sql: Any, num_columns: int) -> Query:
    match sql:
        case {"sel": int(column), "agg": int(aggregation), "conds": list(conditions)}:
            return Query(
                _item(range(num_columns), column, "sel"),
                _item(QUERY_AGGREGATIONS, aggregation, "agg"),
                tuple(_condition(condition, num_columns) for condition in conditions),
            )
    raise ValueError(f"expected 'sql' with 'sel', 'agg' and 'conds', got {sql!r:.80}")


def _condition(condition: Any, num_columns: int) -> Condition:
    match condition:
        case [int(column), int(operator), str() | int() | float() as value]:
            return Condition(
                _item(range(num_columns), column, "a condition's column"),
                _item(OPERATORS, operator, "a condition's operator"),
                value,
            )
    raise ValueError(f"expected a condition as column, operator and value, got {condition!r:.80}")


def _item(items: Any, index: int, what: str) -> Any:
    if not 0 <= index < len(items):
        raise ValueError(f"expected {what} from 0 to {len(items) - 1}, got {index}")
    return items[index]
