"""What a PointR is made of, what its stages see of a table with passages, and their records."""

import dataclasses
import functools
import pathlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_args

from mate_tf.dataclass_json import require
from mate_tf.datasets.hybridqa import expand_cells
from mate_tf.datasets.supervision import SupervisionError, supervise_linked
from mate_tf.datasets.tasks import Task, read_split
from mate_tf.features.builder import FeatureBuilder
from mate_tf.features.config import FeatureConfig
from mate_tf.features.wordpiece import Wordpiece
from mate_tf.records.conversion import Summary, convert_all
from mate_tf.records.splits import split_writer
from mate_tf.tables.linked_table import LinkedTable
from mate_tf.tables.table import Coordinates, Question, Table
from mate_tf.training.config import SpanReadingTrainingConfig, TableQATrainingConfig

if TYPE_CHECKING:
    from mate_tf.pointr.answering import Pointed

Item = TypeVar("Item")
# Wraps what takes long, with a name, as tqdm does.
Progress = Callable[[Iterable[Item], str], Iterable[Item]]
Evidence = Literal["both", "table", "passages"]
_BETWEEN_TEXTS = " : "
_NEEDED = ("train", "dev")  # splits that may not be empty


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

    A ValueError says if the evidence is unknown or num_sentences is negative.
    """

    evidence: Evidence = "both"
    num_sentences: int = 5
    with_titles: bool = False
    discard_ambiguous: bool = False

    def __post_init__(self) -> None:
        evidence, number = self.evidence, self.num_sentences
        known = evidence in get_args(Evidence)
        require(known, f"expected evidence 'both', 'table' or 'passages', got {evidence!r}")
        require(number >= 0, f"expected num_sentences of at least 0, got {number}")


@dataclasses.dataclass(frozen=True, kw_only=True)
class PointRConfig:
    """The trainings of both stages, and what the first sees."""

    point: TableQATrainingConfig  # selects the cell that holds the answer
    read: SpanReadingTrainingConfig  # reads the answer in that cell and its passages
    inputs: PointingInputs = dataclasses.field(default_factory=PointingInputs)


def restrict(linked: LinkedTable, evidence: Evidence) -> LinkedTable:
    """A table and its passages, or what is left of them with one or the other alone.

    "both" changes nothing; "table" takes the passages away; "passages" makes a row of each passage,
    with one empty cell that links to it.
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
    """A data set of tables with passages, as the pointer's records are made of it."""
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
    question = supervise_linked(linked, question, strict, original)
    count = len(question.answer_coordinates)
    if strict and discard_ambiguous and count > 1:
        raise SupervisionError(
            "ambiguous answer",
            f"expected the answer in one cell, found it in {count} "
            f"(table '{linked.table.table_id}', question '{question.question_id}')",
        )
    return question


def cell_table(linked: LinkedTable, row: int, column: int) -> Table:
    """What the reader reads: a body's cell with its passages, under a column without a name."""
    table = linked.table
    text = cell_text(linked, row, column)
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


@dataclasses.dataclass(frozen=True)
class Source:
    """The questions of a data set of tables with passages, in its folder."""

    task: str  # the name of its reader
    directory: str
    splits: Mapping[str, str]  # its names for "train" and "dev", and for others to answer

    def read(self, name: str) -> Iterator[tuple[LinkedTable, Question]]:
        """The questions of a split, by our name for it; errors as the task's reader."""
        return read_split(self.task, self.directory, self.splits[name])


def reading_cells(all_pointed: "Iterable[Pointed]") -> Iterator[tuple[Table, Question]]:
    """Yields the cell that the reader trains on for each question, with what it answers.

    Of several cells that hold the answer it is the one that the pointer ranks best: the pointer
    knows the reasons of the question, and another cell may hold the words by chance. If none of the
    ranked cells holds it, it is the first in the table that does. If no cell does, it is the best
    cell, and the conversion counts the answer as cut off. Answers that the cell lacks are left out.
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
    held = tuple(
        answer
        for answer in question.answers
        if gold_cells(alone, Question(question.text, answers=(answer,)))
    )
    return dataclasses.replace(question, answers=held or question.answers, answer_coordinates=())


def write_split(
    directory: pathlib.Path,
    name: str,
    task: Task,
    features: FeatureConfig,
    pairs: Iterable[tuple[Any, Question]],
    progress: Progress,
    max_answer_length: int | None = None,
) -> str:
    """Writes a split's records and questions to a prepared folder, and says what became of them.

    The pairs are what the task's reader yields. Questions that teach nothing are left out of
    "train". An answer that can be read has at most so many tokens; None for no limit. ValueError if
    "train" or "dev" is empty.
    """
    builder = FeatureBuilder(Wordpiece(directory / "vocab.txt"), features)
    outcomes = convert_all(task, builder, pairs, is_training=name == "train")
    summary, num_long = Summary(), 0
    with split_writer(str(directory), name) as write:
        for outcome in progress(outcomes, f"{directory.name} {name}"):
            summary.add(outcome)
            if max_answer_length is not None and outcome.features is not None:
                num_long += int(outcome.features["label_ids"].sum()) > max_answer_length
            write(outcome)
    if name in _NEEDED and not summary.num_kept:
        raise ValueError(f"expected examples in the split '{name}', got none: {summary}")
    report = f"{name}: {summary}\n  whole within {features.max_seq_length} tokens: "
    report += f"{summary.num_whole} of {summary.num_sized}"
    return f"{report}\n  answers too long to be read: {num_long}" if num_long else report
