"""Reads tables and questions from the body of a request, or says why not, and shapes the reply."""

import dataclasses
import itertools
import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from mate_tf.answers.answer import Answer, apply_min_score
from mate_tf.answers.follow_ups import FollowUp
from mate_tf.reading.delimited import read_delimited_rows
from mate_tf.reading.layout import lay_out
from mate_tf.serving.http import Limits
from mate_tf.serving.http.limits import RefusedError
from mate_tf.serving.http.schema import (
    OF_PIPELINES,
    OPTIONS,
    OUTPUTS,
    TENSORS,
    Number,
    read_document,
)
from mate_tf.tables.table import Question, Table

_NAMES = {
    dict: "an object",
    list: "a list",
    str: "a text",
    bool: "a truth value",
    Number: "a number",
    type(None): "null",
}
_MOST_COLUMNS = 255  # as many as models have embeddings for


class Request(NamedTuple):
    """What a client asks."""

    pairs: list[tuple[Table, Question]]
    places: list[str]  # of each pair in the request
    alternatives: int | None  # of each answer; None for as many as the server gives by default
    min_score: float | None  # below it there is no answer; None for the server's default
    reply: Callable[[list[Answer]], Any]  # makes the body of the reply, for JSON

    def finished(self, answer: Answer, alternatives: int, min_score: float) -> Answer:
        """An answer with as many alternatives, and if it is good enough; with the defaults."""
        number = alternatives if self.alternatives is None else self.alternatives
        least = min_score if self.min_score is None else self.min_score
        others = answer.alternatives[:number]
        return apply_min_score(dataclasses.replace(answer, alternatives=others), least)


def read_request(body: bytes, limits: Limits, encoding: str = "identity") -> Request:
    """What the body of a request in KServe's V1 protocol, or in Hugging Face's form, asks.

    The form is {"instances": [{"question": ..., "table": ...}, ...]} or {"inputs": {"query": ...,
    "table": ...}}; `request_schema` has all of it.

    Raises:
        RefusedError: with status 400 for anything else, with 413 for what is beyond a limit.
    """
    document = read_document(body, limits, encoding)
    if isinstance(document, dict) and "inputs" in document:
        return _of_hugging_face(document, limits)
    _object(document, "", ["instances"], OPTIONS)
    instances = _list(document["instances"], "instances")
    pairs: list[tuple[Table, Question]] = []
    places: list[str] = []
    sizes: list[int | None] = []
    for index, value in enumerate(instances):
        where = f"instances[{index}]"
        instance = _object(value, where, ["table"], ["question", "questions", "previous"])
        is_one = "question" in instance
        if is_one == ("questions" in instance):
            raise RefusedError("missing", 'expected "question" or "questions"', where)
        texts = [instance["question"]] if is_one else instance["questions"]
        sizes.append(None if is_one else len(_list(texts, f"{where}.questions")))
        _check_size(len(pairs) + len(texts), limits.max_questions, "questions", "instances")
        table = _table(instance["table"], f"{where}.table", limits)
        for number, text in enumerate(texts):
            name = "question" if is_one else f"questions[{number}]"
            question = _question(text, f"{where}.{name}", limits)
            if (previous := instance.get("previous")) is not None:
                question = _follow_up(table, question, previous, f"{where}.previous", limits)
            pairs.append((table, question))
            places.append(where if is_one else f"{where}.{name}")

    def reply(answers: list[Answer]) -> Any:
        told = (answer.to_dict() for answer in answers)
        predictions = [next(told) if n is None else [*itertools.islice(told, n)] for n in sizes]
        return {"predictions": predictions}

    return Request(pairs, places, *_options(document, "", limits), reply)


