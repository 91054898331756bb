"""The command mate-tf: its subcommands, and how each ends.

Nothing slow is imported before a subcommand needs it: --help is there at once, and a wrong path
does not wait for TensorFlow.
"""

import argparse
import difflib
import importlib
import io
import os
import re
import sys
from collections.abc import Iterable, Sequence
from typing import NoReturn

import mate_tf
from mate_tf.command_line.arguments import (
    say_error,
    sentence_for_user,
    showing_logs,
    silence_tensorflow,
    with_dashes,
)
from mate_tf.dataclass_json import split_arguments
from mate_tf.private_apis import import_tensorflow

FAILED = 1
INTERRUPTED = 130
NOBODY_READS = 141  # as shells report SIGPIPE
COMMANDS = {
    name: importlib.import_module(f"mate_tf.command_line.{name}")
    for name in "ask show page mcp serve data train export calibrate predict evaluate".split()
}
# These may end before anything slow is imported: a wrong path does not wait for TensorFlow.
_AT_ONCE = [COMMANDS[name] for name in ("ask", "show", "page", "mcp", "serve")]
_DESCRIPTION = "Questions answered from whole tables."
_EPILOG = """\
`mate-tf COMMAND --help` says more, with examples. Names of options have dashes; underscores do too.

from your own questions to a model that answers them:
  mate-tf data --input-dir=my_questions --output-dir=my_data
  mate-tf train --data-dir=my_data --model-dir=my_run
  mate-tf ask my_table.csv "my question" --model=my_run

exit status of every command:
  0    done
  1    what was given cannot be used; one sentence says why
  2    the arguments are wrong
  130  interrupted
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command with arguments, by default those of the process; returns the exit status.

    That is the subcommand's own; 1 if what the user gave cannot be used, after one sentence on
    standard error; 130 after Ctrl-C; 141 if nobody reads the output. SystemExit with 2 if the
    arguments are wrong, with 0 after --help.
    """
    silence_tensorflow()
    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is None:  # it was closed by whoever started the process
            setattr(sys, name, open(os.devnull, "r" if name == "stdin" else "w"))  # noqa: SIM115
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # cells may hold what is no text
    options = None
    try:
        try:
            options = _parse(sys.argv[1:] if argv is None else argv)
            if options.command in _AT_ONCE:
                return options.command.run(options) or 0
            import_tensorflow()
            with showing_logs(with_progress=options.command is COMMANDS["train"]):
                return options.command.run(options) or 0
        finally:
            if not sys.stdout.closed:  # as it is once an assistant has left
                sys.stdout.flush()
    except BrokenPipeError:
        # What is still written is dropped.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return NOBODY_READS
    except KeyboardInterrupt:
        sys.stderr.write("\n")
        return INTERRUPTED
    except Exception as error:
        message = sentence_for_user(error, options)
        if message is None:
            raise
        say_error(message)
        return FAILED


class _Parser(argparse.ArgumentParser):
    """Says in one line what is wrong, and what may have been meant."""

    def error(self, message: str) -> NoReturn:
        say_error(f"{message} ({self.prog} --help says more)")
        raise SystemExit(2)


def _likely(name: str, known: Iterable[str]) -> str:
    """The name that may have been meant, as the end of a sentence."""
    likely = difflib.get_close_matches(name, list(known), n=1)
    return f"; did you mean {likely[0]}?" if likely else ""


def _check_command(parser: argparse.ArgumentParser, argv: Sequence[str]) -> None:
    """Ends with 2 unless the first argument is a command or an option."""
    name = argv[0] if argv else ""
    if name in COMMANDS or name.startswith("-"):
        return
    if os.path.exists(name) and name:
        parser.error(f"expected a command, got the file {name}; did you mean mate-tf ask {name}?")
    got = f"got {name}{_likely(name, COMMANDS)}" if name else "got none"
    parser.error(f"expected a command such as ask or show, {got}")


def _parse(argv: Sequence[str]) -> argparse.Namespace:
    parser = _Parser(
        prog="mate-tf",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"mate-tf {mate_tf.__version__}")
    parsers = parser.add_subparsers(metavar="COMMAND", required=True)
    for name, command in COMMANDS.items():
        subparser = parsers.add_parser(
            name,
            help=command.HELP,
            description=command.DESCRIPTION,
            epilog=command.EPILOG,
            formatter_class=_Formatter,
        )
        command.add_arguments(subparser)
        subparser.set_defaults(command=command, parser=subparser)
    _check_command(parser, argv)
    given, overrides = split_arguments(with_dashes(argv))
    # argparse gives all positional arguments away at once: questions after an option are left.
    options, left = parser.parse_known_args(given)
    if hasattr(options, "overrides"):
        options.overrides = overrides
    else:
        left += overrides
    takes_more = hasattr(options, "questions")
    unknown = [text for text in left if not takes_more or (text[:1] == "-" and " " not in text)]
    if unknown:
        name = unknown[0].partition("=")[0]
        likely = _likely(name, re.findall("--[a-z-]+", options.parser.format_usage()))
        options.parser.error(f"{options.parser.prog} has no {unknown[0]}{likely}")
    if takes_more:
        options.questions = [*options.questions, *left]
    return options


class _Formatter(argparse.RawDescriptionHelpFormatter):
    """Shows the description as it is written, and what the defaults are."""

    def _get_help_string(self, action: argparse.Action) -> str | None:
        if action.default in (None, False, argparse.SUPPRESS) or not action.option_strings:
            return action.help
        return f"{action.help} (default: %(default)s)"
