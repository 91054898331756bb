"""From folders of tables to files of questions or statements, and what was left out."""

import contextlib
import os
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

from mate_tf.dataclass_json import require
from mate_tf.datasets import described_tables
from mate_tf.datasets.described_tables import DescribedTable, Source
from mate_tf.datasets.json_lines import write_json_lines
from mate_tf.datasets.tabfact import read_tabfact
from mate_tf.datasets.tasks import Division
from mate_tf.features.wordpiece import Wordpiece
from mate_tf.records.creation import write_interactions
from mate_tf.synthesis import LAYOUTS, MADE
from mate_tf.synthesis.made_tables import made_tables
from mate_tf.synthesis.questions import QuestionsConfig, synthetic_questions
from mate_tf.synthesis.statements import (
    ENTAILED,
    StatementsConfig,
    counterfactual_pairs,
    synthetic_pairs,
)
from mate_tf.synthesis.typed_table import Made, NothingMadeError
from mate_tf.tables.table import Question, Table

Maker = Callable[[DescribedTable], Iterable[Made | NothingMadeError]]


@dataclass(frozen=True)
class Files:
    """Where tables come from, and where what is made of them goes.

    Attributes:
        layout, input_dir: one of LAYOUTS (docs/training.md), and its folder; MADE has none.
        output_dir: another folder, for {part}.jsonl in the format of docs/training.md.
        vocab_file: BERT's or TAPAS's vocabulary.
        splits: those that are read; TABLES has none.
        parts: the names of the files with their percentages of the tables.
        progress: wraps an iterable of tables, with the part's name, as tqdm does.
        num_tables: how many tables MADE makes.
        write_interactions: whether to write interactions/{part}.tfrecord of TAPAS's release too.
    """

    layout: str
    input_dir: str | os.PathLike[str] | None
    output_dir: str | os.PathLike[str]
    vocab_file: str | os.PathLike[str]
    splits: Sequence[str] = ("train",)
    parts: str = "train=90,dev=10"
    progress: Callable[[Iterable[Any], str], Iterable[Any]] = lambda tables, part: tables
    num_tables: int = 0
    write_interactions: bool = False

    def __post_init__(self) -> None:
        if self.layout == MADE:
            made = self.input_dir is None and self.num_tables > 0
            require(made, "expected num_tables and no input_dir for tables that are made")
        else:
            require(self.input_dir is not None, "expected input_dir, the folder with the tables")

    def sources(self) -> Iterator[Source]:
        """Yields each table; errors as `read_sources`."""
        if self.input_dir is None:
            return made_tables(self.num_tables, seed=0)
        return read_sources(self.layout, self.input_dir, self.splits)


def write_questions(files: Files, config: QuestionsConfig) -> str:
    """Writes questions with the cells that answer them; result and errors as `write_statements`."""
    wordpiece = Wordpiece(files.vocab_file)
    return _write(files, "questions", [lambda of: synthetic_questions(of.table, wordpiece, config)])


def write_statements(files: Files, config: StatementsConfig, kinds: Collection[str]) -> str:
    """Writes true and false statements; the same arguments give the same files.

    The kinds are "synthetic", "counterfactual" or both; the seed of the config is that of the
    latter too. Returns what is in each part, and what was left out.

    Raises:
        FileNotFoundError: if a file or a folder is missing, or there is no table.
        ValueError: if a list of tables is malformed, a part is empty, the output is the input's
            folder, or the layout, the parts or the kinds are unknown.
    """
    wordpiece = Wordpiece(files.vocab_file)
    makers: dict[str, Maker] = {
        "synthetic": lambda source: synthetic_pairs(source.table, wordpiece, config),
        "counterfactual": lambda source: counterfactual_pairs(
            source.table, source.texts, config.seed
        ),
    }
    unknown = [kind for kind in kinds if kind not in makers]
    require(bool(kinds) and not unknown, f"expected kinds of {[*makers]}, got {unknown or 'none'}")
    return _write(files, "statements", [makers[kind] for kind in kinds])


def _write(files: Files, what: str, makers: Sequence[Maker]) -> str:
    require(files.layout in LAYOUTS, f"expected a layout of {LAYOUTS}, got {files.layout!r}")
    if files.input_dir and os.path.realpath(files.input_dir) == os.path.realpath(files.output_dir):
        raise ValueError(f"expected another folder than the input's, got {files.output_dir}")
    division = Division.from_text(f"tables:{files.parts}")
    output = Path(files.output_dir)
    output.mkdir(parents=True, exist_ok=True)
    report, empty = [], []
    readable = (
        source.table.table_id for source in files.sources() if not isinstance(source, ValueError)
    )
    with contextlib.suppress(ValueError):  # of too few tables, as the report will say
        division = division.filled(readable)
    for part in division.names:
        summary = _Summary(what)
        made = _made_of(files.progress(files.sources(), part), part, division, makers, summary)
        if not write_json_lines(output / f"{part}.jsonl", made):
            (output / f"{part}.jsonl").unlink()
            empty.append(part)
        elif files.write_interactions:
            write_interactions(output, part)
        report.append(f"{part}: {summary}")
    text = "\n".join(report)
    require(not empty, f"expected {what} in each part, got none in {', '.join(empty)}:\n{text}")
    return text