def read_tensors(body: bytes, limits: Limits, model_name: str, encoding: str) -> Request:
    """What a request in KServe's V2 protocol asks: the tensors `question` and `table`.

    Both are one-dimensional and of BYTES; a table is JSON or CSV text, and one serves for all
    questions. The reply has the outputs that are named, or all. Errors are as of `read_request`.
    """
    document = _object(
        read_document(body, limits, encoding), "", ["inputs"], ["id", "parameters", "outputs"]
    )
    tensors: dict[str, list[Any]] = {}
    for index, value in enumerate(_list(document["inputs"], "inputs")):
        where = f"inputs[{index}]"
        tensor = _object(value, where, ["name", "shape", "datatype", "data"], ["parameters"])
        name, data = tensor["name"], _list(tensor["data"], f"{where}.data")
        _nullable(dict, tensor.get("parameters"), f"{where}.parameters")
        if name not in TENSORS or name in tensors:
            message = f"expected question and table once, got {name!r:.80}"
            raise RefusedError("wrong_input", message, where)
        place = f"{where}.shape"
        shape = [_number(size, place) for size in _list(tensor["shape"], place)]
        if (tensor["datatype"], shape) != ("BYTES", [len(data)]):
            message = f"expected BYTES of the shape [{len(data)}] for {name}"
            raise RefusedError("wrong_type", message, where)
        tensors[name] = data
    if missing := set(TENSORS) - tensors.keys():
        raise RefusedError("missing", f"expected the input {missing.pop()!r}", "inputs")
    texts, tables = tensors["question"], tensors["table"]
    _check_size(len(texts), limits.max_questions, "questions", "inputs")
    if len(tables) not in (1, len(texts)):
        message = f"expected 1 table or {len(texts)}, got {len(tables)}"
        raise RefusedError("ragged", message, "inputs")
    read = [_table_of_text(text, f"table[{place}]", limits) for place, text in enumerate(tables)]
    pairs = [
        (read[0 if len(read) == 1 else place], _question(text, f"question[{place}]", limits))
        for place, text in enumerate(texts)
    ]

    id_ = _nullable(str, document.get("id"), "id") or ""
    names = _named_outputs(document.get("outputs"))

    def reply(answers: list[Answer]) -> Any:
        told = [(one.text, one.score, json.dumps(one.to_dict())) for one in answers]
        data = dict(zip(OUTPUTS, zip(*told, strict=True), strict=True))
        outputs = [
            {"name": name, "shape": [len(pairs)], "datatype": OUTPUTS[name], "data": data[name]}
            for name in names
        ]
        return {"model_name": model_name, "id": id_, "outputs": outputs}

    places = [f"question[{place}]" for place in range(len(texts))]
    options = _parameters(document, OPTIONS)
    return Request(pairs, places, *_options(options, "parameters.", limits), reply)


def _named_outputs(value: Any) -> list[str]:
    """The outputs that a request names, in its order; all if it names none."""
    named = {}
    for index, one in enumerate(_nullable(list, value, "outputs") or ()):
        where = f"outputs[{index}]"
        name = _object(one, where, ["name"], ["parameters"])["name"]
        _nullable(dict, one.get("parameters"), f"{where}.parameters")
        if type(name) is not str or name not in OUTPUTS:
            message = f"expected one of {', '.join(OUTPUTS)}, got {name!r:.80}"
            raise RefusedError("wrong_output", message, where)
        named[name] = True
    return list(named or OUTPUTS)


def _of_hugging_face(document: Any, limits: Limits) -> Request:
    _object(document, "", ["inputs"], [*OPTIONS, "parameters"])
    _parameters(document, OF_PIPELINES)
    given = document["inputs"]
    inputs = _list(given, "inputs") if isinstance(given, list) else [given]
    _check_size(len(inputs), limits.max_questions, "questions", "inputs")
    places = [f"inputs[{i}]" if isinstance(given, list) else "inputs" for i in range(len(inputs))]
    pairs = []
    for value, where in zip(inputs, places, strict=True):
        asked = _object(value, where, ["table"], ["query", "question"])
        name = "query" if "query" in asked else "question"
        if name not in asked or len(asked) > 2:
            raise RefusedError("missing", 'expected "query" or "question"', where)
        table = _table(asked["table"], f"{where}.table", limits)
        pairs.append((table, _question(asked[name], f"{where}.{name}", limits)))

    def reply(answers: list[Answer]) -> Any:
        told = [
            {
                "answer": answer.text,
                "coordinates": [list(pair) for pair in answer.coordinates],
                "cells": [cell.text for cell in answer.cells],
                "aggregator": answer.aggregation,
                "score": answer.score,
            }
            for answer in answers
        ]
        return told if isinstance(given, list) else told[0]

    return Request(pairs, places, *_options(document, "", limits), reply)


