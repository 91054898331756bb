"""The demo's questions are right: every answer is recomputed from its table."""

import csv
import fractions
import json
import pathlib
import re
from typing import Any

import pytest

DATA = pathlib.Path(__file__).resolve().parents[2] / "experiments" / "demo_data"
FIELDS = {"id", "table", "question", "answers", "answer_coordinates", "aggregation"}
AGGREGATIONS = {"NONE", "SUM", "AVERAGE", "COUNT"}


def read_table(name: str) -> tuple[list[str], list[list[str]]]:
    with open(DATA / name, encoding="utf-8", newline="") as file:
        header, *rows = csv.reader(file)
    return header, rows


QUESTIONS = {
    split: [*map(json.loads, (DATA / f"{split}.jsonl").read_text(encoding="utf-8").splitlines())]
    for split in ("train", "dev")
}
ALL_QUESTIONS = QUESTIONS["train"] + QUESTIONS["dev"]
# The column that names a table's rows, where it is not the first.
KEYS = {"elements.csv": "Name", "mountains.csv": "Mountain"}


@pytest.mark.parametrize("question", ALL_QUESTIONS, ids=lambda question: question["id"])
def test_answer_follows_from_its_cells(question: dict[str, Any]) -> None:
    _, rows = read_table(question["table"])
    coordinates = [tuple(pair) for pair in question["answer_coordinates"]]
    texts = [rows[row][column] for row, column in coordinates]
    assert texts and len(set(coordinates)) == len(coordinates)
    assert len({column for _, column in coordinates}) == 1
    assert all(row >= 0 and column >= 0 for row, column in coordinates)

    aggregation = question["aggregation"]
    assert aggregation in AGGREGATIONS
    if aggregation == "NONE":
        assert set(question) == FIELDS
        assert question["answers"] == texts and all(texts)
        return
    assert set(question) == FIELDS | {"answer_number"}
    if aggregation == "COUNT":
        expected = fractions.Fraction(len(texts))
    else:
        expected = sum(map(fractions.Fraction, texts), fractions.Fraction())
        expected /= len(texts) if aggregation == "AVERAGE" else 1
    assert [fractions.Fraction(text) for text in question["answers"]] == [expected]
    assert fractions.Fraction(question["answer_number"]) == expected


@pytest.mark.parametrize("question", ALL_QUESTIONS, ids=lambda question: question["id"])
def test_cells_are_those_that_the_question_asks_for(question: dict[str, Any]) -> None:
    header, rows = read_table(question["table"])
    text = question["question"].lower()
    chosen = {row for row, _ in question["answer_coordinates"]}
    [column] = {column for _, column in question["answer_coordinates"]}
    if text.startswith("what is"):
        asked = re.fullmatch(r"what is the (?:(sum|average) of the )?(.+)\?", text)
        assert asked is not None and asked[2].startswith(f"{header[column].lower()} of ")
        assert {"sum": "SUM", "average": "AVERAGE", None: "NONE"}[asked[1]] == (
            question["aggregation"]
        )
        key = header.index(KEYS.get(question["table"], header[0]))
        named = (rf"\b{re.escape(row[key].lower())}\b" for row in rows)
        is_named = [" of all " in text or re.search(name, text) is not None for name in named]
        assert chosen == {i for i, is_asked in enumerate(is_named) if is_asked}
        return
    condition_column, value = condition(text, header)
    assert chosen == {i for i, row in enumerate(rows) if row[condition_column].lower() == value}
    if text.startswith("how many"):
        assert question["aggregation"] == "COUNT" and column == condition_column
    else:
        assert question["aggregation"] == "NONE" and column != condition_column
        assert text.startswith("which")
        assert (len(chosen) == 1) == (" has " in text)


def condition(question: str, header: list[str]) -> tuple[int, str]:
    """The column and the value that a "which" or "how many" question names."""
    for index, name in enumerate(header):
        if found := re.search(rf" ha(?:s|ve) the {name.lower()} (.+)\?$", question):
            return index, found[1]
        if question.endswith(f" have no {name.lower()}?"):
            return index, "no"
        if question.endswith(f" have {name.lower()}?"):
            return index, "yes"
    raise AssertionError(f"no column of {header} in {question!r}")


def test_long_table_exceeds_2048_tokens_in_any_vocabulary() -> None:
    header, rows = read_table("elements.csv")
    assert len(rows) == 118 and [row[0] for row in rows] == [str(n) for n in range(1, 119)]
    words = re.compile(r"\w+|[^\w\s]")  # a wordpiece tokenizer never joins these
    assert sum(max(1, len(words.findall(cell))) for row in [header, *rows] for cell in row) > 2048


def test_questions_and_ids_are_distinct_and_test_is_unseen() -> None:
    assert len({question["id"] for question in ALL_QUESTIONS}) == len(ALL_QUESTIONS)
    asked = [(question["table"], question["question"]) for question in ALL_QUESTIONS]
    assert len(set(asked)) == len(asked)

    def target(question: dict[str, Any]) -> str:
        return json.dumps([question[k] for k in ("table", "aggregation", "answer_coordinates")])

    seen = {target(question) for question in QUESTIONS["train"]}
    assert not [question["id"] for question in QUESTIONS["dev"] if target(question) in seen]
