"""mate-tf ask: questions about tables, from the command line, a terminal or another program."""

import argparse
import contextlib
import dataclasses
import functools
import itertools
import os
import pathlib
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from mate_tf.command_line import arguments
from mate_tf.command_line.arguments import say_error, say_json, sentence_for_user, showing_logs
from mate_tf.private_apis import import_extra
from mate_tf.reading.files import ENDINGS, STANDARD_INPUT, ReadOptions, read_file
from mate_tf.tables.drawing import count, quoted
from mate_tf.tables.linked_table import LinkedTable
from mate_tf.tables.table import Question, Table
from mate_tf.weights.folder import POINTR_FILE

if TYPE_CHECKING:
    from mate_tf.answers.answer import Answer
    from mate_tf.command_line.drawing import Paper

HELP = "ask questions about a table"
DESCRIPTION = f"""\
Asks questions about a table. Prints each answer with its score and the cells that it was read from,
and the table around them, in at most 30 lines. Rows and columns are counted from 1, in JSON from 0.

A table is a file that ends in
{" ".join(ENDINGS)};
"-" reads standard input. The content says what a file is. Of several files, or a folder of them,
those are asked that are most like the question, and the best answer comes with its table.
With a PointR as --model, the table is a JSON file whose cells may link to passages
(docs/training.md), and the answer may stand in a passage.

Without a question on the command line, questions are typed, until an empty line: Tab completes the
names of columns, the arrow keys bring back questions. Or they are read from standard input, one on
each line.
"""
EPILOG = """\
examples:
  mate-tf ask moon_landings.csv "which missions flew in 1969?"
  mate-tf ask moon_landings.csv                (asks for questions, until an empty line)
  mate-tf ask my_tables/ "which missions flew in 1969?"
  mate-tf ask report.xlsx --sheet=2024 "what was the revenue in Norway?" --alternatives=3
  mate-tf ask page.html --which=2 --json < questions.txt
  mate-tf ask planets.csv "what is the type of Saturn?" --markdown
  grep -v draft log.csv | mate-tf ask - "which author has an error?" --min-score=0.5
  mate-tf ask moon_landings.csv --conversation "which missions landed in 1971?" \\
    "which of them had three moonwalks?"

exit status:
  0    every question was answered
  1    the table, the model or a question cannot be used; one sentence says why
  2    the arguments are wrong
  3    a question has no answer, the score being less than --min-score
  130  interrupted
  141  nobody reads the output any more
"""
_FULL = ":full"  # typed in place of a question
_NOT_ACCEPTED = 1
_NOT_ANSWERED = 3
ASKED = 5  # tables, of those that are most like the question
_PACKED = (".gz", ".gzip")
# Options that a PointR does not take, beside those of files, as they are where none is given.
_NOT_OF_POINTR = {
    "conversation": False,
    **dict.fromkeys(("revision", "architecture", "dtype", "max_tokens", "tagger")),
}


def files_of(paths: Sequence[str]) -> list[pathlib.Path]:
    """The files at some paths, and the tables in folders; FileNotFoundError if one has none."""
    files: dict[pathlib.Path, None] = {}
    for path in map(pathlib.Path, paths):
        inside = [path]
        if path.is_dir():
            inside = sorted(tables_below(path))
            if not inside:
                raise FileNotFoundError(f"expected tables in the folder '{path}', found none")
        files.update(dict.fromkeys(inside))
    return list(files)


def tables_below(folder: pathlib.Path) -> Iterator[pathlib.Path]:
    """The files in a folder and those in it that may be tables by their endings; no hidden ones."""
    for parent, inside, names in os.walk(folder):
        inside[:] = sorted(name for name in inside if not name.startswith("."))
        shown = (name for name in sorted(names) if not name.startswith(".") and _has_ending(name))
        yield from filter(pathlib.Path.is_file, (pathlib.Path(parent, name) for name in shown))


def _has_ending(name: str) -> bool:
    name = name.lower()
    for ending in _PACKED:
        name = name.removesuffix(ending)
    return name.endswith(ENDINGS) and name not in ENDINGS


