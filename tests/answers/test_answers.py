"""Answers: their JSON, their scores, none where these are too low, and what is computed."""

import dataclasses
import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mate_tf.answers.answer import (
    Answer,
    SelectedCell,
    TableFacts,
    answer_of_cells,
    apply_min_score,
    format_number,
    no_answer,
)
from mate_tf.answers.calibration import Calibration, calibrated
from mate_tf.tables.operators import OPERATORS
from mate_tf.tables.table import Table
from tests.small import cases, stored_cases

TABLE = Table(("river", "length"), (("Ulm", "1.5 km"), ("", ""), ("", "2 km")))
CELLS = (SelectedCell(0, 1, "1.5 km", 0.9), SelectedCell(2, 1, "2 km", 0.7))


def answer_with_others() -> Answer:
    candidates = (
        answer_of_cells(TABLE, CELLS[:number], aggregation, score)
        for number, aggregation, score in ((2, "SUM", 0.4), (1, "NONE", 0.3), (2, "COUNT", 0.1))
    )
    answer, *others = [found for found in candidates if found is not None]
    return dataclasses.replace(answer, alternatives=tuple(others))


def test_an_answer_of_enough_score_is_given_and_none_stays_none():
    answer = answer_with_others()
    assert all(apply_min_score(answer, min_score) is answer for min_score in (0.0, 0.3, 0.4))
    assert apply_min_score(no_answer(), 0.0) == no_answer()
    assert calibrated(no_answer(), Calibration(2.0, 3.0), TABLE, "?") == no_answer()


def test_below_the_score_asked_for_there_is_no_answer_but_what_it_would_have_been():
    answer = answer_with_others()
    refused = apply_min_score(answer, 0.41)
    assert not refused.answered
    assert (refused.items, refused.text, refused.cells, refused.value) == ((), "", (), None)
    assert (refused.score, refused.aggregation, refused.number) == (0.4, "NONE", None)
    would_be, *others = refused.alternatives
    assert would_be == dataclasses.replace(answer, alternatives=())
    assert tuple(others) == answer.alternatives


def test_a_calibration_changes_scores_and_nothing_else():
    calibration = Calibration(2.0, -0.5)
    answer = answer_with_others()

    def rescored(one):
        return dataclasses.replace(one, score=pytest.approx(calibration.apply(one.score)))

    expected = dataclasses.replace(
        rescored(answer), alternatives=tuple(map(rescored, answer.alternatives))
    )
    assert calibrated(answer, calibration, TABLE, "which?") == expected


def test_signs_shift_all_scores_alike_and_thresholds_say_how_an_answer_is_said():
    answer = answer_with_others()
    plain = calibrated(answer, Calibration(), TABLE, "how many?")
    assert plain.confidence == plain.to_dict()["confidence"] == "sure"
    weights = {"asks how many": -1.0, "asks for an extreme": 5.0}
    for least, confidence in ((0.1, "probably"), (0.3, "not sure")):
        calibration = Calibration(1.0, 0.0, weights, sure=0.5, probably=least)
        shifted = calibrated(answer, calibration, TABLE, "how many?")
        assert shifted.confidence == shifted.to_dict()["confidence"] == confidence
    for after, before in zip(
        [shifted, *shifted.alternatives], [plain, *plain.alternatives], strict=True
    ):
        odds = [score / (1.0 - score) for score in (after.score, before.score)]
        assert odds[0] == pytest.approx(odds[1] * math.exp(-1.0))


NUMBERS = st.floats(allow_nan=False, allow_infinity=False)
TEXTS = st.text(st.characters(exclude_categories=()))
SOME_CELLS = st.builds(SelectedCell, st.integers(0, 300), st.integers(0, 9), TEXTS, st.floats(0, 1))


def answers(**more):
    return st.builds(
        Answer,
        st.lists(TEXTS, max_size=3).map(tuple),
        st.lists(SOME_CELLS, max_size=3).map(tuple),
        st.sampled_from(list(OPERATORS)),
        st.none() | NUMBERS,
        st.floats(0, 1),
        st.none() | NUMBERS,
        st.none() | st.integers(0, 9),
        **more,
    )


@given(
    answers(
        rows_dropped=st.integers(0, 9),
        alternatives=st.lists(answers(), max_size=2).map(tuple),
        answered=st.booleans(),
        error=st.text(),
    )
)
def test_an_answer_comes_back_from_its_json(answer):
    assert Answer.from_dict(json.loads(json.dumps(answer.to_dict(), allow_nan=False))) == answer


