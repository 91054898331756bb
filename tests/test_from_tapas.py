"""The names in docs/from_tapas.md are those of mate_tf, and all of transformers' are there."""

import argparse
import ast
import contextlib
import dataclasses
import functools
import importlib.util
import itertools
import operator
import pathlib
import re
from collections.abc import Iterable, Iterator

import pytest

from mate_tf.command_line.main import COMMANDS
from mate_tf.config import AttentionConfig
from mate_tf.datasets.tasks import TASKS
from mate_tf.presets import ARCHITECTURE_PRESETS
from mate_tf.records.records import OF_EXAMPLES, OF_TOKENS
from mate_tf.tables.operators import operators_by_id
from mate_tf.task_configs import (
    ClassificationConfig,
    MaskedLMConfig,
    SpanReadingConfig,
    TableQAConfig,
    TaskConfig,
)
from mate_tf.training.starting_points import STARTING_POINTS, changed, presets
from tests.small import ENCODER, ROOT, cases
from tests.test_examples import run_blocks

PAGE = (ROOT / "docs" / "from_tapas.md").read_text(encoding="utf-8")
SPAN = re.compile(r"`([^`]+)`")
# Of the first column, from the table's title or the header of its first column.
RECORDS, VARIABLES, TENSORS = "feature", "variable", "tensor"
# The files that define flags of the programs in experiments.
FLAGS = "experiments/paper/made_of_tables.py", "mate_tf/command_line/data.py"


def rows() -> Iterator[tuple[str, list[str]]]:
    """The rows of all tables, each with the header of its table's first column."""
    for table in re.findall(r"(?:^\|.*\n)+", PAGE, re.MULTILINE):
        header, _, *lines = (line.strip("| \n").split("|") for line in table.splitlines())
        yield from ((header[0].strip(" `"), line) for line in lines)


def first_column(header: str) -> list[str]:
    return [name for title, row in rows() if title == header for name in SPAN.findall(row[0])]


def spelled_out(names: Iterable[str]) -> set[str]:
    """The names of variables, with each choice in braces."""
    choices = ([part.split(",") for part in re.split(r"[{}]", name)] for name in names)
    return {"".join(parts) for choice in choices for parts in itertools.product(*choice)}


def numbered(names: Iterable[str]) -> set[str]:
    """The names of variables, with N for each number."""
    return {re.sub(r"_\d+(?=/|$)", "_N", name) for name in names}


@functools.cache
def definitions() -> dict[str, set[str]]:
    """What the files define at their top, and of a class its members and the names of its bases."""
    found: dict[str, set[str]] = {}
    folders = ROOT / "mate_tf", ROOT / "experiments"
    for path in itertools.chain.from_iterable(folder.rglob("*.py") for folder in folders):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            names = [getattr(node, "name", None)]
            names += [getattr(it, "id", None) for it in getattr(node, "targets", ())]
            for name in filter(None, names):
                found.setdefault(name, set()).update(_members(node))
    return found


def _members(node: ast.AST) -> Iterator[str]:
    if not isinstance(node, ast.ClassDef):
        return
    yield from (base.id for base in node.bases if isinstance(base, ast.Name))
    yield from (it.name for it in node.body if isinstance(it, ast.FunctionDef))
    yield from (ast.unparse(it.target) for it in node.body if isinstance(it, ast.AnnAssign))
    for it in ast.walk(node):
        if isinstance(it, ast.Attribute) and isinstance(it.ctx, ast.Store):
            yield it.attr


def is_defined(name: str) -> bool:
    """Whether a name, or Class.member, is defined in mate_tf."""
    name, _, member = name.partition(".")
    members = definitions().get(name)
    if members is None or not member:
        return members is not None
    return member in members or any(is_defined(f"{base}.{member}") for base in members)


def is_in_a_config(path: str) -> bool:
    """Whether a config has a field, or takes its value, such as encoder.position=none."""
    name, equals, _ = path.partition("=")
    bases = itertools.product(STARTING_POINTS.values(), (None, *ARCHITECTURE_PRESETS))
    for config, architecture in (*bases, *((config, None) for config in presets().values())):
        with contextlib.suppress(ValueError, AttributeError):
            overrides = [f"--config.{path}"] if equals else []
            operator.attrgetter(name)(changed(config, architecture, overrides))
            return True
    return False


