"""The project's promises: what is installed, which part may import which, how CI runs it."""

import ast
import contextlib
import functools
import graphlib
import importlib
import io
import itertools
import os
import pathlib
import re
import runpy
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from importlib import metadata
from typing import Any

import pytest
import setuptools
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import mate_tf
from tests.small import ROOT, cases, imported_names

URL = "https://github.com/mate-tf/mate_tf"


@pytest.fixture
def packaging(monkeypatch) -> dict[str, Any]:
    """The arguments that setup.py gives to setuptools."""
    arguments: dict[str, Any] = {}
    monkeypatch.setattr(setuptools, "setup", arguments.update)
    monkeypatch.chdir(ROOT)
    runpy.run_path(str(ROOT / "setup.py"))
    return arguments


@functools.cache
def sources(*folders: str) -> dict[pathlib.Path, str]:
    """The text of every Python file in the folders."""
    paths = [path for folder in folders for path in (ROOT / folder).rglob("*.py")]
    return {path.relative_to(ROOT): path.read_text(encoding="utf-8") for path in paths}


def files_of(command: str, packaging: dict[str, Any], folder: pathlib.Path) -> set[str]:
    """What a command of setuptools would put into a wheel or an sdist, without building one."""
    distribution = setuptools.Distribution({**packaging, "script_name": "setup.py"})
    built = distribution.get_command_obj(command)
    if command == "build_py":
        built.build_lib = str(folder)
    else:
        built.egg_base = str(folder)
    built.ensure_finalized()
    if command == "build_py":
        outputs = built.get_outputs(include_bytecode=False)
        return {pathlib.Path(file).relative_to(folder).as_posix() for file in outputs}
    with contextlib.redirect_stdout(io.StringIO()):
        built.run()
    return set(built.filelist.files)


def test_the_wheel_has_the_library_and_its_model_and_nothing_else(packaging, tmp_path):
    files = files_of("build_py", packaging, tmp_path)
    library = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "mate_tf").rglob("*")
        if path.is_file() and path.suffix != ".pyc"
    }
    assert files == library
    assert packaging["version"] == mate_tf.__version__


def test_the_citation_has_the_version_and_wheels_have_the_texts_of_both_licences(packaging):
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert re.findall("^version: (.+)$", citation, re.MULTILINE) == [mate_tf.__version__]
    texts = [(ROOT / name).read_text(encoding="utf-8") for name in packaging["license_files"]]
    titles = ["Apache License", "Attribution-ShareAlike 4.0 International"]
    assert [text.strip().partition("\n")[0] for text in texts] == titles
    assert packaging["license_expression"] == "Apache-2.0 AND CC-BY-SA-4.0"


def test_the_site_has_every_document_and_its_reference_every_public_name():
    site = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    documents = {path.relative_to(ROOT / "docs") for path in (ROOT / "docs").rglob("*.md")}
    listed = re.findall(r"^ +- [^:]+: (\S+\.md)$", site, re.MULTILINE)
    assert sorted(listed) == sorted(path.as_posix() for path in documents)
    pages = "".join(path.read_text("utf-8") for path in (ROOT / "docs/reference").glob("*.md"))
    named = re.findall(r"^::: ([\w.]+)$", pages, re.MULTILINE)
    assert len(named) == len(set(named)) > 30
    described = [
        getattr(importlib.import_module(it.rpartition(".")[0]), it.rpartition(".")[2])
        for it in named
    ]
    assert all(one.__doc__ for one in described)
    assert {f"mate_tf.{name}" for name in mate_tf.__all__} <= set(named)


@pytest.mark.filterwarnings("ignore::setuptools.SetuptoolsDeprecationWarning")
def test_the_sdist_has_what_its_tests_and_its_makefile_need(packaging, tmp_path):
    files = files_of("egg_info", packaging, tmp_path)
    named = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    if named.returncode:
        pytest.skip("this is not a git repository")
    assert set(named.stdout.splitlines()) - files == set()
    assert not [file for file in files if file.startswith((".venv", "out/"))]


