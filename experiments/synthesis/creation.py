"""From folders of tables to files of questions or statements, and what was left out."""

import contextlib
import functools
import os
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import IO, Any

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
from mate_tf.datasets import described_tables
from mate_tf.datasets.described_tables import DescribedTable, Source
from mate_tf.datasets.json_lines import json_line
from mate_tf.datasets.tabfact import read_tabfact
from mate_tf.datasets.tasks import Division
from mate_tf.features.wordpiece import Wordpiece
from mate_tf.paths import complete_file, is_remote
from mate_tf.private_apis import import_extra
from mate_tf.records.creation import count_in_beam, run_pipeline, step, write_interactions
from mate_tf.records.splits import QUESTIONS, Spool, place, remove_split, split_file
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
        num_shards, seed: files to spread each part over, None for one; and of their order.
        beam_options: as of `records.creation.Creation`.
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
    num_shards: int | None = None
    seed: int = 0
    beam_options: Sequence[str] | None = None

    def __post_init__(self) -> None:
        is_here = not is_remote(self.output_dir)
        require(is_here, f"expected a folder of this machine as output_dir, got {self.output_dir}")
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
    return _write(files, "questions", functools.partial(_question_makers, files, config))


def _question_makers(files: Files, config: QuestionsConfig) -> list[Maker]:
    wordpiece = Wordpiece(files.vocab_file)
    return [lambda of: synthetic_questions(of.table, wordpiece, config)]


def write_statements(files: Files, config: StatementsConfig, kinds: Collection[str]) -> str:
    """Writes true and false statements; the same arguments give the same files.

    The kinds are "synthetic", "counterfactual" or both; the seed of the config is that of the
    latter too. Returns what is in each part, and what was left out.

    Raises:
        FileNotFoundError: if a file or a folder is missing, or there is no table.
        ValueError: if a list of tables is malformed, a part is empty, the output is the input's
            folder, or the layout, the parts or the kinds are unknown.
    """
    unknown = [kind for kind in kinds if kind not in _KINDS]
    require(bool(kinds) and not unknown, f"expected kinds of {[*_KINDS]}, got {unknown or 'none'}")
    return _write(files, "statements", functools.partial(_statement_makers, files, config, kinds))


_KINDS = ("synthetic", "counterfactual")


def _statement_makers(
    files: Files, config: StatementsConfig, kinds: Collection[str]
) -> list[Maker]:
    wordpiece = Wordpiece(files.vocab_file)

    def synthetic(source: DescribedTable) -> Iterator[Made]:
        return synthetic_pairs(source.table, wordpiece, config)

    def counterfactual(source: DescribedTable) -> Iterator[Made | NothingMadeError]:
        return counterfactual_pairs(source.table, source.texts, config.seed)

    makers: dict[str, Maker] = {"synthetic": synthetic, "counterfactual": counterfactual}
    return [makers[kind] for kind in kinds]


def _write(files: Files, what: str, new_makers: Callable[[], list[Maker]]) -> str:
    require(files.layout in LAYOUTS, f"expected a layout of {LAYOUTS}, got {files.layout!r}")
    if files.input_dir and os.path.realpath(files.input_dir) == os.path.realpath(files.output_dir):
        raise ValueError(f"expected another folder than the input's, got {files.output_dir}")
    division = Division.from_text(f"tables:{files.parts}")
    Path(files.output_dir).mkdir(parents=True, exist_ok=True)
    report, empty = [], []
    readable = (
        source.table.table_id for source in files.sources() if not isinstance(source, ValueError)
    )
    with contextlib.suppress(ValueError):  # of too few tables, as the report will say
        division = division.filled(readable)
    makers = new_makers() if files.beam_options is None else []
    for part in division.names:
        if files.beam_options is None:
            summary = _write_here(files, part, division, makers, _Summary(what))
        else:
            counts = _write_with_beam(files, part, division, new_makers)
            summary = _Summary(what, counts)
        if not summary.num_made:
            _remove(files, part)
            empty.append(part)
        elif files.write_interactions:
            write_interactions(files.output_dir, part)
        report.append(f"{part}: {summary}")
    text = "\n".join(report)
    require(not empty, f"expected {what} in each part, got none in {', '.join(empty)}:\n{text}")
    return text


def _remove(files: Files, part: str) -> None:
    remove_split(files.output_dir, part, [QUESTIONS])


def _write_here(
    files: Files, part: str, division: Division, makers: list[Maker], summary: "_Summary"
) -> "_Summary":
    """Writes a part in this process."""
    tables = _tables_of(files.progress(files.sources(), part), part, division, summary.note)

    def made() -> Iterator[tuple[Table, Question]]:
        for described in tables:
            yield from _made_of(described, makers, summary.note)

    if files.num_shards is None:
        with _written(files, part) as file:
            for pair in made():
                file.write(json_line(*pair).encode())
            _remove(files, part)
        return summary
    with Spool(files.num_shards) as spool:
        for table, question in made():
            positions = [place(question.question_id, files.seed, files.num_shards)]
            spool.add((json_line(table, question).encode(), None, None), positions)
        _remove(files, part)
        for shard in range(files.num_shards):
            with _written(files, part, shard) as file:
                for _, _, (line, _, _) in spool.read_shard(shard):
                    file.write(line or b"")
    return summary


def _write_with_beam(
    files: Files, part: str, division: Division, new_makers: Callable[[], list[Maker]]
) -> Counter[str]:
    """Writes the same in a pipeline, as `records.creation` does; returns the counts of _Summary."""
    beam = import_extra("apache_beam", "beam", "to make it with Beam")
    num_shards = files.num_shards or 1

    def note(name: str, number: int = 1, _: str = "") -> None:
        count_in_beam(Counter({name: number}))

    def make(makers: list[Maker], described: DescribedTable) -> Iterator[Any]:
        for table, question in _made_of(described, makers, note):
            shard, order = place(question.question_id, files.seed, num_shards)
            yield shard, (order, json_line(table, question).encode())

    def write(element: Any) -> None:
        shard, members = element
        with _written(files, part, shard) as file:
            for _, line in sorted(member for member in members if member is not None):
                file.write(line)

    return run_pipeline(
        files,
        lambda: _tables_of(files.sources(), part, division, note),
        lambda tables: tables | "Make" >> step(new_makers, make),
        beam.Map(write),
        functools.partial(_remove, files, part),
    )


@contextlib.contextmanager
def _written(files: Files, part: str, shard: int | None = None) -> Iterator[IO[bytes]]:
    """A part's one file, or one of its shards, to write; it appears once it is complete."""
    path = split_file(files.output_dir, part, QUESTIONS, shard, files.num_shards or 1)
    with complete_file(path) as unfinished, open(unfinished, "wb") as file:
        yield file


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
    described: DescribedTable, makers: Sequence[Maker], note: Note
) -> Iterator[tuple[Table, Question]]:
    """Yields what is made of a table, and notes it."""
    is_used = False
    for make in makers:
        try:
            for made in make(described):
                if isinstance(made, NothingMadeError):
                    _leave_out("sentence", made, note)
                    continue
                is_used = True
                note(_MADE + made.operation, len(made.examples))
                yield from made.examples
        except NothingMadeError as error:
            _leave_out("table", error, note)
    if is_used:
        note("used")


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
    for name, table_pairs in groupby(pairs, key=lambda pair: pair[0].table_id):
        statements = list(table_pairs)
        entailed = [q.text for _, q in statements if q.class_index == ENTAILED]
        yield DescribedTable(name, statements[0][0], tuple(entailed))
