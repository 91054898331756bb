"""What each stage of PointR sees of a table with passages.

The questions that a PointR learns from and answers, split by split.
"""

import dataclasses
import functools
import pathlib
from collections.abc import Iterator, Mapping

from mate_tf.datasets.passages import expand_cells
from mate_tf.datasets.supervision import SupervisionError, supervise_linked
from mate_tf.datasets.tasks import Task, read_split
from mate_tf.features.config import FeatureConfig
from mate_tf.pointr.config import Evidence, PointingInputs
from mate_tf.tables.linked_table import LinkedTable
from mate_tf.tables.table import Question, Table


@dataclasses.dataclass(frozen=True)
class Source:
    """The questions of a data set.

    Attributes:
        task: the name of its reader, of tables with passages.
        directory: its folder.
        splits: what it calls the splits "train" and "dev", and others that are answered.
    """

    task: str
    directory: str
    splits: Mapping[str, str]

    def read(self, name: str) -> Iterator[tuple[LinkedTable, Question]]:
        """The questions of a split, by our name for it; errors as the task's reader has them."""
        return read_split(self.task, self.directory, self.splits[name])

    def state(self) -> dict[str, int]:
        """What changes where a file of the folder does, without reading any."""
        files = [entry for entry in pathlib.Path(self.directory).rglob("*") if entry.is_file()]
        states = [file.stat() for file in files]
        return {
            "files": len(files),
            "bytes": sum(state.st_size for state in states),
            "changed": max((state.st_mtime_ns for state in states), default=0),
        }


_BETWEEN_TEXTS = " : "


def restrict(linked: LinkedTable, evidence: Evidence) -> LinkedTable:
    """A table and its passages, or what is known with the one or the other alone.

    Args:
        linked: the table and its passages.
        evidence: "both" leaves it as it is; "table" takes the passages away; "passages" makes of
            each passage a row, whose only cell says nothing itself.
    """
    if evidence == "both":
        return linked
    table = linked.table
    if evidence == "table":
        empty = (((),) * table.num_columns,) * table.num_rows
        return LinkedTable(table, empty, dead_links=linked.dead_links)
    passages = tuple(((passage,),) for passage in linked.distinct_passages())
    rows = passages or (((),),)  # a table has a row at least
    alone = Table(("",), (("",),) * len(rows), table.table_id)
    return LinkedTable(alone, rows, linked.other_passages, linked.dead_links)


def restrict_pair(
    linked: LinkedTable, question: Question, evidence: Evidence
) -> tuple[LinkedTable, Question]:
    """The same with a question, whose answer's cells are not known of a table with less in it."""
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
    """How the pointer's features are made: the longest cells are cut until an example fits.

    Where that does not suffice, the last rows are left out.
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
    if strict and discard_ambiguous and len(question.answer_coordinates) > 1:
        raise SupervisionError(
            "ambiguous answer",
            f"expected the answer in one cell, found it in {len(question.answer_coordinates)} "
            f"(table '{linked.table.table_id}', question '{question.question_id}')",
        )
    return question


def cell_table(linked: LinkedTable, row: int, column: int) -> Table:
    """What the reader reads: a cell with all of its passages, under a column without a name.

    Args:
        linked: the table and its passages.
        row, column: the cell, in the body, counted from zero.

    Raises:
        IndexError: if it is not the table's.
    """
    table = linked.table
    text = cell_text(linked, row, column)
    return Table(("",), ((text,),), table.table_id, document_title=table.document_title)


def cell_text(linked: LinkedTable, row: int, column: int) -> str:
    """A cell's own text and those of its passages: "Oslo : Oslo is the capital of Norway ."."""
    passages = (passage.text for passage in linked.passages[row][column])
    return _BETWEEN_TEXTS.join((linked.table.rows[row][column], *passages))
