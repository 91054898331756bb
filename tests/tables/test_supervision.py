import gzip
import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mate_tf.tables.datasets.wtq import read_wtq
from mate_tf.tables.supervision import SupervisionError, parse_number, supervise
from mate_tf.tables.table import Question, Table

WTQ = Path(os.environ.get("MATE_TF_WTQ_DIR", "../shared/data/wtq"))
REAL = Path(os.environ.get("MATE_TF_GOLDEN_DIR", "../shared/golden")).with_name("golden_real")

TABLE = Table.from_rows(
    [
        ["Nation", "Gold", "Note"],
        ["Málaga CF", "4", "first*"],
        ["“Cuba”", "2", "tied\n(twice)"],
        ["Peru", "2", ""],
        ["Peru", "1,500", "."],
    ],
    table_id="medals",
)


@pytest.mark.parametrize(
    ("answers", "coordinates", "number"),
    [
        (["Malaga CF"], ((0, 0),), None),
        (["Cuba"], ((1, 0),), None),
        (["FIRST"], ((0, 2),), None),
        (["tied"], ((1, 2),), None),
        (["4"], ((0, 1),), 4.0),
        (["1,500"], ((3, 1),), 1500.0),
        (["17"], (), 17.0),
        (["Cuba", "4"], ((1, 0), (0, 1)), None),
        (["Peru", "Peru"], ((2, 0), (3, 0)), None),
        (["Cuba", "Cuba"], ((1, 0),), None),
    ],
)
def test_answers_become_cells_and_a_number(answers, coordinates, number):
    question = supervise(TABLE, Question("who?", "q", answers))
    assert (question.answer_coordinates, question.answer_number) == (coordinates, number)


@pytest.mark.parametrize(
    ("answers", "reason"),
    [
        (["Chile"], "answer not found"),
        (["."], "answer not found"),
        ([], "answer not found"),
        (["1", "3"], "answer not found"),
        (["Peru"], "ambiguous answer"),
        (["2"], "ambiguous answer"),
        (["Cuba", "Chile"], "some answers not found"),
    ],
)
def test_answers_that_say_no_cells_are_refused_with_the_reason(answers, reason):
    with pytest.raises(SupervisionError, match=r"\(table 'medals', question 'q'\)") as error:
        supervise(TABLE, Question("who?", "q", answers))
    assert error.value.reason == reason


def test_an_ambiguous_answer_is_its_last_cell_when_not_strict():
    assert supervise(TABLE, Question("?", answers=["Peru"]), strict=False).answer_coordinates == (
        (3, 0),
    )
    question = supervise(TABLE, Question("?", answers=["2"]), strict=False)
    assert (question.answer_coordinates, question.answer_number) == (((2, 1),), 2.0)


def test_supervision_that_is_given_is_kept():
    for given_one in (
        Question("?", answers=["Peru"], answer_coordinates=((2, 0),)),
        Question("?", answers=["Peru"], answer_number=2.0),
    ):
        assert supervise(TABLE, given_one) is given_one


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("12,467", 12467.0),
        ("-3.25", -3.25),
        (".5", 0.5),
        ("5.", 5.0),
        (" 7 ", 7.0),
        ("1,23", None),
        ("1e5", None),
        ("1_000", None),
        ("nan", None),
        ("inf", None),
        ("-", None),
        (".", None),
        ("", None),
        ("3 km", None),
    ],
)
def test_a_number_is_a_plain_number(text, number):
    assert parse_number(text) == number


@given(st.decimals(allow_nan=False, allow_infinity=False, places=3))
def test_a_number_with_thousands_separators_is_read_back(value):
    assert parse_number(f"{value:,f}") == float(value)


@pytest.mark.parametrize(("split", "strict"), [("train", True), ("dev", False)])
def test_wtq_is_supervised_where_the_original_does_and_alike(split, strict):
    path = REAL / f"wtq_outcomes_{split}.json.gz"
    if not path.exists() or not WTQ.is_dir():
        pytest.skip(f"no {path} or no {WTQ}")
    outcomes = json.loads(gzip.decompress(path.read_bytes()))
    compared, gained = 0, 0
    for table, question in read_wtq(WTQ, split):
        expected = outcomes.get(f"{question.question_id}-0_0")
        if expected is None:
            continue
        compared += 1
        try:
            question = supervise(table, question, strict)
        except SupervisionError:
            assert not expected["valid"], question
            continue
        if not expected["valid"]:
            gained += 1  # quotation marks that the original strips, answers given twice
            continue
        assert len(question.answer_coordinates) == expected["coords"], question
        assert (question.answer_number is not None) == expected["has_float"], question
    assert compared == len(outcomes)
    assert gained < 0.001 * compared
