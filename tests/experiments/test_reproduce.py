"""The README's tables made again: which steps, and what becomes of what they print."""

import pytest

from experiments.reproduce import chosen, in_markdown, run_step
from experiments.reproduction import Folders, Step, steps
from mate_tf.presets import ARCHITECTURE_PRESETS
from tests.small import ROOT, run_binary

FOLDERS = Folders("wtq", "tabfact", "sst2", "minilm", "out")


@pytest.mark.parametrize("is_small", [True, False])
def test_steps_are_commands_of_this_project_and_follow_what_they_need(is_small):
    every = steps(FOLDERS, is_small)
    names = [step.name for step in every]
    assert len(set(names)) == len(names)
    for index, step in enumerate(every):
        assert set(step.needs) <= set(names[:index])
        for module, *flags in step.commands:
            assert (ROOT / f"{module.replace('.', '/')}.py").is_file()
            assert all(flag.startswith("--") for flag in flags)
            for flag in flags:
                name, _, value = flag.partition("=")
                if name == "--architectures":
                    assert {*filter(None, value.split(","))} <= ARCHITECTURE_PRESETS.keys()
                if name == "--variant":
                    assert value.split()[0] in ARCHITECTURE_PRESETS


def test_what_a_step_needs_comes_with_it():
    every = steps(FOLDERS, True)
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
    with pytest.raises(ValueError, match=r"no_such_module ended with 1 in the step s"):
        run_step(Step("s", "S", (), (("no_such_module",),)), tmp_path / "other.md")
    assert not (tmp_path / "other.md").exists()


def test_tables_stay_and_text_keeps_its_width():
    assert in_markdown("| a |\n|---|\n") == "| a |\n|---|\n"
    assert in_markdown("a  1\nb  2\n") == "    a  1\n    b  2\n"


def test_folders_are_asked_for_by_name(tmp_path):
    listed = run_binary("experiments.reproduce", "--list")
    assert listed.returncode == 0 and "default_flow" in listed.stdout
    none = run_binary("experiments.reproduce")
    assert none.returncode == 1 and "expected --wtq, got none" in none.stderr
    flags = [f"--{name}={tmp_path}" for name in ("wtq", "tabfact", "sst2")]
    done = run_binary("experiments.reproduce", *flags, "--minilm=/nowhere")
    assert done.returncode == 1
    assert "expected a folder at /nowhere (--minilm), found none" in done.stderr
