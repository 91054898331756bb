import csv

import pytest

from mate_tf.datasets.sqa import split_question_id
from mate_tf.evaluation.official import write_sqa_cells
from mate_tf.evaluation.scoring import (
    cells_correct,
    position_accuracies,
    sequence_accuracy,
)
from mate_tf.tables.table import Question

CORRECT = {
    "nt-1-0_0": True,
    "nt-1-0_1": True,
    "nt-1-1_0": True,  # the same question by another annotator is another sequence
    "nt-1-1_1": False,
    "nt-1-1_2": True,
    "nt-2-0_0": False,
}


def test_a_sequence_is_right_where_all_of_its_questions_are():
    assert sequence_accuracy(CORRECT) == pytest.approx(1 / 3)


def test_positions_are_counted_on_their_own():
    assert position_accuracies(CORRECT) == {0: pytest.approx(2 / 3), 1: 0.5, 2: 1.0}


@pytest.mark.parametrize(
    ("cells", "gold", "answers", "correct"),
    [
        (((1, 0), (0, 0)), ((0, 0), (1, 0)), ("a", "b"), True),
        (((0, 0),), ((0, 0), (1, 0)), ("a", "b"), False),
        (((0, 0), (1, 0)), ((0, 0),), ("a",), False),
        ((), ((0, 0),), ("a",), False),
        ((), (), (), True),
        # The gold cell is in the header: no prediction has it, and none is not it either.
        ((), (), ("Name",), False),
    ],
)
def test_cells_are_compared_as_sets(cells, gold, answers, correct):
    question = Question("?", answers=answers, answer_coordinates=gold)
    assert cells_correct(cells, question) is correct


@pytest.mark.parametrize(
    ("question_id", "parts"),
    [("nt-639-0_1", ("nt-639-0", 1)), ("my_own_12", ("my_own", 12)), ("_0", ("", 0))],
)
def test_an_id_names_its_sequence_and_its_position(question_id, parts):
    assert split_question_id(question_id) == parts


@pytest.mark.parametrize("question_id", ["nt-639", "nt-639-0_", "nt-639-0_x", "nt_²", "nt_-1", ""])
def test_an_id_without_position_is_refused(question_id):
    with pytest.raises(ValueError, match=f"such as 'nt-639-0_1', got '{question_id}'"):
        split_question_id(question_id)


def test_no_question_is_refused():
    with pytest.raises(ValueError, match="expected at least 1 question, got 0"):
        sequence_accuracy({})


def test_cells_are_written_as_the_official_script_reads_them(tmp_path):
    path = tmp_path / "pred.tsv"
    write_sqa_cells(path, {"nt-639-0_1": ((0, 1), (2, 3)), "nt-640-2_0": ()})
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    assert rows[0] == {
        "id": "nt-639",
        "annotator": "0",
        "position": "1",
        "answer_coordinates": "['(0, 1)', '(2, 3)']",
    }
    assert (rows[1]["annotator"], rows[1]["answer_coordinates"]) == ("2", "[]")
    with pytest.raises(ValueError, match="expected an id such as 'nt-639-0_1', got 'mine_1'"):
        write_sqa_cells(path, {"mine_1": ()})
