"""Answers to questions about a table with passages: a cell is pointed to, then read.

What both stages see of a table, in records and in use, is here too.
"""

import dataclasses
import itertools
import json
import pathlib
from collections.abc import Iterable, Iterator
from typing import Literal, NamedTuple, get_args

from mate_tf.answers.answer import Answer, no_answer
from mate_tf.answers.predictor import Predictor
from mate_tf.config import read_json_object
from mate_tf.dataclass_json import from_dict, require
from mate_tf.datasets.hybridqa import expand_cells
from mate_tf.datasets.supervision import SupervisionError, supervise_linked
from mate_tf.features.builder import QUESTIONS_AT_ONCE
from mate_tf.reading.text_files import complete_text_file
from mate_tf.serving.loading import from_pretrained
from mate_tf.tables.linked_table import LinkedTable
from mate_tf.tables.table import Coordinates, Question, Table
from mate_tf.training.config import SpanReadingTrainingConfig, TableQATrainingConfig
from mate_tf.weights.folder import POINTR_FILE

POINTER, READER = "point", "read"  # the folders of both stages in an exported PointR
Pairs = Iterable[tuple[LinkedTable, Question]]
Evidence = Literal["both", "table", "passages"]
_BETWEEN_TEXTS = " : "


@dataclasses.dataclass(frozen=True)
class PointingInputs:
    """The pointer's view of a table and its passages.

    Attributes:
        evidence: "both", or one of the paper's baselines (table 5): "table" has no passages,
            "passages" has the passages alone, one a row, without the table that links to them.
        num_sentences: the paper's k: this many sentences of all passages, those most like the
            question, are put into the cells that link to them.

    A ValueError says if the evidence is unknown or num_sentences is negative.
    """

    evidence: Evidence = "both"
    num_sentences: int = 5

    def __post_init__(self) -> None:
        evidence, number = self.evidence, self.num_sentences
        known = evidence in get_args(Evidence)
        require(known, f"expected evidence 'both', 'table' or 'passages', got {evidence!r}")
        require(number >= 0, f"expected num_sentences of at least 0, got {number}")

    def expand(self, linked: LinkedTable, question: Question, original: bool = False) -> Table:
        """The table that the pointer is asked about."""
        return expand_cells(linked, question, self.num_sentences, original=original)


@dataclasses.dataclass(frozen=True, kw_only=True)
class PointRConfig:
    """The trainings of both stages, and what the first sees."""

    point: TableQATrainingConfig  # selects the cell that holds the answer
    read: SpanReadingTrainingConfig  # reads the answer in that cell and its passages
    inputs: PointingInputs = dataclasses.field(default_factory=PointingInputs)
    # What the reader learns first, from passages without questions; None for nothing.
    clozes: SpanReadingTrainingConfig | None = None


def restrict(linked: LinkedTable, evidence: Evidence) -> LinkedTable:
    """A table and its passages, or what is left of them with one or the other alone.

    "passages" makes a row of each passage, with one empty cell that links to it.
    """
    if evidence == "both":
        return linked
    table = linked.table
    if evidence == "table":
        empty = (((),) * table.num_columns,) * table.num_rows
        return LinkedTable(table, empty, dead_links=linked.dead_links)
    passages = tuple(((passage,),) for passage in linked.distinct_passages())
    rows = passages or (((),),)  # a table has at least one row
    alone = Table(("",), (("",),) * len(rows), table.table_id)
    return LinkedTable(alone, rows, linked.other_passages, linked.dead_links)


def restrict_pair(
    linked: LinkedTable, question: Question, evidence: Evidence
) -> tuple[LinkedTable, Question]:
    """The same with a question, which forgets the cells of its answer if the table changes."""
    if evidence != "both":
        question = dataclasses.replace(question, answer_coordinates=())
    return restrict(linked, evidence), question


def cell_table(linked: LinkedTable, row: int, column: int) -> Table:
    """The reader's table: a body's cell with its passages, under a column without a name."""
    table, text = linked.table, cell_text(linked, row, column)
    return Table(("",), ((text,),), table.table_id, document_title=table.document_title)


