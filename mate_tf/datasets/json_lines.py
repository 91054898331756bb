"""Questions of one's own about tables whose cells link to passages, in JSON Lines.

docs/linked_tables.md describes the format.

Questions of one's own: one JSON object a line, with the table in it or in a file beside it.

docs/own_data.md describes the format.
"""

import contextlib
import functools
import hashlib
import json
import posixpath
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, TypeVar

from mate_tf.tables.linked_table import LinkedTable, plain_table
from mate_tf.tables.table import Question, Table, check_coordinates
from mate_tf.tables.text_files import SeenIds, complete_text_file, read_json, read_json_values

_DEFAULTS = {f.name: f.default for f in fields(Question) if f.name not in ("text", "question_id")}
_TITLES = ("document_title", "context_heading")
_TABLES_REMEMBERED = 256
_KINDS = {
    "id": (str | int, "a text"),
    "question": (str, "a text"),
    "table": (str | dict, "an object or the path of a file"),
    "answers": (list, "a list"),
    "answer_coordinates": (list, "a list"),
    "answer_number": (int | float | None, "a number"),
    "aggregation": (str, "a text"),
    "previous_coordinates": (list, "a list"),
    "class_index": (int | None, "an integer"),
    "part_of_speech_tags": (list, "a list"),
    "previous_answers": (list, "a list"),
}
KEYS = tuple(_KINDS)

Asked = TypeVar("Asked", Table, LinkedTable)


def read_json_lines(path: str | Path) -> Iterator[tuple[Table, Question]]:
    """Yields each question with its table, in the file's order.

    A line is an object with "question", "table" and, where they are known, "id", "answers",
    "answer_coordinates", "answer_number" and the other fields of `Question`. The table is an
    object with "header", "rows" and, where they are known, "id", "document_title",
    "context_heading" and "expansions"; or the path, from the file's own folder, of a table in CSV
    (.csv, .tsv) or JSON Lines (.jsonl), which is then called by that path.

    Raises:
        FileNotFoundError: if the file or a table is missing.
        OSError: if a table's file cannot be opened.
        ValueError: if a line or a table is malformed, or two questions have one id. All errors
            name file and line.
    """
    return read_question_lines(path, table_from_json, read_table)


def read_question_lines(
    path: str | Path,
    from_json: Callable[[dict[str, Any], str], Asked],
    read_file: Callable[[Path, str], Asked],
) -> Iterator[tuple[Asked, Question]]:
    """As `read_json_lines`, of tables of any kind.

    Args:
        path: the file.
        from_json: makes a table of the object in a line, and of the name that it has without one
            of its own.
        read_file: reads the table's file that a line names, and calls it by that name.

    Raises:
        FileNotFoundError, OSError, ValueError: as `read_json_lines`.
    """
    path = Path(path)
    remembered = functools.lru_cache(_TABLES_REMEMBERED)(read_file)
    ids = SeenIds()
    for number, record in read_json_values(path):
        with naming_line(path, number):
            _check_record(record)
            source = record["table"]
            if isinstance(source, dict):
                table = from_json(source, name_by_content(source))
            else:
                table = remembered(path.parent / source, name_by_place(source))
            question = _question_from(record, default_id=f"{path.stem}-{number}")
            check_coordinates(plain_table(table), question)
            if not ids.add(question.question_id):
                raise ValueError(
                    f"expected an id of its own for each question, got {question.question_id!r} "
                    f"again{_line_of(path, question.question_id, number)}"
                )
        yield table, question


def table_from_json(record: Mapping[str, Any], default_id: str) -> Table:
    """A table from an object with "header", "rows" and the other keys, as `read_json_lines` has it.

    Raises:
        ValueError: if it is malformed.
    """
    if missing := [name for name in ("header", "rows") if not isinstance(record.get(name), list)]:
        raise ValueError(f"expected a table with the lists 'header' and 'rows', missing {missing}")
    table = Table.from_rows(record["rows"], record["header"], str(record.get("id", default_id)))
    titles = {name: record[name] for name in _TITLES if name in record}
    for name, title in titles.items():
        if not isinstance(title, str):
            raise ValueError(f"expected a text for '{name}', got {title!r}")
    return replace(table, expansions=tuple(record.get("expansions", ())), **titles)


