"""An answer as a JSON object for programs; docs/command_line.md says what its keys mean."""

from typing import Any

from mate_tf.tasks.answers import Answer


def answer_record(answer: Answer) -> dict[str, Any]:
    """What programs are told of an answer, by the command and by the server."""
    return {
        "answered": answer.answered,
        **_record(answer),
        "rows_dropped": answer.rows_dropped,
        "alternatives": [_record(other) for other in answer.alternatives],
    }


def _record(answer: Answer) -> dict[str, Any]:
    return {
        "answer": answer.text,
        "items": list(answer.items),
        "cells": [
            {"row": cell.row, "column": cell.column, "text": cell.text, "score": cell.score}
            for cell in answer.cells
        ],
        "aggregation": answer.aggregation,
        "value": answer.value,
        "number": answer.number,
        "class_index": answer.class_index,
        "score": answer.score,
    }
