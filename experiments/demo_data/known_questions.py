"""Chooses the questions that training mixes in, so that the package's model keeps what it knows.

    python -m experiments.demo_data.known_questions

They are of experiments/demo_data/people/train.jsonl: two about every other table, rarer kinds
first, with the operators that the model has. It writes
mate_tf/default_model/known_questions.jsonl.gz, the same bytes each time.
"""

import gzip
import itertools
import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

from absl import app

from experiments.demo_data.people import questions
from mate_tf.tables.operators import OPERATORS
from mate_tf.weights.folder import KNOWN_QUESTIONS

# How many of a kind belong to a thousand; those that compare, or go along a row, are one kind.
_WANTED = dict(NONE=370, COUNT=110, ABSENT=110, YES=60, NO=60, SUM=45, HEADER=45, SHARE=30)
_WANTED |= dict(DIFFERENCE=35, AVERAGE=30, DISTINCT=25, along_row=45)
_COMPARING = 35


def chosen() -> Iterator[dict[str, Any]]:
    """Yields the questions; of each table those whose kinds are the rarest so far."""
    so_far = Counter[str]()

    def kind(question: dict[str, Any]) -> str:
        name = question["aggregation"]
        if name in _WANTED:
            return name
        return "along_row" if OPERATORS[name].along_row else "compared"

    def share(question: dict[str, Any]) -> float:
        return so_far[kind(question)] / _WANTED.get(kind(question), _COMPARING)

    tables = itertools.groupby(questions("train"), key=lambda question: question["table"]["id"])
    config = json.loads((KNOWN_QUESTIONS.parent / "config.json").read_text())
    operators = config["task"]["operators"]
    for _, about_table in itertools.islice(tables, 0, None, 2):
        left = [question for question in about_table if question["aggregation"] in operators]
        for _ in range(min(2, len(left))):
            question = min(left, key=share)
            left.remove(question)
            so_far[kind(question)] += 1
            yield question


def main(_: list[str]) -> None:
    lines = "".join(json.dumps(question, ensure_ascii=False) + "\n" for question in chosen())
    KNOWN_QUESTIONS.write_bytes(gzip.compress(lines.encode(), mtime=0))


if __name__ == "__main__":
    app.run(main)
