"""The command mate-tf: its subcommands, and how each ends.

Nothing slow is imported before a subcommand needs it: --help is there at once, and a wrong path
does not wait for TensorFlow.
"""

import argparse
import io
import sys
from collections.abc import Sequence

import mate_tf
from mate_tf.command_line import ask
from mate_tf.command_line.terminal import forget_stdout, sentence_for_user, silence_tensorflow

FAILED = 1
INTERRUPTED = 130
NOBODY_READS = 141  # as shells report SIGPIPE


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command.

    Args:
        argv: the arguments, without the program's name; those of the process by default.

    Returns:
        The exit status: the subcommand's own; 1 where what the user gave cannot be used, after one
        sentence on standard error; 130 after Ctrl-C; 141 where nobody reads the output.

    Raises:
        SystemExit: with 2 if the arguments are wrong, with 0 after --help.
    """
    silence_tensorflow()
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # cells may hold what is no text
    try:
        try:
            options = _parse(argv)
            return options.run(options)
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        forget_stdout()
        return NOBODY_READS
    except KeyboardInterrupt:
        sys.stderr.write("\n")
        return INTERRUPTED
    except Exception as error:
        message = sentence_for_user(error)
        if message is None:
            raise
        sys.stderr.write(f"mate-tf: {message}\n")
        return FAILED


def _parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="mate-tf",
        description="Questions answered from whole tables.",
        epilog="'mate-tf ask --help' says more, with examples.",
    )
    parser.add_argument("--version", action="version", version=f"mate-tf {mate_tf.__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    asking = commands.add_parser(
        "ask",
        help="ask questions of a table",
        description=ask.DESCRIPTION,
        epilog=ask.EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    ask.add_arguments(asking)
    # argparse gives all positional arguments away at once: questions after an option are left.
    options, left = parser.parse_known_args(argv)
    if unknown := [text for text in left if text.startswith("-") and " " not in text]:
        asking.error(f"unrecognized arguments: {' '.join(unknown)}")
    options.questions += left
    return options