@dataclass
class _Summary:
    """How many examples of each operation were made, and what was left out and why, as text."""

    what: str
    tables: int = 0
    tables_used: int = 0
    examples: Counter[str] = field(default_factory=Counter)
    left_out: defaultdict[str, list[str]] = field(default_factory=lambda: defaultdict(list))

    def leave_out(self, what: str, error: ValueError) -> None:
        """Notes a table or a sentence of which nothing was made."""
        reason = error.reason if isinstance(error, NothingMadeError) else "malformed"
        self.left_out[f"{what}: {reason}"].append(str(error).split("\n")[0])

    def __str__(self) -> str:
        total = self.examples.total()
        lines = [f"{total} {self.what} about {self.tables_used} of {self.tables} tables"]
        lines += [f"  {operation}: {count}" for operation, count in sorted(self.examples.items())]
        for reason, messages in sorted(self.left_out.items(), key=lambda item: -len(item[1])):
            lines += [f"  left out: {len(messages)} {reason}", f"    {messages[0]}"]
        return "\n".join(lines)


def _made_of(
    sources: Iterable[Source],
    part: str,
    division: Division,
    makers: Sequence[Maker],
    summary: _Summary,
) -> Iterator[tuple[Table, Question]]:
    """Yields what is made of a part of all tables, and adds it to the summary.

    A table with the header and the cells of an earlier one is left out, so parts share nothing.
    """
    seen: set[int] = set()
    for source in sources:
        if isinstance(source, ValueError):
            if part == division.names[0]:  # it has no name to be divided by
                summary.tables += 1
                summary.leave_out("table", source)
            continue
        table = source.table
        content = hash((table.header, table.rows))
        is_copy = content in seen
        seen.add(content)
        if division.part_of(table.table_id) != part:
            continue
        summary.tables += 1
        if is_copy:
            message = f"expected each table once (table '{table.table_id}')"
            summary.leave_out("table", NothingMadeError("a copy of another", message))
            continue
        before = summary.examples.total()
        for make in makers:
            try:
                for made in make(source):
                    if isinstance(made, NothingMadeError):
                        summary.leave_out("sentence", made)
                        continue
                    summary.examples[made.operation] += len(made.examples)
                    yield from made.examples
            except NothingMadeError as error:
                summary.leave_out("table", error)
        summary.tables_used += summary.examples.total() > before


def read_sources(
    layout: str, directory: str | os.PathLike[str], splits: Sequence[str]
) -> Iterator[Source]:
    """Yields each table of some splits, in the order of the files.

    The layout is one of LAYOUTS with a folder. "TABLES", which has no splits, and "TEXTS" are as in
    `read_corpus`; texts have to be true of their tables. "WTQ" has no such texts. TabFact's are the
    entailed statements, and those of "INTERACTIONS" these and texts without an answer.

    Raises:
        FileNotFoundError: if there is no table.
        ValueError: if a file that lists tables is malformed, or a table of WTQ or TABFACT. Another
            malformed table is yielded as its error.
    """
    directory = Path(directory)
    if layout == "TABLES":
        yield from described_tables.read_table_folder(directory)
        return
    for split in splits:
        if layout == "TEXTS":
            yield from described_tables.read_described_tables(directory / f"{split}.jsonl")
        elif layout == "WTQ":
            for described in described_tables.read_corpus(layout, directory, split):
                yield described._replace(texts=())  # they are questions
        elif layout == "INTERACTIONS":
            yield from described_tables.read_described_interactions(directory, split, _is_true)
        else:
            yield from _read_tabfact(directory, split)


def _is_true(question: Any) -> bool:
    """Whether a question of an interaction is a text that is true of its table."""
    if question.answer.HasField("class_index"):
        return question.answer.class_index == ENTAILED
    return not question.HasField("answer")


def _read_tabfact(directory: Path, split: str) -> Iterator[Source]:
    pairs = read_tabfact(directory, split)
    for name, of_table in groupby(pairs, key=lambda pair: pair[0].table_id):
        statements = list(of_table)
        entailed = [q.text for _, q in statements if q.class_index == ENTAILED]
        yield DescribedTable(name, statements[0][0], tuple(entailed))