@dataclasses.dataclass(frozen=True)
class Library:
    """Tables that are asked together, named by their paths, and why other files hold none."""

    tables: Sequence[Table]
    unread: Sequence[str] = ()

    @classmethod
    def read(cls, paths: Sequence[str], options: ReadOptions) -> "Library":
        """Reads the tables of files and folders; a file of a folder may hold none.

        OSError or ValueError if a file cannot be read that was named itself, or none can.
        """
        tables, unread = [], []
        for file in files_of(paths):
            try:
                table = read_file(file, options)
            except (ModuleNotFoundError, OSError, ValueError) as error:
                if str(file) in paths:
                    raise
                unread.append(f"{file}: {error}".partition("\n")[0])
                continue
            tables.append(dataclasses.replace(table, table_id=str(file)))
        if not tables:
            raise ValueError(f"expected tables in {', '.join(paths)}, found none; {unread[0]}")
        return cls(tables, unread)

    @functools.cached_property
    def _index(self) -> tuple[Any, Any]:
        """bm25s and its index of the tables' words, in which the names count as much as a cell."""
        bm25s = import_extra("bm25s", "search", f"to search {len(self.tables)} tables")
        index = bm25s.BM25()
        texts = [
            " ".join([it.table_id, it.document_title, *it.header, *map(" ".join, it.rows)])
            for it in self.tables
        ]
        index.index(bm25s.tokenize(texts, show_progress=False), show_progress=False)
        return bm25s, index

    def nearest(self, question: str) -> list[tuple[Table, float]]:
        """The tables most like a question by BM25 (Robertson and Zaragoza, 2009), best first.

        Each comes with its likeness as a share of the best one's. ModuleNotFoundError without the
        extra "search".
        """
        bm25s, index = self._index
        words = bm25s.tokenize(question, show_progress=False)
        number = min(ASKED, len(self.tables))
        indices, scores = index.retrieve(words, k=number, show_progress=False)
        best = max(float(scores[0][0]), 1e-9)  # none, where no table has any of the words
        shares = [max(float(score), 1e-9) / best for score in scores[0]]
        return [(self.tables[i], share) for i, share in zip(indices[0], shares, strict=True)]

    def answer(self, predictor: Any, question: Question) -> tuple[Table, "Answer"]:
        """The best answer to a question over the nearest tables, and its table.

        A score says how likely the answer is right if it is the right table. So it is multiplied
        with the table's likeness. ValueError if none of these tables takes the question.
        """
        nearest = self.nearest(question.text)
        results = [*predictor.answer_all((table, question) for table, _ in nearest)]
        answers = [
            (result.answered, result.score * likeness, table, result)
            for (table, likeness), (_, _, result) in zip(nearest, results, strict=True)
            if not isinstance(result, ValueError)
        ]
        if not answers:
            raise results[0][2]
        return max(answers, key=lambda one: one[:2])[2:]

    def described(self, table: Table) -> str:
        """A table's name, and among how many it is."""
        unread = f"; {count(len(self.unread), 'file')} could not be read" if self.unread else ""
        return f"{table.table_id}, of {count(len(self.tables), 'table')}{unread}"


def add_arguments(parser: Any) -> None:
    """Adds what the command takes."""
    what = "the table's file, or - for standard input; files or folders of several"
    parser.add_argument("table", metavar="TABLE", help=what)
    what = "what you want to know"
    parser.add_argument("questions", metavar="QUESTION", nargs="*", default=[], help=what)
    arguments.add(
        parser,
        """
        --json  print one JSON object for each question, on a line of its own, in place of text; it
            counts rows and columns from 0
        --markdown  print Markdown, for notes
        --full  print all rows and columns of the table, and all of the answer
        --conversation  each question follows up on the answer before ("who commanded them?");
            otherwise each stands alone
        """,
    )
    arguments.add_answers(parser)
    arguments.add_table(parser)
    arguments.add_model(parser)


def run(options: argparse.Namespace) -> int:
    """Answers the questions; EPILOG says what it returns."""
    more_paths = [*itertools.takewhile(is_path, options.questions)]
    paths, questions = [options.table, *more_paths], options.questions[len(more_paths) :]
    for question in questions:
        if not question.strip():
            raise ValueError("expected a question, got an empty one")
    if not questions and STANDARD_INPUT in paths:
        raise ValueError(
            "expected questions on the command line with a table from standard input, got none"
        )
    # What may be wrong comes first: it should not have to wait for TensorFlow.
    pointr = pathlib.Path(arguments.model_name(options.model))
    linked = _read_linked(paths, options) if (pointr / POINTR_FILE).is_file() else None
    if linked is None:
        arguments.find_model(options.model)
    library = Library([linked.table]) if linked else _read_tables(paths, options)

    from mate_tf.command_line.drawing import Paper

    is_typed = not questions and sys.stdin.isatty() and sys.stdout.isatty()
    paper = Paper.stdout(options.full, options.markdown, _FULL if is_typed else "--full")
    with contextlib.ExitStack() as stack:
        with arguments.waiting("Loading the model"):
            stack.enter_context(showing_logs())
            if linked:
                predictor: Any = _WithPassages(pointr, linked, options)
            else:
                alone = library.tables if len(library.tables) == 1 else ()
                predictor = arguments.load_model(options, alone)
        if questions:
            return _ask(predictor, library, questions, options, paper, False)
        lines = _typed(library, paper) if is_typed else _lines()
        return _ask(predictor, library, lines, options, paper, is_typed)


def is_path(text: str) -> bool:
    """Whether a text is a path or, without a space, named like a table's file."""
    return os.path.exists(text) or (" " not in text and _has_ending(text))


def _read_tables(paths: Sequence[str], options: argparse.Namespace) -> Library:
    if len(paths) == 1 and not pathlib.Path(paths[0]).is_dir():
        return Library([read_file(paths[0], arguments.read_options(options))])
    if options.conversation:
        raise ValueError(f"expected one table with --conversation, got {', '.join(paths)}")
    return Library.read(paths, arguments.read_options(options))


