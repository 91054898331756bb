"""The scores of sequential question answering (Iyyer et al., 2017), as its release computes them.

ALL is the share of questions whose cells are right, SEQ that of the sequences all of whose
questions are.
"""

from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

from mate_tf.datasets.sqa import split_question_id
from mate_tf.tables.table import Coordinates, Question
from mate_tf.tables.text_files import complete_text_file


def cells_correct(cells: Coordinates, question: Question) -> bool:
    """Says whether just the cells of the answer are selected, in any order.

    An answer outside of the table's body, which has texts and no cells here, is never right.
    """
    gold = set(question.answer_coordinates)
    return set(cells) == gold and bool(gold or not question.answers)


def sequence_accuracy(correct: Mapping[str, bool]) -> float:
    """SEQ, 0 to 1.

    Args:
        correct: for each question id whether it was answered right.

    Raises:
        ValueError: if there is none, or one is no id of a question in a sequence.
    """
    of_sequence: defaultdict[str, list[bool]] = defaultdict(list)
    for question_id, is_right in correct.items():
        of_sequence[split_question_id(question_id)[0]].append(is_right)
    return _share([all(answers) for answers in of_sequence.values()])


def position_accuracies(correct: Mapping[str, bool]) -> dict[int, float]:
    """ALL among the questions of each position, counted from 0; errors as `sequence_accuracy`."""
    of_position: defaultdict[int, list[bool]] = defaultdict(list)
    for question_id, is_right in correct.items():
        of_position[split_question_id(question_id)[1]].append(is_right)
    return {position: _share(of_position[position]) for position in sorted(of_position)}


def write_official(path: str | Path, cells: Mapping[str, Coordinates]) -> None:
    """Writes cells by question id as the release's evaluation reads them, with tabs between.

    Raises:
        ValueError: if an id is not that of a question in a sequence of an annotator.
    """
    lines = ["id\tannotator\tposition\tanswer_coordinates"]
    for question_id, coordinates in cells.items():
        sequence, position = split_question_id(question_id)
        id_, separator, annotator = sequence.rpartition("-")
        if not separator:
            raise ValueError(f"expected an id such as 'nt-639-0_1', got '{question_id}'")
        lines.append(f"{id_}\t{annotator}\t{position}\t{[str(cell) for cell in coordinates]}")
    with complete_text_file(path) as file:
        file.write("\n".join(lines) + "\n")


def _share(correct: list[bool]) -> float:
    if not correct:
        raise ValueError("expected at least 1 question, got 0")
    return sum(correct) / len(correct)
