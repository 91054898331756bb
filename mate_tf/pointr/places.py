"""Where the answers to questions about tables with passages stand (Eisenschlos et al., table 2)."""

import dataclasses
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Literal, get_args

from mate_tf.pointr.inputs import restrict
from mate_tf.tables.linked_supervision import supervise_linked
from mate_tf.tables.linked_table import LinkedTable
from mate_tf.tables.supervision import SupervisionError
from mate_tf.tables.table import Question

Place = Literal["in table", "in passage", "missing", "not given"]
PLACES: tuple[Place, ...] = get_args(Place)


def place_of_answer(linked: LinkedTable, question: Question) -> Place:
    """Where an answer stands: in a cell's own text, or else in a passage that a cell links to."""
    if not question.answers:
        return "not given"
    if _is_in(restrict(linked, "table"), question):
        return "in table"
    return "in passage" if _is_in(linked, question) else "missing"


def _is_in(linked: LinkedTable, question: Question) -> bool:
    try:
        supervise_linked(linked, dataclasses.replace(question, answer_coordinates=()))
    except SupervisionError:
        return False
    return True


class Places:
    """Counts where answers stand as their questions pass by."""

    def __init__(self) -> None:
        self.of_question: dict[str, Place] = {}

    def watch(
        self, pairs: Iterable[tuple[LinkedTable, Question]]
    ) -> Iterator[tuple[LinkedTable, Question]]:
        """The same questions, once they are counted."""
        for linked, question in pairs:
            self.of_question[question.question_id] = place_of_answer(linked, question)
            yield linked, question

    def __str__(self) -> str:
        counts = Counter(self.of_question.values())
        return "  answers: " + ", ".join(f"{n} {place}" for place, n in counts.most_common())
