"""What a PointR is made of, and what each of its stages sees of a table with passages."""

import dataclasses
import functools
from typing import Literal, get_args

from mate_tf.dataclass_json import require
from mate_tf.datasets.passages import expand_cells
from mate_tf.datasets.supervision import SupervisionError, supervise_linked
from mate_tf.datasets.tasks import Task
from mate_tf.features.config import FeatureConfig
from mate_tf.tables.linked_table import LinkedTable
from mate_tf.tables.table import Question, Table
from mate_tf.training.config import SpanReadingTrainingConfig, TableQATrainingConfig

Evidence = Literal["both", "table", "passages"]
_BETWEEN_TEXTS = " : "


@dataclasses.dataclass(frozen=True)
class PointingInputs:
    """What the pointer sees of a table and its passages, and which questions teach it.

    Attributes:
        evidence: "both", or one of the paper's baselines (table 5): "table" has no passages,
            "passages" has the passages alone, one a row, without the table that links to them.
        num_sentences: the paper's k: this many sentences of all passages, those most like the
            question, are put into the cells that link to them.
        with_titles: whether a passage's title precedes its sentences.
        discard_ambiguous: whether training leaves out questions whose answer is in several cells
            (table 6, "- ambiguous").

    Raises:
        ValueError: if the evidence is unknown or num_sentences is negative.
    """

    evidence: Evidence = "both"
    num_sentences: int = 5
    with_titles: bool = False
    discard_ambiguous: bool = False

    def __post_init__(self) -> None:
        require(
            self.evidence in get_args(Evidence),
            f"expected evidence 'both', 'table' or 'passages', got {self.evidence!r}",
        )
        require(
            self.num_sentences >= 0,
            f"expected num_sentences of at least 0, got {self.num_sentences}",
        )


@dataclasses.dataclass(frozen=True, kw_only=True)
class PointRConfig:
    """Both stages.

    Attributes:
        point: the training of the pointer, which selects the cell that holds the answer.
        read: the training of the reader, which reads the answer in that cell and its passages.
        inputs: what the pointer sees.
    """

    point: TableQATrainingConfig
    read: SpanReadingTrainingConfig
    inputs: PointingInputs = dataclasses.field(default_factory=PointingInputs)


def restrict(linked: LinkedTable, evidence: Evidence) -> LinkedTable:
    """A table and its passages, or what is left of them with one or the other alone.

    Args:
        linked: the table and its passages.
        evidence: "both" changes nothing; "table" takes the passages away; "passages" makes a row of
            each passage, with one empty cell that links to it.
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


def pointing_task(task: Task, inputs: PointingInputs) -> Task:
    """A data set of tables with passages, as the pointer's records are made of it.

    Args:
        task: the data set's; its reader yields linked tables.
        inputs: what the pointer sees.
    """
    return task._replace(
        supervise=functools.partial(_supervise, inputs.discard_ambiguous),
        expand=functools.partial(expand, inputs),
    )


def pointing_features(max_seq_length: int) -> FeatureConfig:
    """How the pointer's features are made.

    The longest cells are cut until an example fits. If that is not enough, the last rows are left
    out.
    """
    return FeatureConfig(max_seq_length=max_seq_length, trim_cells=True, drop_rows_to_fit=True)


def expand(
    inputs: PointingInputs, linked: LinkedTable, question: Question, original: bool = False
) -> Table:
    """The table that the pointer is asked about."""
    return expand_cells(linked, question, inputs.num_sentences, inputs.with_titles, original)


def _supervise(
    discard_ambiguous: bool, linked: LinkedTable, question: Question, strict: bool, original: bool
) -> Question:
    question = supervise_linked(linked, question, original)
    count = len(question.answer_coordinates)
    if strict and discard_ambiguous and count > 1:
        raise SupervisionError(
            "ambiguous answer",
            f"expected the answer in one cell, found it in {count} "
            f"(table '{linked.table.table_id}', question '{question.question_id}')",
        )
    return question


def cell_table(linked: LinkedTable, row: int, column: int) -> Table:
    """What the reader reads: a cell with all of its passages, under a column without a name.

    Args:
        linked: the table and its passages.
        row, column: the cell of the table's body, counted from zero.

    Raises:
        IndexError: if the table has no such cell.
    """
    table = linked.table
    text = cell_text(linked, row, column)
    return Table(("",), ((text,),), table.table_id, document_title=table.document_title)


def cell_text(linked: LinkedTable, row: int, column: int) -> str:
    """A cell's own text and those of its passages: "Oslo : Oslo is the capital of Norway ."."""
    passages = (passage.text for passage in linked.passages[row][column])
    return _BETWEEN_TEXTS.join((linked.table.rows[row][column], *passages))
