"""From folders of tables to files of questions or statements, and what was left out."""

import contextlib
import functools
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from experiments.synthesis import LAYOUTS, MADE
from experiments.synthesis.made_tables import made_tables
from experiments.synthesis.questions import QuestionsConfig, synthetic_questions
from experiments.synthesis.statements import (
    ENTAILED,
    StatementsConfig,
    counterfactual_pairs,
    synthetic_pairs,
)
from experiments.synthesis.typed_table import Made, NothingMadeError
from mate_tf.dataclass_json import require
from mate_tf.datasets.tasks import TABLES, DescribedTable, Division, Source, read_layout
from mate_tf.features.wordpiece import Wordpiece
from mate_tf.paths import is_remote
from mate_tf.records.conversion import Outcome
from mate_tf.records.creation import Creation, count_in_beam, write_interactions, write_with_beam
from mate_tf.records.splits import QUESTIONS, remove_split, split_writer

Maker = Callable[[DescribedTable], Iterable[Made | NothingMadeError]]
_KINDS = ("synthetic", "counterfactual")


@dataclass(frozen=True, kw_only=True)
class Files(Creation):
    """Where tables come from, and where what is made of them goes.

    Attributes:
        task, input_dir: one of LAYOUTS (docs/training.md), and its folder; MADE has none.
        output_dir: another folder, for {part}.jsonl in the format of docs/training.md.
        splits: those that are read; TABLES has none.
        parts: the names of the files with their percentages of the tables.
        num_tables: how many tables MADE makes.
    """

    input_dir: str = ""
    splits: Sequence[str] = ("train",)
    parts: str = "train=90,dev=10"
    num_tables: int = 0

    def __post_init__(self) -> None:
        require(self.task in LAYOUTS, f"expected a layout of {LAYOUTS}, got {self.task!r}")
        is_here = not is_remote(self.output_dir)
        require(is_here, f"expected a folder of this machine as output_dir, got {self.output_dir}")
        if self.task == MADE:
            made = not self.input_dir and self.num_tables > 0
            require(made, "expected num_tables and no input_dir for tables that are made")
        else:
            require(bool(self.input_dir), "expected input_dir, the folder with the tables")
            super().__post_init__()

    def sources(self) -> Iterator[Source]:
        """Yields each table; errors as `read_sources`."""
        if self.task == MADE:
            return made_tables(self.num_tables, seed=0)
        return read_sources(self.task, self.input_dir, self.splits)


def write_questions(files: Files, config: QuestionsConfig) -> str:
    """Writes questions with the cells that answer them; result and errors as `write_statements`."""
    makers = functools.partial(_question_makers, files.vocab_file, config)
    return _write(files, "questions", makers)


def _question_makers(vocab_file: str, config: QuestionsConfig) -> list[Maker]:
    wordpiece = Wordpiece(vocab_file)
    return [lambda source: synthetic_questions(source.table, wordpiece, config)]


def write_statements(files: Files, config: StatementsConfig, kinds: Collection[str]) -> str:
    """Writes true and false statements; the same arguments give the same files.

    The kinds are "synthetic", "counterfactual" or both; the seed of the config is that of the
    latter too. Returns what is in each part, and what was left out.

    Raises:
        FileNotFoundError: if a file or a folder is missing, or there is no table.
        ValueError: if a list of tables is malformed, a part is empty, or the parts or the kinds are
            unknown.
    """
    unknown = [kind for kind in kinds if kind not in _KINDS]
    require(bool(kinds) and not unknown, f"expected kinds of {[*_KINDS]}, got {unknown or 'none'}")
    makers = functools.partial(_statement_makers, files.vocab_file, config, kinds)
    return _write(files, "statements", makers)


def _statement_makers(
    vocab_file: str, config: StatementsConfig, kinds: Collection[str]
) -> list[Maker]:
    wordpiece = Wordpiece(vocab_file)
    makers: dict[str, Maker] = {
        "synthetic": lambda source: synthetic_pairs(source.table, wordpiece, config),
        "counterfactual": lambda it: counterfactual_pairs(it.table, it.texts, config.seed),
    }
    return [makers[kind] for kind in kinds]


def _write(files: Files, what: str, new_makers: Callable[[], list[Maker]]) -> str:
    division = Division.from_text(f"tables:{files.parts}")
    Path(files.output_dir).mkdir(parents=True, exist_ok=True)
    report, empty = [], []
    readable = (it.table.table_id for it in files.sources() if not isinstance(it, ValueError))
    with contextlib.suppress(ValueError):  # of too few tables, as the report will say
        division = division.filled(readable)
    makers = new_makers() if files.beam_options is None else []
    for part in division.names:
        summary = _Summary(what)
        if files.beam_options is not None:
            summary.counts = _write_with_beam(files, part, division, new_makers)
        else:
            sources = files.progress(files.sources(), part, "table")
            tables = _tables_of(sources, part, division, summary.note)
            writer = split_writer(files.output_dir, part, files.num_shards, files.seed, [QUESTIONS])
            with writer as write:
                for outcome in _made_of(makers, tables, summary.note):
                    write(outcome)
        if not summary.num_made:
            remove_split(files.output_dir, part, [QUESTIONS])
            empty.append(part)
        elif files.write_interactions:
            write_interactions(files.output_dir, part)
        report.append(f"{part}: {summary}")
    text = "\n".join(report)
    require(not empty, f"expected {what} in each part, got none in {', '.join(empty)}:\n{text}")
    return text