def _parameters(document: dict[str, Any], known: Sequence[str]) -> dict[str, Any]:
    given = document.get("parameters")
    return {} if given is None else _object(given, "parameters", [], known)


def _options(values: Any, place: str, limits: Limits) -> tuple[int | None, float | None]:
    alternatives, min_score = (_number(values.get(name), f"{place}{name}") for name in OPTIONS)
    if alternatives is not None:
        _check_whole(alternatives, limits.max_alternatives, f"{place}alternatives")
    if min_score is not None and not 0 <= min_score <= 1:
        raise RefusedError("wrong_value", "expected a number from 0 to 1", f"{place}min_score")
    return None if alternatives is None else int(alternatives), min_score


def _number(value: Any, where: str) -> float | None:
    return None if value is None else float(_of_type(Number, value, where))


def _check_whole(number: float | None, most: int, where: str) -> None:
    if number is None or not (number.is_integer() and 0 <= number <= most):
        raise RefusedError("wrong_value", f"expected a whole number from 0 to {most}", where)


def _question(text: Any, where: str, limits: Limits) -> Question:
    if not _of_type(str, text, where).strip():
        raise RefusedError("empty", "expected a question, got an empty one", where)
    _check_length(text, limits.max_question_characters, where)
    return Question(text)


def _follow_up(
    table: Table, question: Question, value: Any, where: str, limits: Limits
) -> Question:
    """The question with the answer before it: one of ours, or just its cells and items."""
    _of_type(dict, value, where)
    is_sure = value.get("answered") is not False and value.get("confidence") != "not sure"
    if (others := value.get("alternatives")) and value.get("answered") is False:
        where = f"{where}.alternatives"  # which begin with the guess
        value = _of_type(dict, _of_type(list, others, where)[0], where)
    cells, items = (
        _of_type(list, value.get(name, []), f"{where}.{name}") for name in ("cells", "items")
    )
    _check_cells(items, f"{where}.items", limits)
    coordinates = []
    for index, cell in enumerate(cells):
        place = f"{where}.cells[{index}]"
        _of_type(dict, cell, place)
        for name, size in (("row", table.num_rows), ("column", table.num_columns)):
            _check_whole(_number(cell.get(name), f"{place}.{name}"), size - 1, f"{place}.{name}")
        coordinates.append((int(float(cell["row"])), int(float(cell["column"]))))
    return FollowUp(
        question.text,
        previous_coordinates=tuple(coordinates),
        previous_answers=tuple(map(str, items)),
        is_sure=is_sure,
    )


def _table(value: Any, where: str, limits: Limits) -> Table:
    """A table: {"header", "rows"}, {column: cells}, or CSV text."""
    if type(value) is str:
        return _csv_table(value, where, limits)
    _of_type(dict, value, where, "an object or CSV text")
    if not _is_of_rows(value):
        return _table_of_columns(value, where, limits)
    table = _object(value, where, ["header", "rows"])
    header = _list(table["header"], f"{where}.header")
    rows = _list(table["rows"], f"{where}.rows")
    _check_table(len(header), len(rows), where, limits)
    _check_cells(header, f"{where}.header", limits)
    for index, row in enumerate(rows):
        place = f"{where}.rows[{index}]"
        if type(row) is not list:
            expected = "a list of cells, as columns named header and rows alone cannot come by name"
            raise _wrong_type(expected, row, place)
        if len(_list(row, place)) != len(header):
            message = f"expected {len(header)} cells as in the header, got {len(row)}"
            raise RefusedError("ragged", message, place)
        _check_cells(row, place, limits)
    return Table.from_rows(rows, header=header)


def _is_of_rows(value: dict[str, Any]) -> bool:
    """Whether a table is {"header", "rows"}; columns may have these names beside others."""
    rows = value.get("rows")
    has_lists = type(rows) is list and any(type(row) is list for row in rows)
    return has_lists or value.keys() <= {"header", "rows"}


