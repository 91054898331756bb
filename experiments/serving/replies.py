"""What a client is told of an answer."""

import dataclasses
from typing import Any

from mate_tf.tasks.answers import Answer


def prediction(answer: Answer) -> dict[str, Any]:
    """The answer as JSON holds it: its attributes, with its text as "answer"."""
    fields = {field.name: getattr(answer, field.name) for field in dataclasses.fields(answer)}
    text = fields.pop("text")
    return {
        "answer": text,
        **fields,
        "cells": [dataclasses.asdict(cell) for cell in answer.cells],
        "alternatives": [prediction(other) for other in answer.alternatives],
    }