def _write_with_beam(
    files: Files, part: str, division: Division, new_makers: Callable[[], list[Maker]]
) -> Counter[str]:
    """Writes the same in a pipeline; returns the counts of _Summary."""

    def note(name: str, number: int = 1, _: str = "") -> None:
        count_in_beam(Counter({name: number}))

    def read() -> Iterator[DescribedTable]:
        return _tables_of(files.sources(), part, division, note)

    made = functools.partial(_made_of, note=note)
    return write_with_beam(files, part, [QUESTIONS], read, new_makers, made)


# Notes something, how often, and what is said of it.
Note = Callable[..., None]
_MADE, _LEFT_OUT = "made: ", "left out: "


@dataclass
class _Summary:
    """How many examples of each operation were made, and what was left out and why, as text.

    It keeps what is said first of each reason alone.
    """

    what: str
    counts: Counter[str] = field(default_factory=Counter)
    messages: dict[str, str] = field(default_factory=dict)

    def note(self, name: str, number: int = 1, message: str = "") -> None:
        self.counts[name] += number
        self.messages.setdefault(name, message)

    @property
    def num_made(self) -> int:
        return sum(count for name, count in self.counts.items() if name.startswith(_MADE))

    def __str__(self) -> str:
        tables = f"{self.counts['used']} of {self.counts['tables']} tables"
        lines = [f"{self.num_made} {self.what} about {tables}"]
        for name in sorted(name for name in self.counts if name.startswith(_MADE)):
            lines.append(f"  {name.removeprefix(_MADE)}: {self.counts[name]}")
        for name, count in self.counts.most_common():
            if name.startswith(_LEFT_OUT):
                lines.append(f"  {_LEFT_OUT}{count} {name.removeprefix(_LEFT_OUT)}")
                lines += [f"    {self.messages[name]}"] if self.messages.get(name) else []
        return "\n".join(lines)


def _leave_out(what: str, error: ValueError, note: Note) -> None:
    """Notes a table or a sentence of which nothing is made."""
    reason = error.reason if isinstance(error, NothingMadeError) else "malformed"
    note(f"{_LEFT_OUT}{what}: {reason}", 1, str(error).split("\n")[0])


def _tables_of(
    sources: Iterable[Source], part: str, division: Division, note: Note
) -> Iterator[DescribedTable]:
    """Yields a part of all tables.

    A table with the header and the cells of an earlier one is left out, so parts share nothing.
    """
    seen: set[int] = set()
    for source in sources:
        if isinstance(source, ValueError):
            if part == division.names[0]:  # it has no name to be divided by
                note("tables")
                _leave_out("table", source, note)
            continue
        table = source.table
        content = hash((table.header, table.rows))
        is_copy = content in seen
        seen.add(content)
        if division.part_of(table.table_id) != part:
            continue
        note("tables")
        if is_copy:
            message = f"expected each table once (table '{table.table_id}')"
            _leave_out("table", NothingMadeError("a copy of another", message), note)
            continue
        yield source


def _made_of(
    makers: Sequence[Maker], tables: Iterable[DescribedTable], note: Note
) -> Iterator[Outcome]:
    """Yields what is made of tables, and notes it."""
    for described in tables:
        is_used = False
        for make in makers:
            try:
                for made in make(described):
                    if isinstance(made, NothingMadeError):
                        _leave_out("sentence", made, note)
                        continue
                    is_used = True
                    note(_MADE + made.operation, len(made.examples))
                    yield from (Outcome(*example) for example in made.examples)
            except NothingMadeError as error:
                _leave_out("table", error, note)
        if is_used:
            note("used")


def read_sources(layout: str, directory: str | Path, splits: Sequence[str]) -> Iterator[Source]:
    """Yields each table of some splits with texts that are true of it, as `read_layout` does.

    WTQ has no such texts. TabFact's are the entailed statements, and those of "INTERACTIONS" these
    and texts without an answer. "TABLES" has no splits.
    """
    tests: dict[str, Callable[[Any], bool]] = {
        "WTQ": lambda _: False,
        "TABFACT": lambda statement: statement.class_index == ENTAILED,
        "INTERACTIONS": _is_true,
    }
    for split in splits if layout != TABLES else ["train"]:
        yield from read_layout(layout, directory, split, tests.get(layout, lambda _: True))


def _is_true(question: Any) -> bool:
    """Whether a question of an interaction is a text that is true of its table."""
    if question.answer.HasField("class_index"):
        return question.answer.class_index == ENTAILED
    return not question.HasField("answer")