def test_links_of_the_description_work_on_an_index_and_extras_that_messages_name_exist(packaging):
    links = re.findall(r"\]\(([^)\s]+)", packaging["long_description"])
    assert len(links) > 5
    assert [link for link in links if not link.startswith("https://")] == []
    of_project = [link for link in links if link.startswith(f"{URL}/")]
    files = [re.sub(rf"{URL}/(blob|raw|tree)/main/|#.*", "", link) for link in of_project]
    assert [file for file in files if not (ROOT / file).exists()] == []
    pattern = r'mate_tf\[([a-z-]+)\]|import_extra\(\s*"[\w.]+", "([a-z-]+)"'
    named = {
        "".join(pair) for text in sources("mate_tf").values() for pair in re.findall(pattern, text)
    }
    assert len(named) > 4
    assert named <= set(packaging["extras_require"])


def test_constraints_name_versions_and_requirements_hold_in_this_environment(packaging):
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = [Requirement(line) for line in lines if not line.startswith("#")]
    assert all(pin.url is None for pin in pins)
    assert all([one.operator for one in pin.specifier] == ["=="] for pin in pins)
    pinned = {canonicalize_name(pin.name): pin for pin in pins}
    requirements = [*packaging["install_requires"], *packaging["extras_require"]["dev"]]
    for requirement in map(Requirement, requirements):
        (version,) = pinned[canonicalize_name(requirement.name)].specifier
        assert requirement.specifier.contains(version.version), requirement
    for text in packaging["install_requires"]:
        requirement = Requirement(text)
        assert requirement.specifier.contains(metadata.version(requirement.name)), text


@pytest.fixture(scope="module")
def resolve() -> Callable[[Sequence[str], str], subprocess.CompletedProcess]:
    """Finds versions that fit together for a Python, with uv; a function of the requirements."""
    uv = pytest.importorskip("uv", reason="uv is not installed").find_uv_bin()

    def run(
        requirements: Sequence[str], python: str, platform: str = "linux"
    ) -> subprocess.CompletedProcess:
        system = f"--python-platform={platform}"
        command = [uv, "pip", "compile", "--quiet", f"--python-version={python}", system, "-"]
        given = "\n".join(requirements)
        return subprocess.run(command, input=given, capture_output=True, text=True, check=False)

    if run(["absl-py"], "3.12").returncode:
        pytest.skip("there is no network")
    return run


PYTHONS = ["3.11", "3.12", "3.13", "3.14"]


