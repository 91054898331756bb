"""Questions of one's own about tables whose cells link to passages, in JSON Lines.

docs/linked_tables.md describes the format.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from mate_tf.tables.datasets.json_lines import read_question_lines, table_from_json
from mate_tf.tables.linked_table import LinkedTable
from mate_tf.tables.table import Question
from mate_tf.tables.text_files import read_json

_CELL_KEYS = {"text", "links"}


def read_linked_json_lines(path: str | Path) -> Iterator[tuple[LinkedTable, Question]]:
    """Yields each question with its table and the passages that the cells link to.

    A line is one of `read_json_lines`, whose table is an object or the path of a .json file with
    such an object. A cell of its "rows" may be an object with "text" and "links", a list of names;
    "passages" is an object with a text for each name.

    Raises:
        FileNotFoundError: if the file or a table is missing.
        OSError: if a table's file cannot be opened.
        ValueError: if a line or a table is malformed, or two questions have one id. All errors
            name file and line.
    """
    return read_question_lines(path, linked_table_from_json, _read_linked_table)


def linked_table_from_json(record: Mapping[str, Any], default_id: str) -> LinkedTable:
    """A table with passages from an object with "header", "rows" and "passages".

    Raises:
        ValueError: if it is malformed.
    """
    texts = record.get("passages", {})
    if not isinstance(texts, dict) or not all(isinstance(text, str) for text in texts.values()):
        raise ValueError(f"expected an object of texts for 'passages', got {_shown(texts)}")
    rows = record.get("rows")
    cells = [_cells(row) for row in rows] if isinstance(rows, list) else []
    own = {"rows": [[text for text, _ in row] for row in cells]} if cells else {}
    table = table_from_json({**record, **own}, default_id)
    return LinkedTable.from_links(table, [[names for _, names in row] for row in cells], texts)


def _read_linked_table(path: Path, name: str) -> LinkedTable:
    record = read_json(path)
    if not isinstance(record, dict):
        raise ValueError(f"expected an object with 'header' and 'rows', got {_shown(record)}")
    return linked_table_from_json(record, name)


def _cells(row: Any) -> list[tuple[Any, list[str]]]:
    if not isinstance(row, list):
        raise ValueError(f"expected a list of cells, got {_shown(row)}")
    return [_cell(cell) for cell in row]


def _cell(cell: Any) -> tuple[Any, list[str]]:
    """A cell's own text, or what becomes it, and the names that it links to."""
    if not isinstance(cell, dict):
        return cell, []
    names = cell.get("links", [])
    if (
        not cell.keys() <= _CELL_KEYS
        or not isinstance(names, list)
        or not all(isinstance(name, str) for name in names)
    ):
        raise ValueError(
            f"expected a cell's text, or an object with 'text' and a list of 'links', got "
            f"{_shown(cell)}"
        )
    return cell.get("text"), names


def _shown(value: Any) -> str:
    shown = json.dumps(value, ensure_ascii=False)
    return shown if len(shown) <= 80 else f"{shown[:80]}..."
