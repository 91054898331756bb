"""The demo's questions are right: every answer is recomputed from its table."""

import csv
import fractions
import gzip
import json
import pathlib
import shlex
from typing import Any

import pytest

from experiments.demo_data.known_questions import chosen
from experiments.demo_data.people import PARTS, questions
from mate_tf.datasets.tasks import read_split
from mate_tf.pointr.pipeline import answer_location
from mate_tf.weights.folder import KNOWN_QUESTIONS

DATA = pathlib.Path(__file__).resolve().parents[2] / "experiments" / "demo_data"


QUESTIONS = {
    split: [*map(json.loads, (DATA / f"{split}.jsonl").read_text(encoding="utf-8").splitlines())]
    for split in ("train", "dev")
}
ALL_QUESTIONS = QUESTIONS["train"] + QUESTIONS["dev"]


def test_answers_follow_from_their_cells() -> None:
    for question in ALL_QUESTIONS:
        text = (DATA / question["table"]).read_text(encoding="utf-8")
        _, *rows = csv.reader(text.splitlines(keepends=True))
        coordinates = [tuple(pair) for pair in question["answer_coordinates"]]
        assert coordinates and len(set(coordinates)) == len(coordinates)
        assert all(row >= 0 and column >= 0 for row, column in coordinates)
        texts = [rows[row][column] for row, column in coordinates]
        if question["aggregation"] == "NONE":
            assert question["answers"] == texts and all(texts), question["id"]
            continue
        expected = fractions.Fraction(len(texts))
        if question["aggregation"] != "COUNT":
            expected = sum(map(fractions.Fraction, texts), fractions.Fraction())
            expected /= {"SUM": 1, "AVERAGE": len(texts)}[question["aggregation"]]
        answers = [fractions.Fraction(text) for text in question["answers"]]
        assert answers == [expected], question["id"]
        assert fractions.Fraction(question["answer_number"]) == expected


def test_questions_and_ids_are_distinct_and_test_is_unseen() -> None:
    assert len({question["id"] for question in ALL_QUESTIONS}) == len(ALL_QUESTIONS)
    asked = [(question["table"], question["question"]) for question in ALL_QUESTIONS]
    assert len(set(asked)) == len(asked)

    def target(question: dict[str, Any]) -> str:
        return json.dumps([question[k] for k in ("table", "aggregation", "answer_coordinates")])

    seen = {target(question) for question in QUESTIONS["train"]}
    assert not [question["id"] for question in QUESTIONS["dev"] if target(question) in seen]


def test_what_people_ask_is_answered_by_the_table_and_no_table_is_in_two_parts() -> None:
    ids = {part: {question["table"]["id"] for question in questions(part)} for part in PARTS}
    assert sum(map(len, ids.values())) == len(set.union(*ids.values())) == 3211
    for question in (question for part in PARTS for question in questions(part)):
        rows = question["table"]["rows"]
        texts = [rows[row][column] for row, column in question.get("answer_coordinates", ())]
        if question["aggregation"] == "ABSENT":
            assert "answers" not in question
        elif question["aggregation"] == "NONE":
            assert question["answers"] == texts and all(texts), question["id"]
        elif question["aggregation"] in ("COUNT", "DISTINCT"):
            if question["aggregation"] == "DISTINCT":
                texts = sorted({text.strip().lower() for text in texts})
            assert question["answers"] == [str(len(texts))]
            assert question["answer_number"] == len(texts)
        elif question["aggregation"] == "HEADER":
            header = question["table"]["header"]
            columns = [column for _, column in question["answer_coordinates"]]
            assert question["answers"] == [header[column] for column in columns], question["id"]
        elif question["aggregation"] in ("YES", "NO"):
            assert question["answers"] == [question["aggregation"].lower()]
            assert texts or question["aggregation"] == "NO", question["id"]
        else:
            assert len(question["answers"]) == 1 and texts, question["id"]


def test_the_known_questions_are_those_that_are_chosen_of_what_people_ask() -> None:
    lines = gzip.decompress(KNOWN_QUESTIONS.read_bytes()).decode().splitlines()
    assert [json.loads(line) for line in lines] == list(chosen())
    assert KNOWN_QUESTIONS.stat().st_size <= 300_000


@pytest.mark.parametrize("trade", ["dyeing", "lace", "walling"])
def test_a_trades_answers_follow_from_its_queries(trade: str) -> None:
    """A query: cell ROW COLUMN; most or least COLUMN [COLUMN]; count COLUMN VALUE; sum COLUMN."""
    folder = DATA / "trades" / trade
    queries = json.loads((folder / "queries.json").read_text())
    for part, number in (("train", 45), ("kept", 15)):
        lines = (folder / f"{part}.jsonl").read_text().splitlines()
        assert len(lines) == number
        for question in map(json.loads, lines):
            rows = [*csv.DictReader((folder / question["table"]).read_text().splitlines())]
            kind, *names = shlex.split(queries.pop(question["id"]))
            key = next(iter(rows[0]))
            if kind == "cell":
                found = [row[names[1]] for row in rows if row[key] == names[0]]
            elif kind == "count":
                found = [str(sum(row[names[0]] == names[1] for row in rows))]
            elif kind == "sum":
                found = [f"{sum(float(row[names[0]]) for row in rows):g}"]
            else:
                ordered = sorted(rows, key=lambda row: number_or_text(row[names[0]]))
                row = ordered[-1 if kind == "most" else 0]
                found = [row[names[1] if names[1:] else key]]
            assert question["answers"] == found, question["id"]
    assert not queries


def number_or_text(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:  # a date, year first
        return text


@pytest.mark.parametrize(("split", "number"), [("train", 12), ("dev", 4), ("test", 4)])
def test_the_linked_questions_are_answered_by_a_cell_or_a_passage(split, number):
    pairs = list(read_split("LINKED_JSONL", str(DATA / "linked"), split))
    assert len(pairs) == number
    for linked, question in pairs:
        where = answer_location(linked, question)
        assert where in ("in table", "in passage"), question.text
