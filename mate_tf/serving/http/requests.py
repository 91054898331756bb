"""Reads tables and questions from the body of a request, or says why not, and shapes the reply."""

import dataclasses
import itertools
import json
from collections.abc import Callable
from typing import Any, NamedTuple

from pydantic import TypeAdapter

from mate_tf.answers.answer import Answer, apply_min_score
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
    locations: list[str]  # of each pair in the request
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
    pairs: list[Any] = []
    locations: list[str] = []
    sizes = [len(one.questions) if one.questions else None for one in request.instances]
    _check_number(sum(size or 1 for size in sizes), "instances", limits)
    for index, one in enumerate(request.instances):
        for number, text in enumerate(one.questions or [one.question or ""]):
            pairs.append((one.table, one.asked(text)))
            end = f".questions[{number}]" if one.questions else ""
            locations.append(f"instances[{index}]{end}")

    def reply(answers: list[Answer]) -> Any:
        values = (answer.to_dict() for answer in answers)
        lists = [next(values) if n is None else [*itertools.islice(values, n)] for n in sizes]
        return {"predictions": lists}

    return Request(pairs, locations, request, reply)


def _read_pipeline(request: schema.PipelineRequest, limits: Limits) -> Request:
    inputs = request.inputs
    queries = inputs if isinstance(inputs, list) else [inputs]
    _check_number(len(queries), "inputs", limits)
    locations = [f"inputs[{i}]" for i in range(len(queries))] if queries is inputs else ["inputs"]
    pairs: list[Any] = [(one.table, Question(one.query or one.question or "")) for one in queries]

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

    return Request(pairs, locations, request, reply)


def read_tensors(body: Body, limits: Limits, model_name: str) -> Request:
    """A request in KServe's V2 protocol: the tensors `question` and `table`.

    A table is JSON or CSV text, and one serves for all questions. The reply has the outputs that
    are named, or all. Errors are as of `read_request`.
    """
    request = validated(_INFER, body.read(limits), limits)
    data = {tensor.name: tensor.data for tensor in request.inputs}
    _check_number(len(data["question"]), "inputs", limits)
    locations = [f"question[{index}]" for index in range(len(data["question"]))]
    questions = [
        Question(validated(_TEXT, text, limits, where))
        for text, where in zip(data["question"], locations, strict=True)
    ]
    tables = [
        _read_table(text, f"table[{index}]", limits) for index, text in enumerate(data["table"])
    ]
    pairs = [*zip(tables * (len(questions) // len(tables)), questions, strict=True)]
    names: list[str] = list(dict.fromkeys(one.name for one in request.outputs or ()))

    def reply(answers: list[Answer]) -> Any:
        rows = [(one.text, one.score, json.dumps(one.to_dict())) for one in answers]
        values = dict(zip(OUTPUTS, zip(*rows, strict=True), strict=True))
        outputs = [
            {"name": name, "shape": [len(rows)], "datatype": OUTPUTS[name], "data": values[name]}
            for name in names or OUTPUTS
        ]
        ids = {"model_name": model_name, "model_version": MODEL_VERSION, "id": request.id or ""}
        return ids | {"outputs": outputs}

    return Request(pairs, locations, request.parameters or schema.Options(), reply)


def _check_number(number: int, where: str, limits: Limits) -> None:
    if number > limits.max_questions:
        message = f"expected at most {limits.max_questions} questions, got {number}"
        raise RefusedError("too_many_questions", message, where)


def _read_table(text: str, where: str, limits: Limits) -> Table:
    """The table of a text: JSON or CSV."""
    is_json = text.lstrip()[:1] == "{"
    return validated(_TABLE, read_json(text.encode(), where) if is_json else text, limits, where)
