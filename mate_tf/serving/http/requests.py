"""Reads tables and questions from the body of a request, or says why not, and shapes the reply."""

import dataclasses
import itertools
import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from pydantic import TypeAdapter

from mate_tf.answers.answer import Answer, apply_min_score
from mate_tf.reading.files import kind_of_text
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
    asked = _asked(request.instances, "instances", True, limits)

    def reply(answers: list[Answer]) -> Any:
        return {"predictions": asked.gather(answer.to_dict() for answer in answers)}

    return Request(asked.pairs, asked.locations, request, reply)


class _Asked(NamedTuple):
    """The questions of the parts of a request, and how many each has; None for one alone."""

    pairs: list[tuple[Table, Question]]
    locations: list[str]
    sizes: list[int | None]

    def gather(self, values: Iterator[Any]) -> list[Any]:
        """The values of the parts, a list for each that has a list of questions."""
        return [next(values) if n is None else [*itertools.islice(values, n)] for n in self.sizes]


def _asked(
    parts: Sequence[schema.Question | schema.Query], where: str, is_list: bool, limits: Limits
) -> _Asked:
    """The questions of parts at a place; RefusedError if there are too many."""
    sizes = [None if isinstance(one.texts, str) else len(one.texts) for one in parts]
    _check_number(sum(size or 1 for size in sizes), where, limits)
    asked = _Asked([], [], sizes)
    for index, one in enumerate(parts):
        table: Any = one.table  # which validation has read
        place = f"{where}[{index}]" if is_list else where
        texts = [one.texts] if isinstance(one.texts, str) else one.texts
        for number, text in enumerate(texts):
            end = "" if sizes[index] is None else f".{one.name_of_texts}[{number}]"
            asked.pairs.append((table, one.asked(text)))
            asked.locations.append(f"{place}{end}")
    return asked


def _read_pipeline(request: schema.PipelineRequest, limits: Limits) -> Request:
    inputs = request.inputs
    queries = inputs if isinstance(inputs, list) else [inputs]
    asked = _asked(queries, "inputs", queries is inputs, limits)

    def reply(answers: list[Answer]) -> Any:
        values = asked.gather(
            {
                "answer": answer.text,
                "coordinates": [list(pair) for pair in answer.coordinates],
                "cells": [cell.text for cell in answer.cells],
                "aggregator": answer.aggregation,
                "score": answer.score,
            }
            for answer in answers
        )
        return values if queries is inputs else values[0]

    return Request(asked.pairs, asked.locations, request, reply)


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
    """The table of a text: JSON, CSV or another kind."""
    is_json = kind_of_text(text) == "json"
    return validated(_TABLE, read_json(text.encode(), where) if is_json else text, limits, where)