def read_table(path: str | Path, table_id: str) -> Table:
    """A table from a file in CSV (.csv, .tsv) or JSON Lines (.jsonl).

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if it is malformed.
    """
    path = Path(path)
    is_json = path.suffix.lower() == ".jsonl"
    table = Table.from_json_lines(path) if is_json else Table.from_csv(path)
    return replace(table, table_id=table_id)


def name_by_content(table: Mapping[str, Any]) -> str:
    """A name for a table in a line: where it is without an id, two lines' are one table."""
    content = json.dumps(table, sort_keys=True).encode()
    return f"table-{hashlib.sha256(content).hexdigest()[:12]}"


def name_by_place(source: str) -> str:
    """A name for a table in a file: those of several folders may have one file name."""
    return posixpath.normpath(Path(source).as_posix())


@contextlib.contextmanager
def naming_line(path: Path, number: int) -> Iterator[None]:
    """Lets the errors of reading a line, and a table that it leads to, name file and line."""
    where = f"(file '{path}', line {number})"
    try:
        yield
    except FileNotFoundError as error:
        raise FileNotFoundError(f"{error} {where}") from None
    except OSError as error:  # such as a name that is too long
        raise OSError(f"expected a table's file, got {error} {where}") from None
    except (TypeError, ValueError) as error:
        raise ValueError(f"{error} {where}") from None


def write_json_lines(path: str | Path, pairs: Iterable[tuple[Table, Question]]) -> int:
    """Writes questions with their tables, so that `read_json_lines` gives them back.

    The file appears only once it is complete.

    Returns:
        The number of questions.
    """
    count = 0
    with complete_text_file(path) as file:
        for table, question in pairs:
            file.write(json_line(table, question))
            count += 1
    return count


def json_line(table: Table, question: Question) -> str:
    """The line of a question and its table, with its line break."""
    record = _record(table, question)
    line = json.dumps(record, ensure_ascii=False)
    try:
        line.encode()
    except UnicodeEncodeError:  # half a surrogate pair is text in JSON, and not in UTF-8
        line = json.dumps(record)
    return f"{line}\n"


def _record(table: Table, question: Question) -> dict[str, Any]:
    supervision = {name: getattr(question, name) for name in _DEFAULTS}
    return {
        "id": question.question_id,
        "question": question.text,
        **{name: value for name, value in supervision.items() if value != _DEFAULTS[name]},
        "table": {
            "id": table.table_id,
            **{name: getattr(table, name) for name in _TITLES if getattr(table, name)},
            "header": table.header,
            "rows": table.rows,
            **({"expansions": table.expansions} if table.expansions else {}),
        },
    }


def _question_from(record: Mapping[str, Any], default_id: str) -> Question:
    supervision = {name: record[name] for name in _DEFAULTS if name in record}
    return Question(record["question"], str(record.get("id", default_id)), **supervision)


def _check_record(record: Any) -> None:
    if not isinstance(record, dict):
        raise ValueError(f"expected an object, got {type(record).__name__}")
    if missing := [key for key in ("question", "table") if key not in record]:
        raise ValueError(f"expected the keys 'question' and 'table', missing {missing}")
    if unknown := [key for key in record if key not in _KINDS]:
        raise ValueError(f"expected keys among {list(_KINDS)}, got {unknown}")
    for key, value in record.items():
        kind, meaning = _KINDS[key]
        if not isinstance(value, kind):
            raise ValueError(f"expected {meaning} for '{key}', got {value!r}")


def _line_of(path: Path, question_id: str, end: int) -> str:
    """Says which line before the end has an id; there only is a message to make of it."""
    for number, record in read_json_values(path):
        if number < end and str(record.get("id", f"{path.stem}-{number}")) == question_id:
            return f", which line {number} has"
    return ""


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