def _read_linked(paths: Sequence[str], options: argparse.Namespace) -> LinkedTable:
    path = pathlib.Path(paths[0])
    if len(paths) > 1 or path.is_dir() or STANDARD_INPUT in paths:
        raise ValueError(f"expected one file of a table with passages, got {', '.join(paths)}")
    for name, default in {**vars(ReadOptions()), **_NOT_OF_POINTR}.items():
        if getattr(options, name) not in (default, None):
            raise ValueError(
                f"expected no --{name.replace('_', '-')} with a PointR, which answers each "
                "question alone, as it was trained, from a table as its file has it"
            )
    from mate_tf.datasets.json_lines import table_reader

    return table_reader(path.parent, linked=True)(path.name)


class _WithPassages:
    """A PointR that is asked about the table of its one linked table."""

    def __init__(
        self, folder: pathlib.Path, linked: LinkedTable, options: argparse.Namespace
    ) -> None:
        from mate_tf.pointr.answering import load_pointr

        self._pointr = load_pointr(folder, num_alternatives=options.num_alternatives)
        self._linked, self._min_score = linked, options.min_score

    def answer(self, _table: Table, question: Question, _previous: Any = None) -> "Answer":
        from mate_tf.answers.answer import apply_min_score

        return apply_min_score(self._pointr.answer(self._linked, question), self._min_score)


def _lines() -> Iterator[str]:
    """The questions of standard input; blank lines are passed over."""
    lines = filter(None, (line.strip("\ufeff \t\r\n") for line in sys.stdin))
    first = next(lines, None)
    if first is None:
        raise ValueError("expected questions on the command line or standard input, got none")
    yield first
    yield from lines


def _typed(library: Library, paper: "Paper") -> Iterator[str]:
    """The questions that are typed at a terminal, to an empty line or Ctrl-D."""
    with contextlib.suppress(ModuleNotFoundError):  # it is not there on Windows
        import readline

        names = dict.fromkeys(quoted(name) for table in library.tables for name in table.header)
        readline.set_completer(lambda _, number: completion(readline, list(names), number))
        readline.set_completer_delims(" ")
        is_libedit = "libedit" in (readline.__doc__ or "")
        readline.parse_and_bind("bind ^I rl_complete" if is_libedit else "tab: complete")
    (table, *others) = library.tables
    size = f"{count(table.num_rows, 'row')}, {count(table.num_columns, 'column')}"
    what = f"{len(library.tables)} tables" if others else f"{table.table_id}: {size}"
    arguments.say(f"{quoted(what)}. Ask; {_FULL} prints all of an answer; an empty line ends.")
    if not others:
        paper.head(table)
    with contextlib.suppress(EOFError):
        while line := input("\n> ").strip():
            yield line


def completion(readline: Any, names: Sequence[str], number: int) -> str | None:
    """The numbered end of the names that begin with what is typed, of one or several words."""
    typed = readline.get_line_buffer()[: readline.get_endidx()]
    last_word = len(typed) - readline.get_begidx()
    for start in (0, *(space.end() for space in re.finditer(" ", typed))):
        begun = typed[start:].casefold()
        fitting = [name for name in names if begun and name.casefold().startswith(begun)]
        if fitting:
            ends = [name[len(typed) - start - last_word :] for name in fitting]
            return ends[number] if number < len(ends) else None
    return None


def _ask(
    predictor: Any,
    library: Library,
    questions: Iterable[str],
    options: argparse.Namespace,
    paper: "Paper",
    is_typed: bool,
) -> int:
    """Answers questions; a table that several may be about is printed once."""
    from mate_tf.command_line.drawing import Paper

    statuses = {0}
    previous: Answer | None = None
    (table, *others) = library.tables
    is_single = isinstance(questions, list) and len(questions) == 1
    with_table, with_questions = is_single or bool(others), not (is_single or is_typed)
    with_head = not (with_table or is_typed)
    for number, text in enumerate(questions, start=1):
        if is_typed and text == _FULL:
            whole = Paper.stdout(full=True)
            if previous is not None:
                whole.answer(table, previous)
            else:
                whole.head(table)
            continue
        question = Question(text, question_id=str(number))
        try:
            if others:
                table, answer = library.answer(predictor, question)
            else:
                before = previous if options.conversation else None
                answer = predictor.answer(table, question, before)
            previous = answer
        except ValueError as error:
            previous, sentence = None, sentence_for_user(error, options) or ""
            statuses.add(_NOT_ACCEPTED)
            if options.json:
                say_json({"question": text, "error": sentence})
            say_error(sentence)
            continue
        if not answer.answered:
            statuses.add(_NOT_ANSWERED)
        if options.json:
            named = {"table": table.table_id} if others else {}
            say_json({"question": text} | named | answer.to_dict())
            continue
        if with_head:
            paper.head(table)
        if number > 1 or with_head:
            sys.stdout.write("\n")
        with_head = False
        if with_questions:
            paper.question(text)
        paper.answer(table, answer, with_table, library.described(table) if others else "")
        sys.stdout.flush()
    return _NOT_ACCEPTED if _NOT_ACCEPTED in statuses else max(statuses)