@pytest.mark.medium
@pytest.mark.parametrize("python", PYTHONS)
@pytest.mark.parametrize("each", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_all_extras_together_and_alone_resolve_on_every_python(packaging, resolve, python, each):
    assert [it[-4:] for it in packaging["classifiers"] if ":: 3." in it] == PYTHONS
    for extra, requirements in packaging["extras_require"].items():
        if each != (extra in ("all", "dev")):
            done = resolve([*packaging["install_requires"], *requirements], python)
            assert done.returncode == 0, f"{extra}: {done.stderr}"


@pytest.mark.medium
@cases(
    "platform, has_tensorflow",
    ("x86_64-apple-darwin", False),
    ("aarch64-apple-darwin", True),
    ("x86_64-pc-windows-msvc", True),
)
def test_the_package_installs_where_tensorflow_has_no_packages(
    packaging, resolve, platform, has_tensorflow
):
    done = resolve(packaging["install_requires"], "3.12", platform)
    assert done.returncode == 0, done.stderr
    assert "onnxruntime==" in done.stdout
    assert ("tensorflow==" in done.stdout) == has_tensorflow


def test_every_requirement_has_a_lower_bound(packaging):
    extras = packaging["extras_require"].values()
    requirements = {*packaging["install_requires"], *itertools.chain(*extras)}
    assert len(requirements) > 40
    for requirement in map(Requirement, requirements):
        operators = {one.operator for one in requirement.specifier}
        assert operators & {">=", "~="}, requirement


@pytest.fixture(scope="module")
def imports() -> dict[str, set[str]]:
    """Of each module of mate_tf those that it imports when it runs, at once or later."""
    grimp = pytest.importorskip("grimp", reason="import-linter is not installed")
    graph = grimp.build_graph("mate_tf", exclude_type_checking_imports=True, cache_dir=None)
    return {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}


def test_bazel_knows_what_each_package_imports(imports):
    build = (ROOT / "BUILD").read_text(encoding="utf-8")
    table = re.search(r"^PACKAGES = (\{.*?^\})", build, re.MULTILINE | re.DOTALL)
    assert table, "expected a table PACKAGES in BUILD"
    folders = {path.parent.name for path in (ROOT / "mate_tf").glob("*/*.py")}
    found: dict[str, set[str]] = {name: set() for name in folders}
    for module, imported in imports.items():
        package = module.split(".")[1] if "." in module else ""
        if package in found:
            names = {name.split(".")[1] for name in imported if "." in name}
            found[package] |= names & folders - {package}
    assert {name: set(names.split()) for name, names in ast.literal_eval(table[1]).items()} == found


def test_no_files_import_each_other_in_a_circle(imports):
    graph = imports | {"mate_tf": set()}  # its names are imported when asked for
    assert len(graph) > 100
    try:
        list(graphlib.TopologicalSorter(graph).static_order())
    except graphlib.CycleError as error:
        pytest.fail(f"{' -> '.join(error.args[1])}")


def test_packages_name_no_module_of_another_in_a_string():
    """But for the public names in mate_tf/__init__.py."""
    named = {
        path: name
        for path, text in sources("mate_tf").items()
        for call in re.findall(r"import_module\(([^()]*)", text)
        for name in re.findall(r"mate_tf\.\w+", call)
        if path.name != "__init__.py" and name != f"mate_tf.{path.parts[1]}"
    }
    assert named == {}


def test_packages_import_one_way():
    """The contracts of pyproject.toml."""
    cli = pytest.importorskip("importlinter.cli", reason="import-linter is not installed")
    assert cli.lint_imports(str(ROOT / "pyproject.toml"), no_cache=True, no_logo=True) == 0


# What modules may import at once: the core, and in some folders the packages of an extra.
CORE = {"absl", "google", "keras", "mate_tf", "numpy", "tensorflow", *sys.stdlib_module_names}
SERVER = {"fastapi", "prometheus_client", "pydantic", "starlette", "uvicorn"}
ALSO = {
    "mate_tf/command_line": {"rich"},
    "mate_tf/serving/http": SERVER,
    "mate_tf/serving": {"tensorflow_text"},  # by text_signature alone
}


def test_what_the_library_imports_at_once_is_the_core():
    beyond, count = set(), 0
    for path, text in sources("mate_tf").items():
        allowed = CORE | ALSO.get(path.parent.as_posix(), set())
        for statement in ast.parse(text).body:
            if isinstance(statement, ast.Import | ast.ImportFrom):
                names = {name.split(".")[0] for name in imported_names(ast.unparse(statement))}
                beyond |= {(path, name) for name in names - allowed}
                count += 1
    assert count > 500
    assert beyond == set()


# What no file says, but for those that are named with it.
UNSAID = {
    # Private modules of other libraries; ruff's SLF001 finds private attributes.
    r"^ *(from|import) (tensorflow\.python|keras\.src|uvicorn\.protocols)\b": {"private_apis.py"},
    # Loading one runs whatever code it holds.
    r"^ *(from|import) (cloudpickle|dill|joblib|marshal|pickle|shelve)\b|allow_pickle=True": set(),
    # A docstring begins with what a thing is or does, but not with "What".
    r'^\s*"""What\b': set(),
}


@pytest.mark.parametrize(("pattern", "allowed"), UNSAID.items())
def test_some_things_stand_in_no_file_but_those_that_are_for_them(pattern, allowed):
    files = sources("mate_tf", "experiments", "scripts")
    assert len(files) > 150
    found = {path.name for path, text in files.items() if re.search(pattern, text, re.MULTILINE)}
    assert found == allowed


def test_ci_runs_exactly_the_test_command_of_the_readme():
    script = ROOT / ".ci" / "run"
    assert os.access(script, os.X_OK)
    commands = [line for line in script.read_text().splitlines() if line.startswith("exec ")]
    assert commands == ["exec make test test-docs"]
    assert "make test test-docs\n" in (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
def test_make_help_lists_every_target_and_documents_name_no_others():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    (phony,) = re.findall(r"^\.PHONY: (.*)$", makefile, re.MULTILINE)
    run = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True, check=True)
    assert re.findall(r"^make ([a-z-]+)", run.stdout, re.MULTILINE) == phony.split()
    for document in ("README.md", "CONTRIBUTING.md"):
        text = (ROOT / document).read_text(encoding="utf-8")
        pattern = r"(?:`|^ *)(?:[A-Z_]+=\S+ )?make ([a-z-]+)"
        named = set(re.findall(pattern, text, re.MULTILINE))
        assert named and named <= set(phony.split())
