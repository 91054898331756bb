"""HybridQA, in the layout of its official release (Chen et al., 2020)."""

import functools
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

from mate_tf.datasets.json_lines import naming
from mate_tf.tables.linked_table import LinkedTable
from mate_tf.tables.table import Question, Table, check_coordinates, remember
from mate_tf.tables.text_files import read_json

# The two repositories of the release: questions; tables and passages.
_QUESTIONS, _TABLES = "released_data", "WikiTables-WithLinks"


def read_hybridqa(
    directory: str | Path, split: str, traced: bool = False, original: bool = False
) -> Iterator[tuple[LinkedTable, Question]]:
    """Yields each question with its table and the passages that the cells link to.

    Answers are texts: `supervise_linked` finds their cells, and `expand_cells` puts sentences of
    the passages into the table. Links are unquoted like the passages' keys; those without a passage
    are the table's `dead_links`. Questions have the release's `part_of_speech_tags` if there are
    any. The questions' file is one JSON value and in memory as a whole; tables and passages are
    read when they are needed.

    Args:
        directory: the release: folders `tables_tok` and `request_tok` beside the questions' files,
            or the official repositories, `WikiTables-WithLinks` beside `released_data`.
        split: "train", "dev" or "test" (with hidden answers).
        traced: whether `answer_coordinates` are the cells that the release traced the answers to,
            in {split}.traced.json.
        original: whether ids end in "-0_0" and tables have no section heading, as in the authors'
            release of MATE.

    Raises:
        FileNotFoundError: if the split, a table or its passages are missing.
        ValueError: if a file differs from the release's format. It names the file, and the question
            or the link.
    """
    questions, tables = (
        Path(directory) / part if (Path(directory) / part).is_dir() else Path(directory)
        for part in (_QUESTIONS, _TABLES)
    )
    path = questions / f"{split}.json"
    traced_path = questions / f"{split}.traced.json"
    if traced or (not path.exists() and traced_path.exists()):
        path = traced_path
    read_table = remember(functools.partial(_read_table, tables, original))
    records = read_json(path)
    if not isinstance(records, list):
        raise ValueError(f"expected a list of questions, got {_kind(records)} (file '{path}')")
    for number, record in enumerate(records):
        name = record.get("question_id") if isinstance(record, dict) else None
        with naming(f"(file '{path}', question {number if name is None else repr(name)})"):
            question = _question_from(record, traced, original)
        linked = read_table(record["table_id"])
        with naming(f"(file '{path}', question '{question.question_id}')"):
            check_coordinates(linked.table, question)
        yield linked, question


class Reference(NamedTuple):
    """The gold answers for scoring.

    Attributes:
        answers: by question id.
        in_table: the ids of questions with the answer in a cell.
        in_passage: the ids of questions with the answer in a passage.
    """

    answers: dict[str, str]
    in_table: frozenset[str]
    in_passage: frozenset[str]


def read_hybridqa_reference(directory: str | Path, split: str) -> Reference:
    """Reads the gold answers and where they are from {split}_reference.json.

    Raises:
        FileNotFoundError: if there is no such file, as for the train and test splits.
        ValueError: if it differs from the release's format.
    """
    folder = Path(directory)
    folder = folder / _QUESTIONS if (folder / _QUESTIONS).is_dir() else folder
    path = folder / f"{split}_reference.json"
    where = f"(file '{path}')"
    record = read_json(path)
    answers = _get(record, "reference", dict, where)
    in_table, in_passage = (_get(record, key, list, where) for key in ("table", "passage"))
    for id_ in (*in_table, *in_passage):
        if not isinstance(id_, str) or id_ not in answers:
            raise ValueError(f"expected ids that have an answer, got {id_!r} {where}")
    return Reference(
        {id_: _get(answers, id_, str, where) for id_ in answers},
        frozenset(in_table),
        frozenset(in_passage),
    )


def _is_node(node: Any) -> bool:
    return isinstance(node, list) and len(node) == 4 and isinstance(node[1], list)


def _question_from(record: Any, traced: bool, original: bool) -> Question:
    text, id_ = (_get(record, key, str) for key in ("question", "question_id"))
    _get(record, "table_id", str)
    tags = tuple(_get(record, "question_postag", str, default="").split())
    answers = (_get(record, "answer-text", str),) if "answer-text" in record else ()
    coordinates = []
    for node in _get(record, "answer-node", list) if traced else ():
        if not _is_node(node):
            raise ValueError(f"expected a text, coordinates, link and kind, got {node!r}")
        coordinates.append(node[1])
    return Question(
        text,
        f"{id_}-0_0" if original else id_,
        answers,
        answer_coordinates=tuple(dict.fromkeys(map(tuple, coordinates))),
        part_of_speech_tags=tags,
    )


def _read_table(directory: Path, original: bool, table_id: str) -> LinkedTable:
    path = directory / "tables_tok" / f"{table_id}.json"
    passages_path = directory / "request_tok" / f"{table_id}.json"
    where, passages_where = f"(file '{path}')", f"(file '{passages_path}')"
    record, texts = read_json(path), read_json(passages_path)
    if not isinstance(texts, dict):
        raise ValueError(f"expected an object of passages, got {_kind(texts)} {passages_where}")
    texts = {link: _get(texts, link, str, passages_where) for link in texts}

    def cells(row: Any, name: str) -> list[tuple[str, list[str]]]:
        if not isinstance(row, list):
            raise ValueError(f"expected a list of cells, got {_kind(row)} (file '{path}', {name})")
        return [_cell(cell, f"(file '{path}', {name})") for cell in row]

    header = cells(_get(record, "header", list, where), "header")
    rows = _get(record, "data", list, where)
    body = [cells(row, f"row {i}") for i, row in enumerate(rows)]
    with naming(where):
        table = Table(
            tuple(text for text, _ in header),
            tuple(tuple(text for text, _ in row) for row in body),
            table_id,
            document_title=_get(record, "title", str, default=""),
            context_heading="" if original else _get(record, "section_title", str, default=""),
        )
    return LinkedTable.from_links(table, [[links for _, links in row] for row in body], texts)


def _cell(cell: Any, where: str) -> tuple[str, list[str]]:
    """The text of a cell and its links."""
    match cell:
        case [str(text), list(links)] if all(isinstance(link, str) for link in links):
            return text, list(map(unquote, links))
    raise ValueError(f"expected a cell's text and a list of its links, got {cell!r} {where}")


def _get(record: Any, key: str, kind: type, where: str = "", default: Any = None) -> Any:
    """The value of a key, checked to be of a kind; the error ends in `where`."""
    if not isinstance(record, dict):
        raise ValueError(f"expected an object, got {_kind(record)} {where}".rstrip())
    value = record.get(key)
    if value is None and default is not None:
        return default
    if not isinstance(value, kind):
        got = _kind(value) if key in record else "none"
        raise ValueError(f"expected '{key}' as {kind.__name__}, got {got} {where}".rstrip())
    return value


def _kind(value: Any) -> str:
    return type(value).__name__
