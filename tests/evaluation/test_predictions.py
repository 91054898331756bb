"""Answers in a file and in tables, and the model's own as the history of what is asked next."""

import json

import pytest

from mate_tf.answers.answer import Answer, SelectedCell
from mate_tf.evaluation.predictions import (
    ShownAnswer,
    answer_sequences,
    answers_table,
    confusion_table,
    evaluations_table,
    find_kinds,
    match_predictions,
    read_predictions,
    write_predictions,
)
from mate_tf.tables.table import Question, Table
from tests.small import cases

TABLE = Table(("a",), (("1",),))
CELL = SelectedCell(0, 1, "3 é", 0.5)
ANSWER = Answer(("3 é",), (CELL,), score=0.25, number=3.0, alternatives=(Answer(("x",)),))


def test_what_is_written_is_read_back_in_its_order(tmp_path):
    path = tmp_path / "dev.jsonl"
    written = {
        "q2": ANSWER,
        "\ud800": Answer(("\udfff",)),  # halves of surrogate pairs, which UTF-8 cannot hold
        "q1": Answer.of(ValueError("too long")),
    }
    write_predictions(path, written.items())
    read = read_predictions(path)
    assert list(read.items()) == list(written.items())
    first = path.read_text(encoding="utf-8").splitlines()[0]
    assert "é" in first
    assert json.loads(first) == {"id": "q2"} | ANSWER.to_dict()


def test_a_file_of_the_first_version_is_read(tmp_path):
    other = {"answer": ["a", "b"], "cells": [[0, 0], [2, 1]], "cell_scores": [0.5, 0.75]}
    other |= {"aggregation": "NONE", "value": None, "class_index": None}
    other |= {"score": 0.5, "answered": True}
    line = {"id": "q1", **other, "cells": [[0, 0]], "alternatives": [other], "rows_dropped": 2}
    del line["cell_scores"]  # the very first had none
    (tmp_path / "dev.jsonl").write_text(json.dumps(line))
    answer = read_predictions(tmp_path / "dev.jsonl")["q1"]
    assert (answer.items, answer.coordinates, answer.score) == (("a", "b"), ((0, 0),), 0.5)
    assert answer.rows_dropped == 2
    (alternative,) = answer.alternatives
    assert alternative.coordinates == ((0, 0), (2, 1))
    assert alternative.ranked_cells == ((2, 1), (0, 0))


@cases(
    "line, message",
    ("{", "expected valid JSON"),
    ("[]", "expected answer to be an object, got list"),
    ('{"items": [], "score": 0}', "expected a text as 'id', got None"),
    ('{"id": "q2"}', "expected the keys items, score in answer, which lacks them"),
    (json.dumps({"id": "q1"} | ANSWER.to_dict()), "one prediction a question, .* for 'q1'"),
)
def test_a_line_that_is_no_prediction_is_refused_with_file_and_line(tmp_path, line, message):
    path = tmp_path / "dev.jsonl"
    write_predictions(path, [("q1", ANSWER)])
    with path.open("a") as file:
        file.write(line)
    with pytest.raises(ValueError, match=rf"{message}.*\(file '{path}', line 2\)"):
        read_predictions(path)


def test_no_file_is_left_of_predictions_that_break_off(tmp_path):
    def broken():
        yield "q1", ANSWER
        raise RuntimeError("stopped")

    with pytest.raises(RuntimeError, match="stopped"):
        write_predictions(tmp_path / "dev.jsonl", broken())
    assert not list(tmp_path.iterdir())


def test_predictions_are_matched_in_the_questions_order():
    predicted = {"q2": Answer(("b",)), "q1": Answer(("a",))}
    pairs = [(TABLE, Question("?", "q1")), (TABLE, Question("?", "q2"))]
    matched = match_predictions(predicted, pairs)
    assert [(p.text, q.question_id) for p, _, q in matched] == [("a", "q1"), ("b", "q2")]


@cases(
    "predicted, asked, message",
    (["x", "q1"], ["q1"], "for 1 questions, got 2 in 'file', 1 of them for other.*first 'x'"),
    (["x"], ["q1"], "for 1 questions, got 1 in 'file', 1 of them for other.*first 'x'"),
    (["q1"], ["q1", "q2"], "for 2 questions, got 1 in 'file', and none for 1 .*first 'q2'"),
    ([], ["q1"], "for 1 questions, got 0 in 'file', and none for 1 .*first 'q1'"),
    ([], [], "expected at least 1 question, got 0"),
)
def test_predictions_for_other_questions_are_refused(predicted, asked, message):
    by_id = {id_: Answer() for id_ in predicted}
    pairs = [(TABLE, Question("?", id_)) for id_ in asked]
    with pytest.raises(ValueError, match=message):
        match_predictions(by_id, pairs, "file")


LETTERS = Table(("a", "b"), (("1", "2"), ("3", "4")), "t")
OTHER = Table(("a", "b"), (("1", "2"), ("3", "4")), "other")
GOLD = ((1, 1),)


