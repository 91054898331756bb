"""mate-tf ask: questions about a table, from the command line, a terminal or another program."""

import argparse
import contextlib
import sys
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from mate_tf.command_line import arguments
from mate_tf.command_line.terminal import say_json, sentence_for_user, showing_logs
from mate_tf.tables.drawing import draw_table
from mate_tf.tables.files import ENDINGS, STANDARD_INPUT
from mate_tf.tables.table import Question, Table

if TYPE_CHECKING:
    from mate_tf.answers.answer import Answer, SelectedCell

HELP = "ask questions about a table"
DESCRIPTION = f"""\
Asks questions about a table. Prints each answer with its score, the cells it comes from (row 0 is
the first below the header), what was computed from them, and the table around them.

A table is a file that ends in
{" ".join(ENDINGS)};
"-" reads standard input. The content says what a file is. Without a question on the command line,
questions are typed, until an empty line, or read from standard input, one on each line.
"""
EPILOG = """\
examples:
  mate-tf ask moon_landings.csv "which missions landed in 1969?"
  mate-tf ask moon_landings.csv                (asks for questions, until an empty line)
  mate-tf ask report.xlsx --sheet=2024 "what was the revenue in Norway?" --alternatives=3
  mate-tf ask page.html --which=2 --json < questions.txt
  grep -v draft log.csv | mate-tf ask - "who caused the error?" --min-score=0.5
  mate-tf ask moon_landings.csv --conversation --model=my_sqa_model \\
    "which missions landed in 1971?" "which of them had three moonwalks?"

exit status:
  0    every question was answered
  1    the table, the model or a question cannot be used; one sentence says why
  2    the arguments are wrong
  3    a question has no answer, the score being less than --min-score
  130  interrupted
  141  nobody reads the output any more
"""
_NOT_ACCEPTED = 1
_NOT_ANSWERED = 3
_ROWS_SHOWN = 12


def add_arguments(parser: Any) -> None:
    """Adds what the command takes."""
    parser.add_argument("table", metavar="TABLE", help="the table's file, or - for standard input")
    parser.add_argument("questions", metavar="QUESTION", nargs="*", help="what you want to know")
    arguments.add(
        parser,
        """
        --json  print one JSON object for each question, on a line of its own, in place of text
        --conversation  each question goes with the answer to the one before, as a model for
            sequences of questions (SQA) was trained; otherwise each stands alone
        """,
    )
    arguments.add_answers(parser)
    arguments.add_table(parser)
    arguments.add_model(parser)


def run(options: argparse.Namespace) -> int:
    """Answers the questions; EPILOG says what it returns."""
    for question in options.questions:
        if not question.strip():
            raise ValueError("expected a question, got an empty one")
    if not options.questions and options.table == STANDARD_INPUT:
        raise ValueError(
            "expected questions on the command line with a table from standard input, got none"
        )
    # What may be wrong comes first: it should not have to wait for TensorFlow.
    arguments.find_model(options.model)
    table = arguments.read_table(options)
    with showing_logs():
        predictor = arguments.load_model(options)
        if options.questions:
            return _ask(predictor, table, options.questions, options, len(options.questions) > 1)
        is_terminal = sys.stdin.isatty() and sys.stdout.isatty()
        lines = _typed(table) if is_terminal else _lines()
        return _ask(predictor, table, lines, options, not is_terminal)


def _lines() -> Iterator[str]:
    """The questions of standard input; blank lines are passed over."""
    lines = filter(None, (line.strip("\ufeff \t\r\n") for line in sys.stdin))
    first = next(lines, None)
    if first is None:
        raise ValueError("expected questions on the command line or standard input, got none")
    yield first
    yield from lines


def _typed(table: Table) -> Iterator[str]:
    """The questions that are typed at a terminal, to an empty line or Ctrl-D."""
    with contextlib.suppress(ModuleNotFoundError):  # it is not there on Windows
        import readline  # noqa: F401 (lines can be edited and found again)
    sys.stdout.write(
        f"{table.table_id}: {table.num_rows} rows, {table.num_columns} columns. Ask; an empty line "
        "ends.\n"
    )
    with contextlib.suppress(EOFError):
        while line := input("\n> ").strip():
            yield line


def _ask(
    predictor: Any,
    table: Table,
    questions: Iterable[str],
    options: argparse.Namespace,
    shows_questions: bool,
) -> int:
    from mate_tf.answers.answer import with_history

    statuses = {0}
    previous = None
    for number, text in enumerate(questions, start=1):
        question = Question(text, question_id=str(number))
        if options.conversation:
            question = with_history(question, previous)
        try:
            previous = answer = predictor.answer(table, question)
        except ValueError as error:
            previous, sentence = error, sentence_for_user(error) or ""
            statuses.add(_NOT_ACCEPTED)
            if options.json:
                say_json({"question": text, "error": sentence})
            sys.stderr.write(f"mate-tf: {sentence}\n")
            continue
        if not answer.answered:
            statuses.add(_NOT_ANSWERED)
        if options.json:
            say_json({"question": text} | answer.to_dict())
        else:
            lines = [f"question: {text}"] if shows_questions else []
            lines += answer_lines(table, answer)
            sys.stdout.write("\n" * (number > 1) + "".join(f"{line}\n" for line in lines))
            sys.stdout.flush()
    return _NOT_ACCEPTED if _NOT_ACCEPTED in statuses else max(statuses)


def answer_lines(table: Table, answer: "Answer") -> Iterator[str]:
    """What is printed of an answer; where there is none, of what it would have been."""
    from mate_tf.answers.answer import NOT_IN_TABLE, format_number

    shown, others = answer, list(answer.alternatives)
    if answer.answered:
        yield f"answer: {answer.text}"
    else:
        yield "answer: none" + (f" ({NOT_IN_TABLE})" if answer.absent else "")
        if others:
            shown = others.pop(0)
            yield f"would have been: {shown.text}"
    yield f"score: {shown.score:.2f}" + ("" if shown.sure else " (not sure)")
    if shown.class_index is not None:
        yield f"class: {shown.class_index}"
    else:
        yield f"aggregation: {_computed(shown)}"
    if shown.number is not None and format_number(shown.number) != shown.text:
        yield f"number: {format_number(shown.number)}"
    if shown.note:
        yield f"note: {shown.note}"
    for sentence in shown.assumed:
        yield f"assumed: {sentence}"
    if answer.rows_dropped:
        yield f"not read: the last {answer.rows_dropped} of {table.num_rows} rows"
    for cell in shown.cells:
        yield f"cell: {_place(table, cell)}: {cell.text}  ({cell.score:.2f})"
    for other in others:
        line = f"alternative: {other.text}  ({other.score:.2f})"
        if other.aggregation != "NONE":
            line += f", {_computed(other)}"
        elif len(other.cells) == 1:
            line += f", {_place(table, other.cells[0])}"
        yield line
    marked = {(cell.row, cell.column) for cell in shown.cells}
    yield "\n" + draw_table(table, marked, max_rows=_ROWS_SHOWN)


def _computed(answer: "Answer") -> str:
    if answer.aggregation == "NONE":
        return "NONE"
    return f"{answer.aggregation} of {len(answer.cells)} cells = {answer.text}"


def _place(table: Table, cell: "SelectedCell") -> str:
    return f"row {cell.row}, column {cell.column} ({table.header[cell.column]})"