def _table_of_columns(columns: dict[str, Any], where: str, limits: Limits) -> Table:
    _check_cells(list(columns), where, limits)
    lengths = [len(_list(cells, f"{where}.{name:.80}")) for name, cells in columns.items()]
    _check_table(len(columns), lengths[0], where, limits)
    for name, cells in columns.items():
        if len(cells) != lengths[0]:
            message = f"expected {lengths[0]} cells as in the first column, got {len(cells)}"
            raise RefusedError("ragged", message, f"{where}.{name:.80}")
        _check_cells(cells, f"{where}.{name:.80}", limits)
    return Table.from_rows(zip(*columns.values(), strict=True), header=list(columns))


def _csv_table(text: str, where: str, limits: Limits) -> Table:
    try:
        found = read_delimited_rows(text, "table")
        sizes = [len(row) for row in found.rows]
        _check_table(max(sizes, default=0), len(sizes), where, limits)
        table = lay_out(found)
    except RefusedError:
        raise
    except ValueError as error:
        raise RefusedError("not_csv", str(error), where) from None
    for index, row in enumerate((table.header, *table.rows)):
        _check_cells(row, f"{where}, row {index}", limits)
    return table


def _table_of_text(text: Any, where: str, limits: Limits) -> Table:
    if _of_type(str, text, where).lstrip()[:1] == "{":
        try:
            return _table(read_document(text.encode(), limits, "identity"), where, limits)
        except RefusedError as refused:
            refused.where = refused.where or where
            raise
    return _csv_table(text, where, limits)


def _check_table(num_columns: int, num_rows: int, where: str, limits: Limits) -> None:
    _check_size(num_columns, _MOST_COLUMNS, "columns", where)
    _check_size(num_rows * num_columns, limits.max_cells, "cells", where)


def _check_cells(cells: Iterable[Any], where: str, limits: Limits) -> None:
    for index, cell in enumerate(cells):
        if isinstance(cell, str) and len(cell) > limits.max_cell_characters:
            _check_length(cell, limits.max_cell_characters, f"{where}[{index}]")
        if isinstance(cell, dict | list):
            expected = "a text, a number, a truth value or null"
            raise _wrong_type(expected, cell, f"{where}[{index}]")


def _object(
    value: Any, where: str, keys: Sequence[str], others: Sequence[str] = ()
) -> dict[str, Any]:
    """The value, if it is an object with all of the keys and perhaps some of the others."""
    _of_type(dict, value, where)
    for key in keys:
        if key not in value:
            raise RefusedError("missing", f'expected "{key}", which is missing', where)
    known = (*keys, *others)
    if unknown := [key for key in value if key not in known]:
        message = f"expected only {', '.join(known)}, got {unknown[0]!r:.80}"
        raise RefusedError("unknown_key", message, where)
    return value


def _nullable(kind: type, value: Any, where: str) -> Any:
    """The value, if it is of just this type or null."""
    return None if value is None else _of_type(kind, value, where)


def _list(value: Any, where: str) -> list[Any]:
    """The value, if it is a list of at least one."""
    if not _of_type(list, value, where):
        raise RefusedError("empty", "expected at least 1 element, got 0", where)
    return value


def _of_type(kind: type, value: Any, where: str, expected: str = "") -> Any:
    """The value, if it is of just this type."""
    if type(value) is not kind:
        raise _wrong_type(expected or _NAMES[kind], value, where)
    return value


def _wrong_type(expected: str, value: Any, where: str) -> RefusedError:
    return RefusedError("wrong_type", f"expected {expected}, got {_NAMES[type(value)]}", where)


def _check_size(size: int, most: int, unit: str, where: str) -> None:
    if size > most:
        message = f"expected at most {most} {unit}, got {size}"
        raise RefusedError(f"too_many_{unit}", message, where, 413)


def _check_length(text: str, most: int, where: str) -> None:
    if len(text) > most:
        message = f"expected at most {most} characters, got {len(text)}"
        raise RefusedError("too_long", message, where, 413)