def is_of_a_command(name: str, words: list[str]) -> bool:
    parser = argparse.ArgumentParser()
    COMMANDS[name].add_arguments(parser)
    known = re.findall("--[a-z-]+", parser.format_usage())
    tasks = [word.removeprefix("--task=") for word in words if word.startswith("--task=")]
    return {word.partition("=")[0] for word in words} <= {*known} and {*tasks} <= {*TASKS}


def is_of_a_program(file: str, words: list[str]) -> bool:
    texts = [(ROOT / it).read_text(encoding="utf-8") for it in (file, *FLAGS)]
    flags = [(f'"{word[2:]}"', f"{word.replace('_', '-')}=") for word in words]
    return all(any(form in text for form in forms for text in texts) for forms in flags)


def is_ours(name: str) -> bool:
    """Whether mate_tf has what a name on the page stands for."""
    first, *words = name.split()
    if first == "mate-tf":
        return is_of_a_command(words[0], words[1:])
    if first.startswith("--config."):
        return is_in_a_config(first.removeprefix("--config."))
    option, _, value = first.partition("=")
    if option in ("--config", "--architecture", "--task"):
        names = {"--config": presets(), "--architecture": ARCHITECTURE_PRESETS, "--task": TASKS}
        return value in names[option]
    if words:
        return is_of_a_program(first, words)
    return (ROOT / first).exists() or is_defined(first)


def test_every_name_of_mate_tf_is_one():
    variables = spelled_out(first_column(VARIABLES))
    named = [
        name
        for header, row in rows()
        for name in SPAN.findall("|".join(row[1:]))
        if not header.startswith("on the Hub") and not numbered([name]) <= variables
    ]
    prose = re.sub(r"^\|.*", "", PAGE, flags=re.MULTILINE)
    named += re.findall(r"`((?:mate-tf|--|mate_tf/|experiments/)[^`]*)`", prose)
    assert len(named) > 300
    assert [name for name in dict.fromkeys(named) if not is_ours(name)] == []


def test_the_features_of_records_are_all_there():
    assert sorted(first_column(RECORDS)) == sorted({**OF_TOKENS, **OF_EXAMPLES})


MODELS: list[tuple[AttentionConfig, TaskConfig]] = [
    (AttentionConfig("tableformer", relation_kind="embedding"), TableQAConfig(operators_by_id())),
    (AttentionConfig("linformer", sequence_length=8, projected_length=4), ClassificationConfig()),
    (AttentionConfig("table_etc"), SpanReadingConfig(hidden_size=4)),
    (AttentionConfig("mate"), SpanReadingConfig(kind="boundary")),
    (AttentionConfig("sat"), MaskedLMConfig()),
]


def test_the_variables_of_checkpoints_are_all_there():
    from mate_tf.models import make_model  # with TensorFlow
    from mate_tf.weights.initial import variables_by_name

    found: set[str] = set()
    for attention, task in MODELS:
        encoder = dataclasses.replace(ENCODER, attention=attention)
        found |= numbered(variables_by_name(make_model(encoder, task)))
    assert spelled_out(first_column(VARIABLES)) == found


def test_tensors_of_hugging_face_become_the_variables_beside_them():
    from mate_tf.weights.initial import _tf1_name

    pairs = [tuple(map(SPAN.findall, row)) for header, row in rows() if header == TENSORS]
    assert len(pairs) > 10
    for tensors, variables in pairs:
        assert list(map(_tf1_name, tensors)) == variables


@cases(
    "file, name, header",
    ("configuration_tapas.py", "TapasConfig", "option"),
    ("tokenization_tapas.py", "TapasTokenizer", "argument"),
)
def test_options_and_arguments_of_transformers_are_all_there(file, name, header):
    spec = importlib.util.find_spec("transformers")
    if spec is None or spec.origin is None:
        pytest.skip("transformers is not installed")
    path = pathlib.Path(spec.origin).parent / "models" / "tapas" / file
    body = ast.parse(path.read_text(encoding="utf-8")).body
    (found,) = (it for it in body if isinstance(it, ast.ClassDef) and it.name == name)
    methods = (it for it in found.body if isinstance(it, ast.FunctionDef))
    calls = [it for it in methods if it.name in ("__init__", "__call__")]
    theirs = {it.arg for call in calls for it in call.args.args} - {"self"}
    theirs |= {ast.unparse(it.target) for it in found.body if isinstance(it, ast.AnnAssign)}
    assert len(theirs) > 30
    assert theirs <= {*first_column(header)}


def test_the_example_is_answered_right(capsys):
    run_blocks("docs/from_tapas.md")
    assert capsys.readouterr().out == "Lima [(1, 0)] NONE\n"
