"""Your own questions in JSON Lines: a question on each line, with its table or the table's file.

docs/training.md describes the format, also of tables whose cells link to passages.
"""

import contextlib
import hashlib
import json
import posixpath
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from mate_tf.dataclass_json import from_dict
from mate_tf.paths import as_path
from mate_tf.reading.files import ReadOptions, read_file
from mate_tf.reading.text_files import complete_text_file, read_json, read_json_values
from mate_tf.tables.linked_table import LinkedTable, plain_table
from mate_tf.tables.table import Question, Table, check_coordinates, remember

_DEFAULTS = {f.name: f.default for f in fields(Question) if f.name not in ("text", "question_id")}
_TITLES = ("document_title", "context_heading")
_FILE = "file"
_FILE_KEYS = (_FILE, *(field.name for field in fields(ReadOptions)), *_TITLES)
# Of each key the types of its value, and their name; numbers are checked by Question.
_KINDS: dict[str, tuple[Any, str]] = {
    "id": (str | int, "a text"),
    "question": (str, "a text"),
    "table": (str | dict, "an object or the path of a file"),
}
_OF_DEFAULTS: dict[Any, tuple[Any, str]]
_OF_DEFAULTS = {(): (list, "a list"), "": (str, "a text"), None: (object, "")}
_KINDS |= {name: _OF_DEFAULTS[default] for name, default in _DEFAULTS.items()}


def read_json_lines(path: str | Path) -> Iterator[tuple[Table, Question]]:
    """Yields each question with its table, in the file's order.

    A line is an object with "question", "table" and, if they are known, "id", "answers",
    "answer_coordinates", "answer_number" and the other fields of `Question`. The table is one of:

    - an object with "header", "rows" and, if they are known, "id", "document_title",
      "context_heading" and "expansions";
    - the path, from the folder of the JSON Lines, of a file for `read_file`, which becomes the
      table's name;
    - an object with that path as "file" and the fields of `ReadOptions`.

    All errors name file and line: FileNotFoundError if the file or a table is missing, OSError if a
    table's file cannot be opened, ValueError if a line or table is malformed or an id comes twice.
    """
    return _read_lines(as_path(path), linked=False)


def read_linked_json_lines(path: str | Path) -> Iterator[tuple[LinkedTable, Question]]:
    """Yields each question with its table and passages; errors as `read_json_lines`.

    A cell of the table's "rows" may be an object with "text" and "links", a list of names;
    "passages" is an object with a text for each name. The table may be in a .json file too.
    """
    return _read_lines(as_path(path), linked=True)


def table_reader(folder: Path, linked: bool = False) -> Callable[[str | dict[str, Any]], Any]:
    """A function that reads the Table, or LinkedTable, that a line of a file in a folder has."""
    from_json = _linked_table_from_json if linked else _table_from_json

    @remember
    def read_named(key: tuple[str, ReadOptions, tuple[tuple[str, str], ...]]) -> Any:
        path, options, titles = key
        # Files of several folders may share a name, so that the path is the table's name.
        name = posixpath.normpath(Path(path).as_posix())
        for field in fields(ReadOptions):
            value = getattr(options, field.name)
            if value != field.default:  # other options make another table of the same file
                label = "" if field.name in ("sheet", "which") else f"{field.name}="
                name += f"#{label}{value}"
        table: Any = None
        if linked and Path(path).suffix.lower() == ".json" and options == ReadOptions():
            record = read_json(folder / path)
            if isinstance(record, dict) and "rows" in record:
                table = from_json(record, name)
        if table is None:
            table = replace(read_file(folder / path, options), table_id=name)
            table = LinkedTable.from_links(table, (), {}) if linked else table
        titled = replace(plain_table(table), **dict[str, Any](titles))
        return replace(table, table=titled) if linked else titled

    def read(source: str | dict[str, Any]) -> Any:
        if isinstance(source, str):
            source = {_FILE: source}
        if _FILE not in source:
            # Equal tables of two lines are one table, also without an id.
            content = json.dumps(source, sort_keys=True).encode()
            return from_json(source, f"table-{hashlib.sha256(content).hexdigest()[:12]}")
        if unknown := [key for key in source if key not in _FILE_KEYS]:
            raise ValueError(f"expected keys among {list(_FILE_KEYS)} for a file, got {unknown}")
        if not isinstance(source[_FILE], str):
            raise ValueError(f"expected the path of a file, got {source[_FILE]!r}")
        values = {key: source[key] for key in source if key not in (_FILE, *_TITLES)}
        options = from_dict(ReadOptions, values, "table")
        return read_named((source[_FILE], options, tuple(_titles(source).items())))

    return read


def _read_lines(path: Path, linked: bool) -> Iterator[tuple[Any, Question]]:
    read_table = table_reader(path.parent, linked)
    for where, name, record in read_named_lines(path, _KINDS, ("question", "table"), "question"):
        with naming(where):
            if not record["question"].strip():
                raise ValueError("expected a question, got a blank one")
            table = read_table(record["table"])
            supervision = {key: record[key] for key in _DEFAULTS if key in record}
            question = Question(record["question"], name, **supervision)
            check_coordinates(plain_table(table), question)
        yield table, question