def cell_text(linked: LinkedTable, row: int, column: int) -> str:
    """A cell's own text and those of its passages: "Oslo : Oslo is the capital of Norway ."."""
    passages = (passage.text for passage in linked.passages[row][column])
    return _BETWEEN_TEXTS.join((linked.table.rows[row][column], *passages))


def gold_cells(linked: LinkedTable, question: Question) -> Coordinates:
    """The cells that hold an answer, by their own text or a passage; none if it is not found."""
    try:
        return supervise_linked(linked, question).answer_coordinates
    except SupervisionError:
        return ()


def reading_cells(all_pointed: Iterable["Pointed"]) -> Iterator[tuple[Table, Question]]:
    """Yields the cell that the reader trains on for each question, with what it answers.

    Of the cells that hold the answer it is the one that the pointer ranks best, or else the first
    in the table. If no cell does, it is the best cell, and the conversion counts the answer as cut
    off. Answers that the cell lacks are left out.
    """
    for pointed in all_pointed:
        known, question, _ = pointed
        gold = gold_cells(known, question)
        ranked = [cell for cell in pointed.cells if cell in gold]
        best = [*ranked, *gold, *pointed.cells, (0, 0)][0]
        yield cell_table(known, *best), _answers_in(known, best, question)


def _answers_in(known: LinkedTable, cell: tuple[int, int], question: Question) -> Question:
    """The question with those of its answers that the cell holds; with all if it holds none."""
    row, column = cell
    table = Table(("",), ((known.table.rows[row][column],),), known.table.table_id)
    alone = LinkedTable(table, ((known.passages[row][column],),))
    asked = (Question(question.text, answers=(answer,)) for answer in question.answers)
    held = tuple(one.answers[0] for one in asked if gold_cells(alone, one))
    return dataclasses.replace(question, answers=held or question.answers, answer_coordinates=())


class Pointed(NamedTuple):
    """The pointer's answer to a question."""

    known: LinkedTable  # what it knows of the table and its passages (`restrict`)
    question: Question  # as it is asked about that
    answer: Answer | ValueError  # the best cell with the next best ones; or why none

    @property
    def cells(self) -> list[tuple[int, int]]:
        """(row, column) of the cells, the best first; none if nothing was seen."""
        if isinstance(self.answer, ValueError) or not self.answer.cells:
            return []
        return [one.coordinates[0] for one in (self.answer, *self.answer.alternatives)]


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
            tables = ((self.inputs.expand(*pair), pair[1]) for pair in known)
            for pair, (_, _, answer) in zip(known, self.predictor.answer_all(tables), strict=True):
                yield Pointed(*pair, answer)


@dataclasses.dataclass(frozen=True)
class PointR:
    """Answers questions with two models: one selects a cell, one reads in it and its passages."""

    pointer: Pointer
    reader: Predictor  # of a span in a table of one cell

    def answer(self, linked: LinkedTable, question: str | Question) -> Answer:
        """Answers one question, or its text, as `answer_all`; ValueError beyond a limit."""
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
            for pair, pointed in zip(chunk, all_pointed, strict=True):
                answer = pointed.answer
                if isinstance(answer, Answer) and pointed.cells:
                    answer = _joined(answer, next(read)[2])
                yield *pair, answer


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
    with complete_text_file(pathlib.Path(directory) / POINTR_FILE) as file:
        file.write(json.dumps(dataclasses.asdict(inputs), indent=2) + "\n")


def load_pointer(
    directory: str | pathlib.Path, num_alternatives: int = 4, drop_rows_to_fit: bool = True
) -> Pointer:
    """Loads the first stage of an exported PointR; arguments and errors as `load_pointr`."""
    directory = pathlib.Path(directory)
    path = directory / POINTR_FILE
    if not path.is_file():
        raise FileNotFoundError(
            f'expected {POINTR_FILE} in {directory}, found none; give the folder "model" of a '
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

    An answer names so many cells beside the best one. If a table is too long even with its cells
    cut, the last rows are left out, as `Answer.rows_dropped` says, or it is refused.
    FileNotFoundError or ValueError if a part of the folder is missing or malformed.
    """
    pointer = load_pointer(directory, num_alternatives, drop_rows_to_fit)
    return PointR(pointer, from_pretrained(pathlib.Path(directory) / READER))
