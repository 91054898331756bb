"""mate-tf ask: questions of a table, from the command line, a terminal or another program.

Which model a command uses.
"""

import argparse
import contextlib
import itertools
import json
import os
import sys
from collections.abc import Iterable, Iterator
from typing import Any

from mate_tf.command_line.terminal import is_ours_or_serious, sentence_for_user
from mate_tf.serving.folder import DEFAULT_MODEL, check_named
from mate_tf.tables.files import ENDINGS, STANDARD_INPUT, ReadOptions, read_table
from mate_tf.tables.table import Question, Table
from mate_tf.tables.text_files import check_delimiter

VARIABLE = "MATE_TF_MODEL"


def find_model(given: str | None) -> str:
    """The path or name of a model: the given one, that of MATE_TF_MODEL, or the default.

    Raises:
        FileNotFoundError: if there can be no such model.
        ValueError: if the given one is empty, as a shell's variable that is not set.
    """
    if given == "":
        raise ValueError("expected the folder or name of a model, got an empty one")
    name = given or os.environ.get(VARIABLE) or str(DEFAULT_MODEL)
    check_named(name)
    return name


DESCRIPTION = f"""\
Asks questions of a table, and prints each answer with its score, the cells it comes from (row 0 is
the first below the header), what was computed from them, and the table around them.

A table is a file that ends in
{" ".join(ENDINGS)};
"-" reads CSV from standard input. Without a question, they are read from the terminal or from
standard input, a line each, until an empty line or the end.
"""
EPILOG = """\
examples:
  mate-tf ask planets.csv "which planets have rings?" --model=my_model
  mate-tf ask planets.csv                      (asks for questions, until an empty line)
  mate-tf ask report.xlsx --sheet=2024 "what was the total revenue?" --alternatives=3
  mate-tf ask page.html --which=2 --json < questions.txt
  grep -v draft log.csv | mate-tf ask - "how many errors were there?" --min-score=0.5
  mate-tf ask planets.csv --conversation "which planets have rings?" "which is the largest?"

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


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds what the subcommand takes."""
    parser.add_argument("table", metavar="TABLE", help="the table's file, or - for CSV")
    parser.add_argument("questions", metavar="QUESTION", nargs="*", help="what you want to know")
    parser.add_argument(
        "--model",
        metavar="MODEL",
        help="the folder of an exported model, of a run or of published weights, or a name on the "
        f"Hugging Face Hub; by default that of the environment variable {VARIABLE}, or else the "
        "small one that comes with the package",
    )
    parser.add_argument(
        "--revision", metavar="REVISION", help="of a name on the Hub: a commit, branch or tag"
    )
    parser.add_argument(
        "--architecture",
        metavar="NAME",
        help="how tokens attend to each other in place of what the model was trained with, such as "
        "mate for published weights on long tables",
    )
    parser.add_argument(
        "--json",
        action="store_true",
        help="print a JSON object a question, a line each, in place of text",
    )
    parser.add_argument(
        "--min-score",
        metavar="SCORE",
        type=_score,
        default=0.0,
        help="from 0 to 1: where the score is lower, there is no answer, and what it would have "
        "been is said",
    )
    parser.add_argument(
        "--alternatives",
        metavar="N",
        type=_number,
        default=0,
        help="show so many of the next best answers",
    )
    parser.add_argument(
        "--conversation",
        action="store_true",
        help="each question goes with the answer to the one before, as in the training of a model "
        "for sequences of questions (SQA); otherwise each stands alone",
    )
    parser.add_argument(
        "--drop-rows-to-fit",
        action="store_true",
        help="leave out rows at the end of a table that is too long for the model, which would be "
        "an error otherwise",
    )
    parser.add_argument(
        "--sheet", metavar="NAME", help="of Excel: the sheet, by default the first that is shown"
    )
    parser.add_argument(
        "--which",
        metavar="N",
        type=_number,
        help="of HTML: the number of the table on the page, from 0",
    )
    parser.add_argument(
        "--delimiter",
        metavar="CHARACTER",
        type=_delimiter,
        help="of CSV: what separates the columns where it is no comma, such as ';', or tab",
    )
    parser.add_argument(
        "--tagger",
        metavar="TAGGER",
        help="for a model with grammar-guided attention, the tagger of its training data: "
        "textblob, spacy:MODEL or MODULE:FUNCTION",
    )
    parser.set_defaults(run=run)


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
    model = find_model(options.model)
    said = ReadOptions(options.delimiter, options.sheet, options.which)
    table = read_table(options.table, said)
    predictor = _load(model, options)
    if options.questions:
        return _ask(predictor, table, options.questions, options, len(options.questions) > 1)
    is_terminal = sys.stdin.isatty() and sys.stdout.isatty()
    lines = _typed(table) if is_terminal else _lines()
    return _ask(predictor, table, lines, options, not is_terminal)


def _load(model: str, options: argparse.Namespace) -> Any:
    from absl import logging

    from mate_tf.private_apis import import_tensorflow

    import_tensorflow()
    from mate_tf.serving.loading import from_pretrained
    from mate_tf.tables.part_of_speech import load_tagger

    logging.get_absl_logger().addFilter(is_ours_or_serious)
    overrides: dict[str, Any] = {"drop_rows_to_fit": True} if options.drop_rows_to_fit else {}
    return from_pretrained(
        model,
        revision=options.revision,
        architecture=options.architecture,
        tagger=load_tagger(options.tagger) if options.tagger else None,
        min_score=options.min_score,
        num_alternatives=options.alternatives,
        **overrides,
    )


def _lines() -> Iterator[str]:
    """The questions of standard input, to an empty line or its end."""
    lines = itertools.takewhile(bool, map(str.strip, sys.stdin))
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
    from mate_tf.answers.sequences import with_history
    from mate_tf.command_line.answer_lines import answer_lines

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
                _write_json({"question": text, "error": sentence})
            sys.stderr.write(f"mate-tf: {sentence}\n")
            continue
        if not answer.answered:
            statuses.add(_NOT_ANSWERED)
        if options.json:
            _write_json({"question": text} | answer.to_dict())
        else:
            lines = [f"question: {text}"] if shows_questions else []
            lines += answer_lines(table, answer)
            sys.stdout.write("\n" * (number > 1) + "".join(f"{line}\n" for line in lines))
            sys.stdout.flush()
    return _NOT_ACCEPTED if _NOT_ACCEPTED in statuses else max(statuses)


def _write_json(record: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(record, ensure_ascii=False, allow_nan=False) + "\n")
    sys.stdout.flush()


def _score(text: str) -> float:
    score = float(text)
    if not 0 <= score <= 1:
        raise argparse.ArgumentTypeError(f"expected a score from 0 to 1, got {text}")
    return score


def _delimiter(text: str) -> str:
    text = {"tab": "\t", "\\t": "\t"}.get(text, text)
    try:
        check_delimiter(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{error}; tab stands for a tabulator") from None
    return text


def _number(text: str) -> int:
    number = int(text)
    if number < 0:
        raise argparse.ArgumentTypeError(f"expected a number of at least 0, got {text}")
    return number
