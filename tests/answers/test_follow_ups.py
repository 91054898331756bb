"""Follow-ups, which the default model answers alike in library, command, page and server."""

import json

import pytest

from mate_tf import from_pretrained
from mate_tf.answers.answer import Answer, SelectedCell
from mate_tf.answers.decoding import _asks_for_several
from mate_tf.answers.views import follow_up, views_of
from mate_tf.command_line import arguments
from mate_tf.command_line.main import main
from mate_tf.page.page import Page
from mate_tf.serving.http import Limits
from mate_tf.serving.http.requests import Body, read_request
from mate_tf.tables.table import Question, Table
from tests.small import ROOT, cases, stored

PAIRS = stored(__file__, "PAIRS")
LEAST_RIGHT = 14
CITIES = Table(
    ("City", "Country", "People"),
    (("Oslo", "Norway", "1"), ("Bergen", "Norway", "2"), ("Rome", "Italy", "3")),
)


@pytest.fixture(scope="module")
def model():
    return from_pretrained(num_alternatives=3)


def of_library(model, path, first, then):
    return model.answer(path, then, after=model.answer(path, first)).to_dict()


def of_command(model, path, first, then, capsys):
    main(["ask", str(path), first, then, "--conversation", "--json"])
    return json.loads(capsys.readouterr().out.splitlines()[1])


def of_page(model, path, first, then):
    page = Page(model)
    _, before = page.ask(None, path.read_text(), first)
    html, one = page.ask(None, path.read_text(), then, after=before.answer)
    assert "is not shown" not in html
    return one.answer.to_dict()


def of_server(model, path, first, then):
    def ask(**instance):
        body = json.dumps({"instances": [{"table": path.read_text(), **instance}]})
        request = read_request(Body(body.encode()), Limits())
        (answer,) = model.answer_prepared(model.prepare(request.pairs))
        return request.reply([request.finished(answer, 3, 0.0)])["predictions"][0]

    return ask(question=then, previous=ask(question=first))


def test_follow_ups_are_right_and_alike_in_all_interfaces(model, capsys, monkeypatch):
    monkeypatch.setattr(arguments, "load_model", lambda *_: model)
    wrong = []
    for number, (name, first, then, right) in enumerate(PAIRS):
        asked = (model, ROOT / "experiments" / "demo_data" / f"{name}.csv", first, then)
        answer = of_library(*asked)
        if number % 3 == 0:  # every interface asks for itself, which takes its time
            for one in (of_command(*asked, capsys), of_page(*asked), of_server(*asked)):
                assert (one["cells"], one["answer"]) == (answer["cells"], answer["answer"]), then
        if answer["answer"] not in right.split(" / "):
            wrong.append((first, then, answer["answer"]))
    assert len(PAIRS) - len(wrong) >= LEAST_RIGHT, wrong


def answer_of(*coordinates, **values):
    cells = tuple(SelectedCell(r, c, CITIES.rows[r][c], 0.9) for r, c in coordinates)
    return Answer(**{"items": tuple(cell.text for cell in cells), "cells": cells, **values})


@cases(
    "question, before, rows",
    ("which is larger?", answer_of((0, 0), (1, 0)), (0, 1)),
    ("and which others?", answer_of((0, 0), (1, 0)), (0, 1)),
    ("and how many people?", answer_of((0, 0)), (0,)),
    ("and the largest?", answer_of((0, 0)), None),
    ("what about Rome?", answer_of((0, 0)), None),
    ("and in Norway?", answer_of((0, 0)), (0,)),
    ("which is larger?", answer_of((0, 0), (1, 0), confidence="not sure"), None),
    ("how many people?", answer_of((0, 0), confidence="not sure"), (0,)),
    ("which is larger?", answer_of((0, 0), (1, 0), (2, 0)), None),
    ("how many?", Answer(("yes",), class_index=1), None),
)
def test_a_follow_up_is_about_the_rows_of_the_answer_before_or_all(question, before, rows):
    view, *others = views_of(CITIES, follow_up(Question(question), before))
    assert view.rows == rows
    assert [other.rows for other in others] == ([] if rows is None else [None])
    if rows is not None:
        assert view.table.rows == tuple(CITIES.rows[row] for row in rows)


def test_cells_are_marked_where_they_are_the_answer():
    for values, marks in (({}, ((0, 0), (1, 0))), ({"items": ("2",), "aggregation": "COUNT"}, ())):
        before = answer_of((1, 0), (2, 0), **values)
        part, whole = views_of(CITIES, follow_up(Question("which?"), before))
        assert part.question.previous_coordinates == marks
        assert whole.question.previous_coordinates == ((1, 0), (2, 0))


def test_an_answer_about_another_table_is_refused(model):
    before = Answer(("x",), (SelectedCell(9, 0, "x", 0.9),))
    with pytest.raises(ValueError, match="cells within 3 rows and 3 columns, got"):
        model.answer(CITIES, "how many?", after=before)


def test_some_rows_are_read_as_in_the_whole_table():
    whole = Table(("a", "b"), (("1.234", "01/05/2024"), ("1,5", "13/05/2024"), ("2,5", "")))
    part = whole.with_rows((2, 0))
    assert part.column(0).numbers == (2.5, 1234.0)
    assert part.column(1).kind == whole.column(1).kind == "date"
    assert part.column(1).values[1] == whole.column(1).values[0]


def test_words_of_a_follow_up_ask_for_each_row_or_for_one():
    for text, is_several in (
        ("when did they open their office?", True),  # "of" is a word of its own
        ("when did they open?", True),
        ("what of them?", False),
        ("which did they open?", False),
        ("when did they open the largest?", False),
    ):
        assert _asks_for_several(text, follows_up=True) == is_several
        assert not _asks_for_several(text, follows_up=False)