def test_the_json_of_an_answer():
    sum_ = answer_with_others()
    said = sum_.to_dict()
    assert said["cells"] == [
        {"row": 0, "column": 1, "text": "1.5 km", "score": 0.9},
        {"row": 2, "column": 1, "text": "2 km", "score": 0.7},
    ]
    del said["cells"]
    assert said == {
        "answered": True,
        "confidence": "sure",
        "answer": "3.5",
        "items": ["3.5"],
        "aggregation": "SUM",
        "value": 3.5,
        "number": 3.5,
        "class_index": None,
        "score": 0.4,
        "rows_dropped": 0,
        "assumed": [],
        "alternatives": said["alternatives"],
    }
    of_whole = {"answered", "confidence", "assumed", "rows_dropped", "alternatives"}
    for alternative, other in zip(said["alternatives"], sum_.alternatives, strict=True):
        assert set(other.to_dict()) - set(alternative) == of_whole
        assert alternative.items() <= other.to_dict().items()
    assert no_answer().to_dict()["answered"] is False
    for value in (math.inf, -math.inf, math.nan):  # which JSON cannot hold
        said = Answer((str(value),), (), "SUM", value, 0.5, number=value).to_dict()
        assert (said["answer"], said["value"], said["number"]) == (str(value), None, None)


@stored_cases("changes, message")
def test_json_that_is_no_answer_is_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        Answer.from_dict(answer_with_others().to_dict() | changes)


def test_an_error_is_an_answer_that_was_not_given():
    answer = Answer.of(ValueError("expected at most 4 tokens, got 9"))
    assert (answer.answered, answer.items, answer.cells) == (False, (), ())
    assert answer.error == answer.to_dict()["error"] == "expected at most 4 tokens, got 9"
    assert Answer.of(no_answer()) == no_answer()


def test_cells_are_ranked_by_their_scores_then_by_the_alternatives():
    def cells(*places):
        return tuple(SelectedCell(row, 0, "", score) for row, score in places)

    others = (Answer(cells=cells((3, 0.3), (0, 0.4))), Answer(cells=cells((4, 0.9))))
    best = Answer(cells=cells((0, 0.6), (1, 0.7)), alternatives=others)
    assert best.ranked_cells == ((1, 0), (0, 0), (3, 0), (4, 0))


@stored_cases("aggregation, texts, item, value")
def test_what_is_computed_is_what_the_column_says(aggregation, texts, item, value):
    table = Table(("a",), tuple((text,) for text in texts))
    cells = tuple(SelectedCell(row, 0, text, 1.0) for row, text in enumerate(texts))
    answer = answer_of_cells(table, cells, aggregation, 0.5)
    assert answer.items[0] == item
    assert answer.value == (None if value is None else pytest.approx(value, rel=1e-15))
    assert answer.number == answer.value
    note = f"no {aggregation.lower()} was computed, because the numbers are in $ and €"
    assert answer.note == ("" if value is not None else note)


@pytest.mark.parametrize(
    ("aggregation", "rows", "item"),
    [("SUM", (0, 1, 2), "300"), ("AVERAGE", (0, 1, 2), "150"), ("COUNT", (0, 1, 2), "2")]
    + [("SUM", (2,), "300"), ("NONE", (1, 2), "200")],
)
def test_a_total_is_not_added_to_what_it_is_the_total_of(aggregation, rows, item):
    table = Table(("a", "b"), (("x", "100"), ("y", "200"), ("Total", "300")))
    cells = tuple(SelectedCell(row, 1, table.rows[row][1], 1.0) for row in rows)
    answer = answer_of_cells(table, cells, aggregation, 0.5)
    assert answer.items[0] == item
    assert len(answer.cells) == (len(cells) if aggregation == "NONE" else min(2, len(cells)))


@cases(
    "value, text",
    *((3.0, "3"), (-0.0, "0"), (0.25, "0.25"), (0.1 + 0.2, "0.3"), (-12.5, "-12.5")),
    *((1234567890123.0, "1234567890123"), (1e21, "1000000000000000000000")),
    *((1e-7, "0.0000001"), (math.inf, "inf")),
)
def test_numbers_are_written_plainly(value, text):
    assert format_number(value) == text


RUNNERS = Table.from_rows(
    [
        ["Name", "Born", "Points", "Best time", "Team", "Year"],
        ["Ann", "2001-03-05", "12", "1:30:00", "red", "2001"],
        ["Bob", "2001-02-28", "7", "0:45:30", "Blue", "1999"],
        ["Cid", "2001-03-05", "12", "", " red", "2000"],
        ["Dee", "", "", "2:00:00", "", "2000"],
    ]
)


