"""What the reader learns from: of each question one cell, and the answer in it."""

import dataclasses
from collections.abc import Iterable, Iterator

from mate_tf.pointr.answering import Pointed
from mate_tf.pointr.inputs import cell_table
from mate_tf.tables.linked_supervision import supervise_linked
from mate_tf.tables.linked_table import LinkedTable
from mate_tf.tables.supervision import SupervisionError
from mate_tf.tables.table import Question, Table


def reading_cells(all_pointed: Iterable[Pointed]) -> Iterator[tuple[Table, Question]]:
    """Yields the cell that each question is read in to train or to choose the best weights.

    Where several cells hold the answer it is the one that the pointer ranks best: it knows the
    question's reasons, where another cell may hold the words by chance. Where none of the ranked
    cells does, it is the first in the table; where none at all does, it is the best cell, for the
    conversion to count the answer as cut off. Of several answers those are kept that it holds.

    Args:
        all_pointed: questions with the pointer's ranking.
    """
    for pointed in all_pointed:
        known, question, _ = pointed
        try:
            gold = supervise_linked(known, question).answer_coordinates
        except SupervisionError:
            gold = ()
        ranked = [cell for cell in pointed.cells if cell in gold]
        best = [*ranked, *gold, *pointed.cells, (0, 0)][0]
        yield cell_table(known, *best), _answers_in(known, best, question)


def _answers_in(known: LinkedTable, cell: tuple[int, int], question: Question) -> Question:
    """The question with those of its answers that the cell holds; with all where it holds none."""
    row, column = cell
    table = Table(("",), ((known.table.rows[row][column],),), known.table.table_id)
    alone = LinkedTable(table, ((known.passages[row][column],),))
    held = []
    for answer in question.answers:
        try:
            supervise_linked(alone, Question(question.text, answers=(answer,)))
        except SupervisionError:
            continue
        held.append(answer)
    return dataclasses.replace(
        question, answers=tuple(held) or question.answers, answer_coordinates=()
    )