class Model:
    """Answers each question with the cell that its text names, and keeps what it was asked."""

    def __init__(self):
        self.rounds = []

    def answer_all(self, pairs):
        self.rounds.append([])
        for table, question in pairs:
            self.rounds[-1].append(question)
            yield table, question, self.answer(table, question.text)

    def answer(self, table, text):
        if text == "too long":
            return ValueError("expected at most 4 tokens, got 9")
        if text == "unsure":
            return Answer(score=0.1)
        row, column = map(int, text)
        item = table.rows[row][column]
        return Answer((item,), (SelectedCell(row, column, item, 0.9),), score=0.9)


def asked(*questions, table=LETTERS):
    """Questions by id and text, all with gold history."""
    return [
        (table, Question(text, id_, previous_coordinates=GOLD, previous_answers=("4",)))
        for id_, text in questions
    ]


def histories(pairs):
    """What each question was asked with, by its id."""
    model = Model()
    for _ in answer_sequences(model.answer_all, pairs):
        pass
    questions = [question for round_ in model.rounds for question in round_]
    return {q.question_id: (q.previous_coordinates, q.previous_answers) for q in questions}


@cases(
    "before, history",
    ("10", (((1, 0),), ("3",))),
    *(("too long", ((), ())), ("unsure", ((), ()))),  # after no answer there is none
)
def test_the_history_is_the_predicted_answer_before_and_not_the_gold_one(before, history):
    found = histories(asked(("s-0_0", "01"), ("s-0_1", before), ("s-0_2", "00")))
    assert found == {"s-0_0": ((), ()), "s-0_1": (((0, 1),), ("2",)), "s-0_2": history}


def test_questions_of_one_place_in_their_sequences_are_asked_together():
    model = Model()
    # In no order, with a position left out, and one sequence shorter than the other.
    pairs = asked(("s-0_3", "10"), ("s-1_0", "11"), ("s-0_0", "01"), ("s-0_1", "00"))
    answered = list(answer_sequences(model.answer_all, pairs))
    ids = [[question.question_id for question in round_] for round_ in model.rounds]
    assert ids == [["s-0_0", "s-1_0"], ["s-0_1"], ["s-0_3"]]
    assert [answer.text for _, _, answer in answered] == ["2", "4", "1", "3"]
    assert histories(pairs)["s-0_3"] == (((0, 0),), ("1",))
    assert not list(answer_sequences(Model().answer_all, []))


@cases(
    "pairs, message",
    (asked(("s", "00")), "such as 'nt-639-0_1', got 's'"),
    (asked(("s_1", "00"), ("s_1", "01")), r"once, got one again \(question 's_1'\)"),
    (asked(("s_01", "00"), ("s_1", "01")), r"once, got one again \(question 's_1'\)"),
    (
        [*asked(("s_0", "00")), *asked(("s_1", "01"), table=OTHER)],
        r"about one table, 't', got 'other' \(question 's_1'\)",
    ),
)
def test_what_is_no_sequence_is_refused(pairs, message):
    with pytest.raises(ValueError, match=message):
        list(answer_sequences(Model().answer_all, pairs))


def test_kinds_are_of_the_answers_of_ids_or_of_a_file(tmp_path):
    predictions = {"t#0:sum": Answer(answered=False), "t#1:count": Answer(confidence="not sure")}
    assert find_kinds("ids", predictions) == {"t#0:sum": "sum", "t#1:count": "count"}
    assert [*find_kinds("confidence", predictions).values()] == ["refused", "not sure"]
    path = tmp_path / "kinds.json"
    path.write_text('{"t#0:sum": "hard"}')
    assert find_kinds(str(path), predictions) == {"t#0:sum": "hard"}
    path.write_text('["hard"]')
    with pytest.raises(ValueError, match=r"object of question ids and kinds in .*kinds"):
        find_kinds(str(path), predictions)


def test_a_row_is_what_was_right_and_a_column_what_was_said():
    table = confusion_table(["b", "a", "b", "c"], ["a", "a", "b", "no answer"], ["a", "b"])
    assert table.splitlines() == [
        r"| gold \ predicted | a | b | c | no answer |",
        "| --- | --- | --- | --- | --- |",
        "| a | 1 | 0 | 0 | 0 |",
        "| b | 1 | 1 | 0 | 0 |",
        "| c | 0 | 0 | 0 | 1 |",
        "| no answer | 0 | 0 | 0 | 0 |",
    ]


def test_an_answer_is_a_row_whatever_its_texts_hold():
    answers = [ShownAnswer("who |\n won?", "x", "y", [(2, 0), (3, 1)], False)]
    assert answers_table(answers).splitlines()[2:] == [
        r"| who \| won? | x | y | (2, 0), (3, 1) | no |"
    ]


def test_an_evaluation_is_a_row():
    evaluations = [{"step": 20, "loss": 1.5}, {"step": 40, "loss": 1, "f1": 0.33333}]
    assert evaluations_table(evaluations).splitlines() == [
        "| step | loss | f1 |",
        "| --- | --- | --- |",
        "| 20 | 1.5000 |  |",
        "| 40 | 1.0000 | 0.3333 |",
    ]
