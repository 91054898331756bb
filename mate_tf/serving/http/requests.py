"""Reads tables and questions from the body of a request, or says why not, and shapes the reply."""

import dataclasses
import itertools
import json
from collections.abc import Callable
from typing import Any, NamedTuple

from pydantic import TypeAdapter

from mate_tf.answers.answer import Answer, apply_min_score
from mate_tf.answers.follow_ups import FollowUp
from mate_tf.reading.delimited import read_delimited_rows
from mate_tf.reading.layout import lay_out
from mate_tf.serving.http import Limits, RefusedError, schema
from mate_tf.serving.http.body import Body, read_json
from mate_tf.serving.http.schema import OUTPUTS, validated
from mate_tf.tables.table import Question, Table

MODEL_VERSION = "1"  # a server has one model
_PREDICT = TypeAdapter(schema.PredictRequest)
_PIPELINE = TypeAdapter(schema.PipelineRequest)
_INFER = TypeAdapter(schema.InferRequest)
_TABLE: TypeAdapter[Any] = TypeAdapter(schema.AnyTable)
_TEXT: TypeAdapter[str] = TypeAdapter(schema.QuestionText)


class Request(NamedTuple):
    """A request, read."""

    pairs: list[tuple[Table, Question]]
    places: list[str]  # of each pair in the request
    options: schema.Options
    reply: Callable[[list[Answer]], Any]  # makes the body of the reply, for JSON

    def finished(self, answer: Answer, alternatives: int, min_score: float) -> Answer:
        """An answer with as many alternatives, and if it is good enough; with the defaults."""
        asked, least = self.options.alternatives, self.options.min_score
        others = answer.alternatives[: alternatives if asked is None else asked]
        answer = dataclasses.replace(answer, alternatives=others)
        return apply_min_score(answer, min_score if least is None else least)


def read_request(body: Body, limits: Limits, model_name: str = "") -> Request:
    """A request in KServe's V1 protocol, or in the form of Hugging Face's pipelines.

    Raises:
        RefusedError: with status 400 for anything else, with 413 for what is beyond a limit.
    """
    document = body.read(limits)
    if isinstance(document, dict) and "inputs" in document:
        return _read_pipeline(validated(_PIPELINE, document, limits), limits)
    request = validated(_PREDICT, document, limits)
    sizes = [len(one.questions) if one.questions else None for one in request.instances]
    _check_number(sum(size or 1 for size in sizes), "instances", limits)
    pairs: list[tuple[Table, Question]] = []
    places: list[str] = []
    for index, one in enumerate(request.instances):
        where = f"instances[{index}]"
        table = _read_table(one.table, f"{where}.table", limits)
        for number, text in enumerate(one.questions or [one.question or ""]):
            pairs.append((table, _question(table, text, one.previous, f"{where}.previous")))
            places.append(f"{where}.questions[{number}]" if one.questions else where)

    def reply(answers: list[Answer]) -> Any:
        values = (answer.to_dict() for answer in answers)
        lists = [next(values) if n is None else [*itertools.islice(values, n)] for n in sizes]
        return {"predictions": lists}

    return Request(pairs, places, request, reply)


def _read_pipeline(request: schema.PipelineRequest, limits: Limits) -> Request:
    inputs = request.inputs
    queries = inputs if isinstance(inputs, list) else [inputs]
    _check_number(len(queries), "inputs", limits)
    places = [f"inputs[{i}]" for i in range(len(queries))] if queries is inputs else ["inputs"]
    pairs = [
        (
            _read_table(one.table, f"{where}.table", limits),
            Question(one.query or one.question or ""),
        )
        for one, where in zip(queries, places, strict=True)
    ]

    def reply(answers: list[Answer]) -> Any:
        values = [
            {
                "answer": answer.text,
                "coordinates": [list(pair) for pair in answer.coordinates],
                "cells": [cell.text for cell in answer.cells],
                "aggregator": answer.aggregation,
                "score": answer.score,
            }
            for answer in answers
        ]
        return values if queries is inputs else values[0]

    return Request(pairs, places, request, reply)


