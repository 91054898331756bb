"""The steps of `make reproduce`: their commands, what they need, and what they leave."""

import argparse
import functools
import importlib
import inspect
import itertools
import json
import re

import pytest

from experiments.paper import reproduce
from experiments.paper.reproduce import Step, chosen, is_done, left_out, read_steps, run_step
from mate_tf.training.starting_points import make_config
from tests.small import ROOT, imported_names

FOLDERS = {
    name: name for name in ("wtq", "sqa", "tabfact", "sst2", "minilm", "before", "hybridqa", "out")
}
SMALL, FULL = (read_steps(FOLDERS, is_small) for is_small in (True, False))
COMPARE = "experiments.paper.compare_attention"


@pytest.mark.parametrize("steps", [SMALL, FULL], ids=["small", "full"])
def test_steps_are_commands_of_this_project(steps):
    names = [step.name for step in steps]
    assert len(set(names)) == len(names)
    assert not re.search("[<>{}]", str([step.commands for step in steps]))
    for index, step in enumerate(steps):
        assert step.needs <= set(names[:index])
        for module, *flags in step.commands:
            if module == "mate_tf":
                command = importlib.import_module(f"mate_tf.command_line.{flags.pop(0)}")
                known = {name.replace("_", "-") for name in options_of(command)}
            else:
                known = flags_of(module)
            for flag in flags:
                name = re.fullmatch(r"--([a-z_-]+)(\..+)?(=.*)?", flag)[1]
                assert name in known, (module, flag)


def options_of(command, function: str = "add_arguments") -> set[str]:
    """The names of a command's options, as absl's flags have them."""
    parser = argparse.ArgumentParser()
    add = getattr(command, function)
    others = list(inspect.signature(add).parameters.values())[1:]
    required = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.empty)
    add(parser, *([] for other in others if (other.kind, other.default) == required))
    return {option.lstrip("-").replace("-", "_") for option in parser._option_string_actions}


@functools.cache
def flags_of(module: str) -> set[str]:
    """The names of a binary's flags: those that it and what it imports of its folder define."""
    source = (ROOT / f"{module.replace('.', '/')}.py").read_text(encoding="utf-8")
    names = set(re.findall(r'flags\.DEFINE_\w+\(\s*"(\w+)"', source))
    calls = re.findall(r"run_command\((\w+)()|(?:\b)(\w+)\.(add_\w+)", source)
    for command, _, owner, function in calls:
        if (ROOT / "mate_tf" / "command_line" / f"{command or owner}.py").is_file():
            owner_module = importlib.import_module(f"mate_tf.command_line.{command or owner}")
            names |= options_of(owner_module, function or "add_arguments")
    imported = imported_names(source)
    for other in {*imported, *(name.rpartition(".")[0] for name in imported)} - {module}:
        if other.startswith("experiments.") and (ROOT / f"{other.replace('.', '/')}.py").is_file():
            names |= flags_of(other)
    return names


@pytest.mark.parametrize("steps", [SMALL, FULL], ids=["small", "full"])
def test_every_run_has_a_config_and_no_two_rows_are_the_same(steps):
    kinds, architectures = set(), set()
    for step in steps:
        for module, *flags in step.commands:
            given = [flag.partition("=")[::2] for flag in flags]
            preset = dict(given).get("--config")
            if preset is None:
                continue
            changes = [flag for flag in flags if flag.startswith("--config.")]
            if module != COMPARE:
                kinds.add(type(make_config(preset, None, changes)).__name__)
                continue
            names = [name for name in dict(given)["--architectures"].split(",") if name]
            names += [value for name, value in given if name == "--variant"]
            configs = []
            for architecture, *own in map(str.split, names):
                of_row = [*changes, *(f"--config.{change}" for change in own)]
                configs.append(make_config(preset, architecture, of_row))
            assert all(a != b for a, b in itertools.combinations(configs, 2)), step.name
            architectures |= {config.encoder.attention.architecture for config in configs}
    assert kinds == {"MaskedLMTrainingConfig", "PointRConfig"}
    assert architectures >= {"tapas", "mate", "table_etc", "grammar_hard"}


def test_what_a_step_needs_comes_with_it_and_has_to_be_written(tmp_path, monkeypatch):
    assert [
        step.name for step in chosen(SMALL, ["order_tapas"])
    ] == "wtq_256 wtq_2048 questions_256 words questions wtq_after_questions order_tapas".split()
    assert chosen(SMALL, None) == SMALL
    with pytest.raises(ValueError, match=r"expected steps among .*, got 'none'"):
        chosen(SMALL, ["none"])
    recipe = '[values]\n[small]\n[[step]]\nname = "s"\nrun = "this --data={out}/data"\n'
    (tmp_path / "steps.toml").write_text(recipe)
    monkeypatch.setattr(reproduce, "_STEPS", tmp_path / "steps.toml")
    with pytest.raises(ValueError, match="step s reads <out>/data, which no step before it writes"):
        read_steps(FOLDERS, True)


def test_steps_that_read_a_folder_that_is_not_given_are_left_out_with_those_that_need_them():
    lacks = left_out(SMALL, ["sqa", "minilm"])
    assert lacks["default_sqa"] == "sqa" and lacks["order_tapas"] == lacks["words"] == "minilm"
    assert not {"default_wtq", "default_tabfact", "wtq_256"} & lacks.keys()
    assert left_out(SMALL, []) == {}
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8").replace("$\\\n  ", "")
    (names,) = re.findall("^FIGURES := (.*)$", makefile, re.MULTILINE)
    known = {step.name for step in FULL if step.name.startswith("default_")}
    assert set(names.split(",")) == (known - {"default_stage"}) | {"times_of_tables"}


def test_the_last_command_s_output_is_kept_and_a_failure_is_none(tmp_path, capsys):
    path = tmp_path / "s.json"
    twice = Step("s", "S", frozenset(), [["this"], ["this"]])
    comparison = {"config": {}, "data": {}, "weights": {}, "runs": {"tapas_1": {}}}
    (tmp_path / "compare_s").mkdir()
    (tmp_path / "compare_s" / "results.json").write_text(json.dumps(comparison))
    run_step(twice, path)
    content = json.loads(path.read_text())
    assert "Namespaces are one honking great idea -- let's do more of those!" in content["printed"]
    assert content["runs"] == {"tapas_1": {}}
    assert capsys.readouterr().out.count("$ python -m this") == 2
    assert is_done(twice, path)
    assert not is_done(twice._replace(commands=[["this"]]), path)
    assert not is_done(twice, tmp_path / "other.json")
    with pytest.raises(ValueError, match=r"no_such_module ended with 1 in the step s"):
        run_step(twice._replace(commands=[["no_such_module"]]), tmp_path / "other.json")
    assert not (tmp_path / "other.json").exists()
