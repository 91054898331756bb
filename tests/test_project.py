"""The project's promises: what is installed, which part may import which, how CI runs it."""

import ast
import os
import re
import runpy
import shutil
import subprocess
from importlib import metadata
from typing import Any

import pytest
import setuptools
from packaging.requirements import Requirement

from tests.small import ROOT, imported_names

# What a package of mate_tf may import, of the rest of mate_tf. Data flows one way.
ALLOWED_IMPORTS = {
    "tables": {"dataclass_json", "tables"},
    "attention": {
        "attention",
        "compilation",
        "config",
        "custom_gradient",
        "dataclass_json",
        "dropout",
        "linear",
        "tables",
    },
}


@pytest.fixture
def packaging(monkeypatch) -> dict[str, Any]:
    """The arguments that setup.py gives to setuptools."""
    arguments: dict[str, Any] = {}
    monkeypatch.setattr(setuptools, "setup", arguments.update)
    monkeypatch.chdir(ROOT)
    runpy.run_path(str(ROOT / "setup.py"))
    return arguments


def imports_of(folder: str) -> list[tuple[str, str]]:
    """(file, imported name) for every import, wherever it stands, in the files of a folder."""
    return [
        (path.relative_to(ROOT).as_posix(), name)
        for path in sorted((ROOT / folder).rglob("*.py"))
        for name in imported_names(path.read_text(encoding="utf-8"))
    ]


def test_wheel_has_every_package_of_the_library_and_nothing_else(packaging):
    folders = {path.parent for path in (ROOT / "mate_tf").rglob("*.py")}
    names = {".".join(folder.relative_to(ROOT).parts) for folder in folders}
    assert names - set(packaging["packages"]) == set()
    assert all(name.split(".")[0] == "mate_tf" for name in packaging["packages"])


def test_bazel_knows_every_folder_of_the_library():
    build = (ROOT / "BUILD").read_text(encoding="utf-8")
    table = re.search(r"^ROOMS = (\{.*?^\})", build, re.MULTILINE | re.DOTALL)
    assert table, "expected a table ROOMS in BUILD"
    files = (ROOT / "mate_tf").glob("*/**/*.py")
    assert set(ast.literal_eval(table[1])) == {
        file.relative_to(ROOT / "mate_tf").parts[0] for file in files
    }


def test_requirements_hold_in_this_environment(packaging):
    for text in packaging["install_requires"]:
        requirement = Requirement(text)
        assert requirement.specifier.contains(metadata.version(requirement.name)), text


def test_library_does_not_import_experiments_or_tests():
    outside = ("experiments", "scripts", "tests")
    assert [pair for pair in imports_of("mate_tf") if pair[1].split(".")[0] in outside] == []


def test_what_every_package_may_import_imports_nothing_of_the_library():
    names = [name for file, name in imports_of("mate_tf") if file == "mate_tf/dataclass_json.py"]
    assert names
    assert not [name for name in names if name.split(".")[0] == "mate_tf"]


@pytest.mark.parametrize("package", sorted(ALLOWED_IMPORTS))
def test_package_imports_only_what_comes_before_it(package):
    found = {
        (file, name)
        for file, name in imports_of(f"mate_tf/{package}")
        if name.split(".")[0] == "mate_tf" and name.split(".")[1] not in ALLOWED_IMPORTS[package]
    }
    assert found == set()


def test_no_pickle_is_loaded():
    """Loading one runs whatever code it holds."""
    imported = {
        (file, name)
        for folder in ("mate_tf", "experiments", "scripts")
        for file, name in imports_of(folder)
    }
    assert len(imported) > 1000
    pickles = {"cloudpickle", "dill", "joblib", "marshal", "pickle", "shelve"}
    assert {one for one in imported if one[1].split(".")[0] in pickles} == set()
    sources = [
        path for folder in ("mate_tf", "experiments") for path in (ROOT / folder).rglob("*.py")
    ]
    assert not any("allow_pickle=True" in path.read_text(encoding="utf-8") for path in sources)


def test_ci_runs_exactly_the_test_command_of_the_readme():
    script = ROOT / ".ci" / "run"
    assert os.access(script, os.X_OK)
    commands = [line for line in script.read_text().splitlines() if line.startswith("exec ")]
    assert commands == ["exec make test"]
    assert "make test\n" in (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("document", ["README.md", "CONTRIBUTING.md"])
def test_document_names_only_make_targets_that_exist(document):
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    text = (ROOT / document).read_text(encoding="utf-8")
    named = set(re.findall(r"(?:`|^ *)(?:[A-Z_]+=\S+ )?make ([a-z-]+)", text, re.MULTILINE))
    assert named
    assert named - targets == set()


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
def test_make_help_lists_every_target():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    (phony,) = re.findall(r"^\.PHONY: (.*)$", makefile, re.MULTILINE)
    run = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True, check=True)
    assert re.findall(r"^make ([a-z-]+)", run.stdout, re.MULTILINE) == phony.split()