def facts(mentions: dict[str, float]) -> TableFacts:
    """As the features have them: ranks by value, and the names' places in a question."""
    ranks = np.zeros((RUNNERS.num_rows, RUNNERS.num_columns))
    ranks[:, 1], ranks[:, 2] = [2, 1, 2, 0], [2, 1, 2, 0]
    ranks[:, 3], ranks[:, 5] = [2, 1, 0, 3], [3, 1, 2, 2]
    mentioned = np.array([[float(text in mentions) for text in row] for row in RUNNERS.rows])
    places = np.array([[mentions.get(text, 0.0) for text in row] for row in RUNNERS.rows])
    others = {"names": ranks[0], "num_tokens": ranks, "relations": ranks}
    return TableFacts(RUNNERS, mentioned, ranks=ranks, positions=places, **others)


def of_runners(aggregation, column, rows, mentions=()):
    cells = tuple(SelectedCell(row, column, RUNNERS.rows[row][column], 0.9) for row in rows)
    return answer_of_cells(RUNNERS, cells, aggregation, 0.5, facts(dict(mentions)))


@stored_cases("aggregation, column, rows, mentions, items")
def test_what_is_computed_of_cells_that_are_compared(aggregation, column, rows, mentions, items):
    found = of_runners(aggregation, column, rows, mentions)
    assert (found.aggregation, found.items, found.score) == (aggregation, (items,), 0.5)
    assert [cell.row for cell in found.cells] == list(rows)


@stored_cases("aggregation, column, rows")
def test_cells_without_what_is_needed_have_no_answer(aggregation, column, rows):
    assert of_runners(aggregation, column, rows) is None


ROWS = Table.from_rows(
    [
        ("A", "10", "7", "$5", "x", "2024-03-01", "2024-02-28", "1:30:00", "0:45:00", "9:30"),
        ("B", "30", "", "€3", "y", "2023-03-01", "2022-02", "0:10:00", "0:30:00", "14:45"),
        ("A", "60", "8", "$2", "z", "2023-03-01", "2021-02-03", "0:10:00", "", "11:15"),
    ],
    ("name", "jan", "feb", "price", "text", "in", "out", "swim time", "run time", "start"),
)


def computed(aggregation, places, table=ROWS):
    cells = tuple(SelectedCell(row, col, table.rows[row][col], 0.9) for row, col in places)
    return answer_of_cells(table, cells, aggregation, 0.5)


@stored_cases("aggregation, places, items, value")
def test_what_is_computed_of_shares_and_along_a_row(aggregation, places, items, value):
    answer = computed(aggregation, places)
    if items is None:
        assert answer is None
        return
    assert (answer.aggregation, answer.items, answer.score) == (aggregation, items, 0.5)
    assert answer.value == (None if value is None else pytest.approx(value))
    assert answer.coordinates == tuple(places)


@cases(
    "rows, places, share",
    ([("A", "1"), ("B", "3"), ("Total", "4")], [(0, 1)], 25.0),
    ([("A", "1"), ("B", "3"), ("Total", "4")], [(0, 0)], 50.0),  # of the rows
    ([("A", "1"), ("B", "3"), ("Total", "4")], [(0, 1), (2, 1)], 25.0),
    ([("A", "5"), ("B", "")], [(0, 1)], 50.0),  # not each row has a number
    ([("A", "0"), ("B", "0")], [(0, 1)], None),
    ([("A", "2"), ("B", "-2")], [(0, 1)], None),
    ([("A", "$5"), ("B", "€5")], [(0, 1)], None),
)
def test_a_share_is_of_the_column_without_totals(rows, places, share):
    answer = computed("SHARE", places, Table(("name", "number"), tuple(rows)))
    assert (answer and answer.value) == share


def test_numbers_of_a_row_with_unlike_units_are_not_added():
    table = Table(("name", "a", "b"), (("A", "$5", "€7"), ("B", "$2", "€5")))
    for aggregation in ("ROW_SUM", "ROW_AVERAGE", "ROW_DIFFERENCE"):
        answer = computed(aggregation, [(0, 1), (0, 2)], table)
        assert (answer.aggregation, answer.items) == ("NONE", ("$5", "€7"))
        name = aggregation.removeprefix("ROW_").lower()
        assert answer.note == f"no {name} was computed, because the numbers are in $ and €"