def read_tensors(body: Body, limits: Limits, model_name: str) -> Request:
    """A request in KServe's V2 protocol: the tensors `question` and `table`.

    A table is JSON or CSV text, and one serves for all questions. The reply has the outputs that
    are named, or all. Errors are as of `read_request`.
    """
    request = validated(_INFER, body.read(limits), limits)
    texts, tables = _tensors(request, limits)
    places = [f"question[{index}]" for index in range(len(texts))]
    read = [_read_text(text, f"table[{index}]", limits) for index, text in enumerate(tables)]
    pairs = [
        (table, Question(validated(_TEXT, text, limits, where)))
        for table, text, where in zip(read * (len(texts) // len(read)), texts, places, strict=True)
    ]
    names: list[str] = list(dict.fromkeys(one.name for one in request.outputs or ()))

    def reply(answers: list[Answer]) -> Any:
        rows = [(one.text, one.score, json.dumps(one.to_dict())) for one in answers]
        data = dict(zip(OUTPUTS, zip(*rows, strict=True), strict=True))
        outputs = [
            {"name": name, "shape": [len(rows)], "datatype": OUTPUTS[name], "data": data[name]}
            for name in names or OUTPUTS
        ]
        ids = {"model_name": model_name, "model_version": MODEL_VERSION, "id": request.id or ""}
        return ids | {"outputs": outputs}

    return Request(pairs, places, request.parameters or schema.Options(), reply)


def _tensors(request: schema.InferRequest, limits: Limits) -> tuple[list[str], list[str]]:
    """The texts of the questions and of the tables."""
    data: dict[str, list[str]] = {}
    for index, tensor in enumerate(request.inputs):
        where = f"inputs[{index}]"
        if tensor.name in data:
            message = f"expected question and table once, got {tensor.name!r} twice"
            raise RefusedError("wrong_input", message, where)
        if tensor.shape != [len(tensor.data)]:
            message = f"expected the shape [{len(tensor.data)}] for {tensor.name}"
            raise RefusedError("wrong_type", message, where)
        data[tensor.name] = tensor.data
    if missing := {"question", "table"} - data.keys():
        raise RefusedError("missing", f"expected the input {missing.pop()!r}", "inputs")
    num_questions, num_tables = len(data["question"]), len(data["table"])
    _check_number(num_questions, "inputs", limits)
    if num_tables not in (1, num_questions):
        message = f"expected 1 table or {num_questions}, got {num_tables}"
        raise RefusedError("ragged", message, "inputs")
    return data["question"], data["table"]


def _check_number(number: int, where: str, limits: Limits) -> None:
    if number > limits.max_questions:
        message = f"expected at most {limits.max_questions} questions, got {number}"
        raise RefusedError("too_many_questions", message, where, 413)


def _read_text(text: str, where: str, limits: Limits) -> Table:
    """The table of a text: JSON or CSV."""
    if text.lstrip()[:1] != "{":
        return _read_table(text, where, limits)
    document = read_json(text.encode(), where)
    return _read_table(validated(_TABLE, document, limits, where), where, limits)


def _read_table(given: Any, where: str, limits: Limits) -> Table:
    """The table of a request: all of them are read here."""
    if isinstance(given, schema.Table):
        return Table.from_rows(given.rows, header=given.header)
    if isinstance(given, dict):
        return Table.from_rows(zip(*given.values(), strict=True), header=list(given))
    try:
        rows = read_delimited_rows(given, "table")
        size = max(map(len, rows.rows), default=0)
        schema.check_size(len(rows.rows), size, limits, where)
        table = lay_out(rows)
        for index, row in enumerate((table.header, *table.rows)):
            for cell in row:
                schema.check_length(cell, limits.max_cell_characters, f"{where}, row {index}")
        return table
    except RefusedError:
        raise
    except ValueError as error:
        raise RefusedError("not_csv", str(error), where) from None


def _question(table: Table, text: str, previous: schema.Previous | None, where: str) -> Question:
    """A question, perhaps after an answer: one of ours, or just its cells and items."""
    if previous is None:
        return Question(text)
    is_sure = previous.answered and previous.confidence != "not sure"
    if previous.alternatives and not previous.answered:  # which begin with the guess
        previous, where = previous.alternatives[0], f"{where}.alternatives[0]"
    for index, cell in enumerate(previous.cells):
        for name, size in (("row", table.num_rows), ("column", table.num_columns)):
            if getattr(cell, name) >= size:
                message = f"expected a whole number from 0 to {size - 1}"
                raise RefusedError("wrong_value", message, f"{where}.cells[{index}].{name}")
    return FollowUp(
        text,
        previous_coordinates=tuple((cell.row, cell.column) for cell in previous.cells),
        previous_answers=tuple(map(str, previous.items)),
        is_sure=is_sure,
    )
