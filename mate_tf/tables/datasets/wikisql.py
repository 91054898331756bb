"""WikiSQL, questions with their queries, in the layout of its release (Zhong et al., 2017)."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from mate_tf.tables.datasets.wikisql_queries import (
    OPERATORS,
    QUERY_AGGREGATIONS,
    TYPES,
    Condition,
    Query,
    execute,
    execute_as_original,
)
from mate_tf.tables.table import Question, Table
from mate_tf.tables.text_files import open_bytes, read_json_values

SPLITS = ("train", "dev", "test")
_TITLES = {"document_title": "page_title", "context_heading": "section_title"}
_TABLES_REMEMBERED = 256


class _Typed(NamedTuple):
    table: Table
    rows: list[list[Any]]
    types: list[str]


def read_wikisql(
    directory: str | Path, split: str, original: bool = False, supervised: bool = True
) -> Iterator[tuple[Table, Question]]:
    """Yields each question with its table, and what its query yields (see `execute`).

    A question whose query yields nothing has no answers. Identifiers of questions are those of the
    authors' release of TAPAS: "dev-7-0_0" is question 7 of the split, counted from 0.

    Args:
        directory: the release, with its folder `data` unpacked.
        split: one of SPLITS.
        original: whether to read as the authors' release of TAPAS does, which its checkpoints were
            trained with: queries as `execute_as_original` has it, and tables named "table_csv/..."
            and without the titles of their page and section.
        supervised: whether questions have the cells, the number and the aggregation of the answer,
            or only its texts, from which `supervise` finds cells and numbers.

    Raises:
        FileNotFoundError: if a file of the split is missing.
        ValueError: if a file is not as the release has it; it names file and line.
    """
    path = Path(directory) / "data" / f"{split}.jsonl"
    tables_path = path.with_name(f"{split}.tables.jsonl")
    run = execute_as_original if original else execute
    places = _places_of_tables(tables_path)
    with open_bytes(tables_path) as tables_file:

        @lru_cache(_TABLES_REMEMBERED)
        def read_table(table_id: str) -> _Typed:
            offset, line = places[table_id]
            try:
                return _read_table(tables_file, offset, original)
            except (TypeError, ValueError) as error:
                raise ValueError(f"{error} (file '{tables_path}', line {line})") from None

        for number, record in read_json_values(path):
            where = f"(file '{path}', line {number})"
            text, table_id = _texts(record, where)
            if table_id not in places:
                raise ValueError(f"expected a table of '{tables_path}', got {table_id!r} {where}")
            table, rows, types = read_table(table_id)
            try:
                answer = run(rows, types, _query(record.get("sql"), len(types)))
            except ValueError as error:
                raise ValueError(f"{error} {where}") from None
            question = Question(text, f"{split}-{number - 1}-0_0", answers=answer.texts)
            if supervised:
                question = replace(
                    question,
                    answer_coordinates=answer.coordinates,
                    answer_number=answer.number,
                    aggregation=answer.aggregation,
                )
            yield table, question


def _texts(record: Any, where: str) -> tuple[str, str]:
    match record:
        case {"question": str(text), "table_id": str(table_id)}:
            return text, table_id
    raise ValueError(f"expected texts as 'question' and 'table_id', got {record!r:.80} {where}")


def _places_of_tables(path: Path) -> Mapping[str, tuple[int, int]]:
    """Where each table begins, byte and line: all that is held of the file."""
    places: dict[str, tuple[int, int]] = {}
    offset = 0
    with open_bytes(path) as file:
        for number, line in enumerate(file, start=1):
            if line.strip():
                try:
                    places[str(json.loads(line)["id"])] = (offset, number)
                except (KeyError, TypeError, ValueError, RecursionError) as error:
                    raise ValueError(
                        f"expected a table as a JSON object with an 'id', got: {error!r} "
                        f"(file '{path}', line {number})"
                    ) from None
            offset += len(line)
    return places


def _read_table(file: BinaryIO, offset: int, original: bool) -> _Typed:
    file.seek(offset)
    content = file.readline()
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
    if not all(isinstance(title, str) for title in titles.values()):
        raise ValueError(f"expected texts as titles, got {titles}")
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
