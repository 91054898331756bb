"""The original's interactions, as its JSON holds them, as tables and questions."""

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from mate_tf.tables.numeric import Date, NumericValue
from mate_tf.tables.table import Question, Table


def load(path: Path) -> Any:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return json.load(file)


def to_table(table: dict[str, Any]) -> Table:
    return Table(
        header=tuple(column.get("text", "") for column in table["columns"]),
        rows=tuple(tuple(cell.get("text", "") for cell in row["cells"]) for row in table["rows"]),
        table_id=table.get("table_id", ""),
        document_title=table.get("document_title", ""),
        context_heading=table.get("context_heading", ""),
    )


def coordinates(question: dict[str, Any]) -> tuple[tuple[int, int], ...]:
    return tuple(
        (pair.get("row_index", 0), pair.get("column_index", 0))
        for pair in question.get("answer", {}).get("answer_coordinates", ())
    )


def to_question(questions: list[dict[str, Any]], index: int) -> Question:
    question = questions[index]
    answer = question.get("answer", {})
    return Question(
        text=question.get("text") or question.get("original_text", ""),
        question_id=question["id"],
        answers=tuple(answer.get("answer_texts", ())),
        answer_coordinates=coordinates(question),
        answer_number=answer.get("float_value"),
        aggregation=answer.get("aggregation_function", "NONE"),
        previous_coordinates=coordinates(questions[index - 1]) if index else (),
        class_index=answer.get("class_index", 0),
    )


def values(feature: dict[str, Any]) -> np.ndarray:
    if feature["kind"] == "bytes_list":
        return np.array([text.encode() for text in feature["values"]], object)
    numbers = [np.nan if value is None else value for value in feature["values"]]
    return np.array(numbers, np.float32 if feature["kind"] == "float_list" else np.int64)


def compare_examples(golden, name: str, actual: list[dict], expected: list[dict]) -> None:
    """Compares examples, all of a feature together."""
    assert len(actual) == len(expected)
    for feature in expected[0] if expected else ():
        got = [example[feature] for example in actual]
        want = [values(example[feature]) for example in expected]
        if want[0].dtype == object:
            assert np.array_equal(got, want), f"{name} {feature}"
        else:
            golden.compare("data", f"{name} {feature}", got, want, 0.0)


def value(value: dict[str, Any]) -> NumericValue:
    if "date" in value:
        return Date(*(value["date"].get(field) for field in Date._fields))
    return float(np.float32(value["float_value"]))


def paired(examples: list[dict], interactions: list[dict]) -> Iterator[tuple[dict, dict]]:
    """Each example with its interaction; both are in one order, in which an id may come twice.

    The empty example, with which the original fills up a batch, has no interaction.
    """
    following = (
        (interaction, index)
        for interaction in interactions
        for index in range(len(interaction["questions"]))
    )
    for example in examples:
        for interaction, index in following:
            if (interaction["id"], index) == (example["interaction_id"], example["index"]):
                yield example, interaction
                break