def read_named_lines(
    path: Path, kinds: Mapping[str, tuple[Any, str]], required: Sequence[str], unit: str
) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yields where each line is, its id, by default of file and number, and its object.

    ValueError unless a line has the required keys, others among `kinds` with values of their types,
    and an id that no other `unit` has.
    """
    lines: dict[int, int] = {}  # by the hashes of ids, which take less memory than ids
    for number, record in read_json_values(path):
        where = f"(file '{path}', line {number})"
        with naming(where):
            _check_record(record, kinds, required)
            name = str(record.get("id", f"{path.stem}-{number}"))
            if (line := lines.setdefault(hash(name), number)) != number:
                raise ValueError(
                    f"expected a different id for each {unit}, got {name!r} again, which line "
                    f"{line} has"
                )
        yield where, name, record


def _table_from_json(record: Mapping[str, Any], default_id: str) -> Table:
    if missing := [name for name in ("header", "rows") if not isinstance(record.get(name), list)]:
        raise ValueError(f"expected a table with the lists 'header' and 'rows', missing {missing}")
    table = Table.from_rows(record["rows"], record["header"], str(record.get("id", default_id)))
    return replace(table, expansions=tuple(record.get("expansions", ())), **_titles(record))


def _linked_table_from_json(record: Mapping[str, Any], default_id: str) -> LinkedTable:
    texts = record.get("passages", {})
    if not isinstance(texts, dict) or not all(isinstance(text, str) for text in texts.values()):
        raise ValueError(f"expected an object of texts for 'passages', got {texts!r:.80}")
    rows = record.get("rows")
    cells: list[list[tuple[Any, list[str]]]] = []
    for row in rows if isinstance(rows, list) else ():
        if not isinstance(row, list):
            raise ValueError(f"expected a list of cells, got {row!r:.80}")
        cells.append(list(map(_cell, row)))
    own = {"rows": [[text for text, _ in row] for row in cells]} if cells else {}
    table = _table_from_json({**record, **own}, default_id)
    return LinkedTable.from_links(table, [[names for _, names in row] for row in cells], texts)


def _titles(record: Mapping[str, Any]) -> dict[str, Any]:
    titles = {name: record[name] for name in _TITLES if name in record}
    for name, title in titles.items():
        if not isinstance(title, str):
            raise ValueError(f"expected a text for '{name}', got {title!r}")
    return titles


def _cell(cell: Any) -> tuple[Any, list[str]]:
    """A cell's own value and the names that it links to."""
    if not isinstance(cell, dict):
        return cell, []
    names = cell.get("links", [])
    are_names = isinstance(names, list) and all(isinstance(name, str) for name in names)
    if not are_names or not cell.keys() <= {"text", "links"}:
        raise ValueError(
            f"expected a cell's text, or an object with 'text' and a list of 'links', "
            f"got {cell!r:.80}"
        )
    return cell.get("text"), names


@contextlib.contextmanager
def naming(where: str) -> Iterator[None]:
    """Adds where it is to an error in reading, such as "(file 'a.jsonl', line 3)"."""
    try:
        yield
    except (FileNotFoundError, ModuleNotFoundError) as error:
        raise type(error)(f"{error} {where}") from None
    except OSError as error:  # such as a name that is too long
        raise OSError(f"expected a table's file, got {error} {where}") from None
    except (TypeError, ValueError) as error:
        raise ValueError(f"{error} {where}") from None


def write_json_lines(path: str | Path, pairs: Iterable[tuple[Table, Question]]) -> int:
    """Writes questions with their tables for `read_json_lines`, and returns their number."""
    count = 0
    with complete_text_file(path) as file:
        for table, question in pairs:
            file.write(json_line(table, question))
            count += 1
    return count


def json_line(table: Table, question: Question) -> str:
    """The line of a question and its table, with its line break."""
    supervision = {name: getattr(question, name) for name in _DEFAULTS}
    record = {
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
    line = json.dumps(record, ensure_ascii=False)
    try:
        line.encode()
    except UnicodeEncodeError:  # JSON can hold half a surrogate pair, UTF-8 cannot
        line = json.dumps(record)
    return f"{line}\n"


def _check_record(
    record: Any, kinds: Mapping[str, tuple[Any, str]], required: Sequence[str]
) -> None:
    if not isinstance(record, dict):
        raise ValueError(f"expected an object, got {type(record).__name__}")
    if missing := [key for key in required if key not in record]:
        raise ValueError(f"expected the keys {list(required)}, missing {missing}")
    if unknown := [key for key in record if key not in kinds]:
        raise ValueError(f"expected keys among {list(kinds)}, got {unknown}")
    for key, value in record.items():
        kind, meaning = kinds[key]
        if not isinstance(value, kind):
            raise ValueError(f"expected {meaning} for '{key}', got {value!r}")
