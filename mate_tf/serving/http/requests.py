"""Reads tables and questions from the body of a request, or says why not."""

import json
import re
from typing import Any

from mate_tf.serving.http import Limits
from mate_tf.serving.http.limits import RefusedError
from mate_tf.tables.table import Question, Table

_HALF_A_PAIR = re.compile(rb"\\u[dD][89a-fA-F]")  # perhaps of surrogates


class _Number(str):
    """A number with the text that it has in the request: 1.50 stays 1.50."""


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


_NAMES = {
    dict: "an object",
    list: "a list",
    str: "a text",
    bool: "a truth value",
    _Number: "a number",
    type(None): "null",
}


_MOST_COLUMNS = 255  # as many as models have embeddings for


def read_request(body: bytes, limits: Limits) -> list[tuple[Table, Question]]:
    """The tables and questions of {"instances": [{"question": ..., "table": {...}}, ...]}.

    A table is {"header": [...], "rows": [[...], ...]}; cells are texts, numbers, truth values or
    null.

    Raises:
        RefusedError: with status 400 for anything else, with 413 for what is beyond a limit.
    """
    try:
        document = json.loads(
            body.decode(), parse_int=_Number, parse_float=_Number, parse_constant=_no_constant
        )
        if _HALF_A_PAIR.search(body):
            json.dumps(document, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        raise RefusedError("not_json", f"expected JSON in UTF-8: {error}") from None
    instances = _list(_object(document, "", ["instances"])["instances"], "instances")
    _check_size(len(instances), limits.max_questions, "questions", "instances")
    return [
        _instance(instance, f"instances[{index}]", limits)
        for index, instance in enumerate(instances)
    ]


def _instance(value: Any, where: str, limits: Limits) -> tuple[Table, Question]:
    instance = _object(value, where, ["question", "table"])
    text = instance["question"]
    if not isinstance(text, str) or isinstance(text, _Number):
        raise _wrong_type("a text", text, f"{where}.question")
    if not text.strip():
        raise RefusedError("empty", "expected a question, got an empty one", f"{where}.question")
    _check_length(text, limits.max_question_characters, f"{where}.question")
    return _table(instance["table"], f"{where}.table", limits), Question(text)


def _table(value: Any, where: str, limits: Limits) -> Table:
    table = _object(value, where, ["header", "rows"])
    header = _list(table["header"], f"{where}.header")
    rows = _list(table["rows"], f"{where}.rows")
    _check_size(len(header), _MOST_COLUMNS, "columns", f"{where}.header")
    _check_size(len(rows) * len(header), limits.max_cells, "cells", f"{where}.rows")
    _check_cells(header, f"{where}.header", limits)
    for index, row in enumerate(rows):
        place = f"{where}.rows[{index}]"
        if len(_list(row, place)) != len(header):
            raise RefusedError(
                "ragged", f"expected {len(header)} cells as in the header, got {len(row)}", place
            )
        _check_cells(row, place, limits)
    return Table.from_rows(rows, header=header)


def _check_cells(cells: list[Any], where: str, limits: Limits) -> None:
    for index, cell in enumerate(cells):
        if isinstance(cell, str):
            if len(cell) > limits.max_cell_characters:
                _check_length(cell, limits.max_cell_characters, f"{where}[{index}]")
        elif isinstance(cell, dict | list):
            expected = "a text, a number, a truth value or null"
            raise _wrong_type(expected, cell, f"{where}[{index}]")


def _object(value: Any, where: str, keys: list[str]) -> dict[str, Any]:
    """The value, if it is an object with exactly these keys."""
    if not isinstance(value, dict):
        raise _wrong_type("an object", value, where)
    for key in keys:
        if key not in value:
            raise RefusedError("missing", f'expected "{key}", which is missing', where)
    if unknown := [key for key in value if key not in keys]:
        raise RefusedError(
            "unknown_key", f"expected only {', '.join(keys)}, got {unknown[0]!r:.80}", where
        )
    return value


def _list(value: Any, where: str) -> list[Any]:
    """The value, if it is a list of at least one."""
    if not isinstance(value, list):
        raise _wrong_type("a list", value, where)
    if not value:
        raise RefusedError("empty", "expected at least 1 element, got 0", where)
    return value


def _wrong_type(expected: str, value: Any, where: str) -> RefusedError:
    return RefusedError("wrong_type", f"expected {expected}, got {_NAMES[type(value)]}", where)


def _check_size(size: int, most: int, unit: str, where: str) -> None:
    if size > most:
        raise RefusedError(
            f"too_many_{unit}", f"expected at most {most} {unit}, got {size}", where, 413
        )


def _check_length(text: str, most: int, where: str) -> None:
    if len(text) > most:
        raise RefusedError(
            "too_long", f"expected at most {most} characters, got {len(text)}", where, 413
        )
