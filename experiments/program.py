"""The base of the absl programs: flags that are options of mate-tf, errors as one sentence.

A program whose `mate-tf` subcommand does the same is a call of `run_command`. Others define flags
of their own, beside those of mate_tf/command_line/arguments.py (`define_flags`).
"""

import argparse
import re
import sys
from collections.abc import Callable
from typing import Any

from absl import app, flags, logging

from mate_tf.command_line.arguments import is_ours_or_serious, sentence_for_user, silence_tensorflow
from mate_tf.dataclass_json import split_arguments

silence_tensorflow()


class _Type(flags.ArgumentParser):
    """Reads the value of a flag as argparse reads that of an option."""

    def __init__(self, read: Callable[[str], Any]):
        self._read = read

    def parse(self, argument: Any) -> Any:
        if not isinstance(argument, str):  # a default
            return argument
        try:
            return self._read(argument)
        except argparse.ArgumentTypeError as error:
            raise ValueError(str(error)) from None


class _Flags:
    """Takes the place of an argparse parser: each option becomes a flag."""

    def __init__(self, defaults: dict[str, Any]):
        self.names: list[str] = []
        self.constants: dict[str, Any] = {}
        self._defaults = defaults

    def add_argument_group(self, _: str) -> "_Flags":
        return self

    def set_defaults(self, **constants: Any) -> None:
        self.constants |= {name: self._defaults.get(name, constants[name]) for name in constants}

    def add_argument(
        self,
        *options: str,
        dest: str | None = None,
        action: Any = "store",
        type: Callable[[str], Any] = str,
        choices: list[str] | None = None,
        default: Any = argparse.SUPPRESS,
        required: bool = False,
        metavar: str | None = None,
        help: str = "",
    ) -> None:
        name = dest or options[0].lstrip("-").replace("-", "_")
        self.names.append(name)
        if default is argparse.SUPPRESS:
            default = False if action == "store_true" else None
        default = self._defaults.get(name, default)
        required = required and default is None
        text = help.replace("%%", "%")
        if action == "store_true":
            flags.DEFINE_bool(name, default, text)
        elif choices is not None:
            flags.DEFINE_enum(name, default, choices, text, required=required)
        else:
            serializer = flags.ArgumentSerializer()
            flags.DEFINE(_Type(type), name, default, text, serializer=serializer, required=required)


def define_flags(
    *adders: Callable[[Any], None], **defaults: Any
) -> Callable[[], argparse.Namespace]:
    """Defines a flag for each option that functions such as `arguments.add_model` add.

    Defaults are other than the options' own, by the flags' names. It returns a function that gives
    the flags' values, once they are parsed.
    """
    defined = _Flags(defaults)
    for add in adders:
        add(defined)
    return lambda: argparse.Namespace(
        **defined.constants, **{name: flags.FLAGS[name].value for name in defined.names}
    )


def define_steps(folder: str) -> tuple[flags.FlagHolder, flags.FlagHolder]:
    """Defines the flags of a program of named steps: its folder, and those that it takes alone.

    One process may import several of these programs, as tests do.
    """
    is_shared = {"allow_override": True}
    output = flags.DEFINE_string("output_dir", folder, "folder to work in", **is_shared)
    return output, flags.DEFINE_list("only", None, "names of steps; by default all", **is_shared)


def run_command(command: Any, **defaults: Any) -> None:
    """Runs a module of mate_tf/command_line as an absl program; defaults as of `define_flags`."""
    options_of_flags = define_flags(command.add_arguments, **defaults)

    def main(argv: list[str]) -> int | None:
        options = options_of_flags()
        if hasattr(options, "overrides"):
            options.overrides = argv[1:]
        return command.run(options)

    run(main, trains=hasattr(options_of_flags(), "overrides"))


def run(main: Callable[[list[str]], Any], trains: bool = False) -> None:
    """Runs an absl program; what the user can mend ends it with one sentence, not a stack trace.

    The result of `main` is the exit status. One that trains is given changes of a config such as
    --config.num_steps=3, behind the program's name, and logs its progress.
    """

    def guarded(argv: list[str]) -> int | None:
        logging.get_absl_handler().addFilter(is_ours_or_serious)
        try:
            if argv[1:] and not trains:
                raise ValueError(f"expected flags alone, got {' '.join(argv[1:])}")
            return main(argv)
        except Exception as error:
            message = sentence_for_user(error)
            if message is None:
                raise
            logging.debug("%s", error, exc_info=True)
            # Flags have underscores, where the library's messages name options of mate-tf.
            message = re.sub("(?<=--)[a-z-]+", lambda name: name[0].replace("-", "_"), message)
            print(f"{sys.argv[0].rsplit('/', 1)[-1]}: {message}", file=sys.stderr)
            return 1

    for module, shared in flags.FLAGS.flags_by_module_dict().items():
        if module.startswith("experiments."):  # or else --help would not show them
            for flag in shared:
                flags.FLAGS.register_key_flag_for_module(sys.argv[0], flag)
    if trains:
        flags.FLAGS.set_default("verbosity", logging.INFO)
    app.run(guarded, flags_parser=_parse if trains else app.parse_flags_with_usage)


def _parse(arguments: list[str]) -> list[str]:
    """Lets absl parse its flags and returns the rest: the program and the config's changes."""
    others, overrides = split_arguments(arguments)
    return app.parse_flags_with_usage(others) + overrides
