"""Answers to questions about a table with passages: a cell is pointed to, then read."""

import dataclasses
import itertools
import json
import pathlib
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from mate_tf.answers.answer import Answer, no_answer
from mate_tf.answers.predictor import Predictor
from mate_tf.config import read_json_object
from mate_tf.dataclass_json import from_dict
from mate_tf.features.builder import QUESTIONS_AT_ONCE
from mate_tf.pointr.inputs import PointingInputs, cell_table, expand, restrict_pair
from mate_tf.serving.loading import from_pretrained
from mate_tf.tables.linked_table import LinkedTable
from mate_tf.tables.table import Question
from mate_tf.tables.text_files import complete_text_file

POINTER, READER = "point", "read"  # the folders of both stages in an exported PointR
_INPUTS_FILE = "pointr.json"

Pairs = Iterable[tuple[LinkedTable, Question]]


class Pointed(NamedTuple):
    """What the pointer says about a question."""

    known: LinkedTable  # what it knows of the table and its passages (`restrict`)
    question: Question  # as it is asked about that
    answer: Answer | ValueError  # the best cell with the next best ones; or why none

    @property
    def cells(self) -> list[tuple[int, int]]:
        """(row, column) of the cells, the best first; none if nothing was seen."""
        if isinstance(self.answer, ValueError) or not self.answer.cells:
            return []
        ranked = (self.answer, *self.answer.alternatives)
        return [(other.cells[0].row, other.cells[0].column) for other in ranked]


@dataclasses.dataclass(frozen=True)
class Pointer:
    """The first stage alone: selects cells of an expanded table, as it saw them in its training."""

    predictor: Predictor  # of a cell, with other cells as alternatives
    inputs: PointingInputs = dataclasses.field(default_factory=PointingInputs)

    def point_all(self, pairs: Pairs) -> Iterator[Pointed]:
        """Points to the cells of each question, in the order of the questions."""
        pairs = iter(pairs)
        evidence = self.inputs.evidence
        while chunk := list(itertools.islice(pairs, QUESTIONS_AT_ONCE)):
            known = [restrict_pair(linked, question, evidence) for linked, question in chunk]
            tables = ((expand(self.inputs, *pair), pair[1]) for pair in known)
            for pair, (_, _, answer) in zip(known, self.predictor.answer_all(tables), strict=True):
                yield Pointed(*pair, answer)


@dataclasses.dataclass(frozen=True)
class PointR:
    """Answers questions with two models: one selects a cell, one reads in it and its passages."""

    pointer: Pointer
    reader: Predictor  # of a span in a table of one cell

    def answer(self, linked: LinkedTable, question: str | Question) -> Answer:
        """Answers one question, or its text, as `answer_all`; ValueError if it is beyond a limit.

        `LinkedTable.from_links` makes a table with passages of a table, its links and their texts.
        """
        if isinstance(question, str):
            question = Question(question)
        ((_, _, answer),) = self.answer_all([(linked, question)])
        if isinstance(answer, ValueError):
            raise answer
        return answer

    def answer_all(
        self, pairs: Pairs
    ) -> Iterator[tuple[LinkedTable, Question, Answer | ValueError]]:
        """Answers questions in their order; the answer to one beyond a limit is its error.

        An answer has the text that was read, and the cell that was pointed to, with its own text.
        With the evidence "passages" it is a cell of `restrict`. The score is the cell's times the
        span's. The alternatives are the next best cells; nobody read in them.
        """
        pairs = iter(pairs)
        while chunk := list(itertools.islice(pairs, QUESTIONS_AT_ONCE)):
            all_pointed = list(self.pointer.point_all(chunk))
            read = self.reader.answer_all(
                (cell_table(pointed.known, *pointed.cells[0]), pointed.question)
                for pointed in all_pointed
                if pointed.cells
            )
            for (linked, question), pointed in zip(chunk, all_pointed, strict=True):
                answer = pointed.answer
                if not isinstance(answer, ValueError) and pointed.cells:
                    _, _, span = next(read)
                    answer = _joined(answer, span)
                yield linked, question, answer


def _joined(cell: Answer, span: Answer | ValueError) -> Answer:
    """The answer from a selected cell and the span that was read in it, if any."""
    if isinstance(span, ValueError) or not span.answered:
        return no_answer(0.0, (cell, *cell.alternatives))
    return dataclasses.replace(
        span,
        cells=cell.cells,
        score=cell.score * span.score,
        rows_dropped=cell.rows_dropped,
        alternatives=cell.alternatives,
    )


def save_inputs(directory: str | pathlib.Path, inputs: PointingInputs) -> None:
    """Writes to an exported PointR's folder what its pointer sees."""
    with complete_text_file(pathlib.Path(directory) / _INPUTS_FILE) as file:
        file.write(json.dumps(dataclasses.asdict(inputs), indent=2) + "\n")


def load_pointer(
    directory: str | pathlib.Path, num_alternatives: int = 4, drop_rows_to_fit: bool = True
) -> Pointer:
    """Loads the first stage of an exported PointR; arguments and errors as `load_pointr`."""
    directory = pathlib.Path(directory)
    path = directory / _INPUTS_FILE
    if not path.is_file():
        raise FileNotFoundError(
            f'expected {_INPUTS_FILE} in {directory}, found none; give the folder "model" of a '
            "trained PointR"
        )
    predictor = from_pretrained(
        directory / POINTER, num_alternatives=num_alternatives, drop_rows_to_fit=drop_rows_to_fit
    )
    return Pointer(predictor, from_dict(PointingInputs, read_json_object(path), "inputs"))


def load_pointr(
    directory: str | pathlib.Path, num_alternatives: int = 4, drop_rows_to_fit: bool = True
) -> PointR:
    """Loads an exported PointR, the folder "model" that `Pipeline` makes.

    It has the exported pointer in "point" and the reader in "read"; FileNotFoundError or ValueError
    if a part of it is missing or malformed. An answer names so many cells beside the best one. If a
    table is too long even with its cells cut, the last rows are left out, as `Answer.rows_dropped`
    says, or it is refused.
    """
    pointer = load_pointer(directory, num_alternatives, drop_rows_to_fit)
    return PointR(pointer, from_pretrained(pathlib.Path(directory) / READER))
