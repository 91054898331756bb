"""The README's tables made again: which steps, and what becomes of what they print."""

import dataclasses
import functools
import itertools
import re

import pytest

from experiments.config_files import make_config
from experiments.paper.reproduce import chosen, in_markdown, is_done, run_step
from experiments.paper.reproduction.setting import Setting, Step
from experiments.paper.reproduction.steps import steps
from tests.small import ROOT, imported_names, run_binary

FULL = Setting("wtq", "tabfact", "sst2", "minilm", "out", is_small=False)
SMALL = dataclasses.replace(FULL, is_small=True)
OUTPUTS = {"--output_dir", "--output", "--model_dir"}


@pytest.mark.parametrize("setting", [SMALL, FULL], ids=["small", "full"])
def test_steps_are_commands_of_this_project_and_follow_what_they_need(setting):
    every = steps(setting)
    names = [step.name for step in every]
    assert len(set(names)) == len(names)
    for index, step in enumerate(every):
        assert set(step.needs) <= set(names[:index])
        for module, *flags in step.commands:
            known = flags_of(module)
            for flag in flags:
                name = re.fullmatch(r"--([a-z_]+)(\..+)?(=.*)?", flag)[1]
                assert name in known, (module, flag)


@functools.cache
def flags_of(module: str) -> set[str]:
    """The names of a binary's flags: those that it and what it imports of its folder define."""
    source = (ROOT / f"{module.replace('.', '/')}.py").read_text(encoding="utf-8")
    names = set(re.findall(r'flags\.DEFINE_\w+\(\s*"(\w+)"', source))
    imported = imported_names(source)
    for other in {*imported, *(name.rpartition(".")[0] for name in imported)} - {module}:
        if other.startswith("experiments.") and (ROOT / f"{other.replace('.', '/')}.py").is_file():
            names |= flags_of(other)
    return names


@pytest.mark.parametrize("setting", [SMALL, FULL], ids=["small", "full"])
def test_what_a_command_reads_was_written_before(setting):
    written: dict[str, set[str]] = {}  # by step, with what the steps that it needs have written
    for step in steps(setting):
        there = set().union(*(written[name] for name in step.needs))
        for module, *flags in step.commands:
            values = [flag.partition("=")[::2] for flag in flags]
            read = {
                path
                for name, value in values
                if name not in OUTPUTS
                for path in re.findall(r"out/[^,]*", value)
            }
            for path in read:
                assert any(path == one or path.startswith(f"{one}/") for one in there), (
                    f"{step.name}: {module} reads {path}"
                )
            there |= {value for name, value in values if name in OUTPUTS}
        written[step.name] = there


@pytest.mark.parametrize("setting", [SMALL, FULL], ids=["small", "full"])
def test_every_single_run_has_a_config(setting):
    made = set()
    for step in steps(setting):
        for module, *flags in step.commands:
            preset = next((f.partition("=")[2] for f in flags if f.startswith("--config=")), None)
            if preset and module != "experiments.paper.compare_attention":
                changes = [flag for flag in flags if flag.startswith("--config.")]
                made.add(type(make_config(preset, None, changes)).__name__)
    assert made == {
        "MaskedLMTrainingConfig",
        "ClassificationTrainingConfig",
        "TableQATrainingConfig",
        "PointRConfig",
    }


def test_every_architecture_and_variant_has_a_config():
    made = set()
    for step in steps(FULL):
        for module, *flags in step.commands:
            if module != "experiments.paper.compare_attention":
                continue
            preset = next(f.partition("=")[2] for f in flags if f.startswith("--config="))
            shared = [flag for flag in flags if flag.startswith("--config.")]
            architectures = next(f for f in flags if f.startswith("--architectures="))
            names = [name for name in architectures.partition("=")[2].split(",") if name]
            names += [f.partition("=")[2] for f in flags if f.startswith("--variant=")]
            configs = [config_of(preset, name, shared) for name in names]
            # No two rows are of the same model.
            assert all(a != b for a, b in itertools.combinations(configs, 2)), step.name
            made |= {config.encoder.attention.architecture for config in configs}
    assert made >= {"tapas", "mate", "sat", "linformer", "table_etc", "tableformer"}


def config_of(preset: str, name: str, shared: list[str]):
    architecture, *own = name.split()
    return make_config(preset, architecture, [*shared, *(f"--config.{change}" for change in own)])


def test_what_a_step_needs_comes_with_it():
    every = steps(SMALL)
    assert [step.name for step in chosen(every, ["order_tapas"])] == [
        "wtq_256",
        "wtq_2048",
        "questions_256",
        "words",
        "questions",
        "wtq_after_questions",
        "order_tapas",
    ]
    assert chosen(every, None) == every
    with pytest.raises(ValueError, match=r"expected steps among .*, got 'none'"):
        chosen(every, ["none"])


def test_the_last_command_s_output_is_kept_and_a_failure_is_none(tmp_path, capsys):
    path = tmp_path / "step.md"
    twice = Step("s", "S", (), (("this",), ("this",)))
    run_step(twice, path)
    printed = path.read_text()
    assert "Namespaces are one honking great idea" in printed
    assert capsys.readouterr().out.count("$ python -m this") == 2
    assert is_done(twice, path)
    assert not is_done(Step("s", "S", (), (("this",),)), path)  # of other commands
    assert not is_done(twice, tmp_path / "other.md")
    with pytest.raises(ValueError, match=r"no_such_module ended with 1 in the step s"):
        run_step(Step("s", "S", (), (("no_such_module",),)), tmp_path / "other.md")
    assert not (tmp_path / "other.md").exists()


def test_tables_stay_and_text_keeps_its_width():
    assert in_markdown("| a |\n|---|\n") == "| a |\n|---|\n"
    assert in_markdown("a  1\nb  2\n") == "    a  1\n    b  2\n"
    with_headings = "# test\n\nof two:\n\n| a |\n| --- |\n| 1 |\n"
    assert in_markdown(with_headings) == f"##{with_headings}"


def test_folders_are_asked_for_by_name(tmp_path):
    listed = run_binary("experiments.paper.reproduce", "--list")
    assert listed.returncode == 0 and "default_flow" in listed.stdout
    none = run_binary("experiments.paper.reproduce")
    assert none.returncode == 1 and "expected --wtq, got none" in none.stderr
    flags = [f"--{name}={tmp_path}" for name in ("wtq", "tabfact", "sst2")]
    done = run_binary("experiments.paper.reproduce", *flags, "--minilm=/nowhere")
    assert done.returncode == 1
    assert "expected a folder at /nowhere (--minilm), found none" in done.stderr
