"""BUILD is in step with the tree, and the script that writes it does what it says."""

import pathlib
import shutil
import subprocess

import pytest

from scripts import update_build

ROOT = pathlib.Path(__file__).resolve().parents[1]


def write_tree(root: pathlib.Path, files: dict[str, str]) -> pathlib.Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return root


def test_build_is_what_the_tree_asks_for():
    written = (ROOT / "BUILD").read_text(encoding="utf-8")
    assert written == update_build.render(ROOT), "BUILD is out of step: run `make build-files`"


def test_every_file_is_the_source_of_one_target():
    sources = [target.source for target in update_build.targets(ROOT)]
    assert sorted([*sources, update_build.TEST_MAIN]) == update_build.python_files(ROOT)


@pytest.mark.skipif(shutil.which("buildifier") is None, reason="buildifier is not installed")
def test_buildifier_finds_nothing():
    subprocess.run(
        ["buildifier", "--mode=check", "--lint=warn", "BUILD", "MODULE.bazel"], cwd=ROOT, check=True
    )


@pytest.mark.parametrize(
    ("source", "text", "rule", "deps"),
    [
        ("mate_tf/b.py", "import os", "py_library", ()),
        ("mate_tf/b.py", "import mate_tf.a", "py_library", ("mate_tf/a",)),
        ("mate_tf/b.py", "from mate_tf import a", "py_library", ("mate_tf/a",)),
        ("mate_tf/b.py", "from mate_tf.a import Thing", "py_library", ("mate_tf/a",)),
        ("mate_tf/b.py", "from mate_tf import Thing", "py_library", ("mate_tf/__init__",)),
        ("mate_tf/b.py", "def f():\n  import mate_tf.a", "py_library", ("mate_tf/a",)),
        ("mate_tf/b.py", "from numpy import a", "py_library", ()),
        ("mate_tf/b.py", "package = 'mate_tf'", "py_library", ()),
        ("experiments/b.py", "if __name__ == '__main__': pass", "py_binary", ()),
        ("experiments/b/__main__.py", "", "py_binary", ()),
        (
            "experiments/b.py",
            "f'experiments.configs.{name}'",
            "py_library",
            ("experiments/configs/c",),
        ),
        ("tests/test_b.py", "import mate_tf.a", "py_test", ("mate_tf/a",)),
        ("tests/golden/test_b.py", "", "py_test", ("tests/golden/conftest",)),
    ],
)
def test_rule_and_deps_follow_from_the_text(tmp_path, source, text, rule, deps):
    root = write_tree(
        tmp_path,
        {
            "mate_tf/__init__.py": "",
            "mate_tf/a.py": "",
            "experiments/configs/c.py": "",
            "tests/golden/conftest.py": "",
            source: text,
        },
    )
    found = {target.source: target for target in update_build.targets(root)}
    assert (found[source].rule, found[source].deps) == (rule, deps)


def test_data_are_in_the_folders_that_a_file_names(tmp_path):
    root = write_tree(
        tmp_path,
        {
            "experiments/demo.py": "open('tables')",
            "experiments/ask.py": "open('elsewhere')",
            "experiments/tables/moons.csv": "name\n",
            "experiments/tables/make.py": "",
        },
    )
    found = {target.source: target.data for target in update_build.targets(root)}
    assert found["experiments/demo.py"] == ("experiments/tables/*.csv",)
    assert found["experiments/ask.py"] == ()


def test_circular_imports_are_named(tmp_path):
    root = write_tree(
        tmp_path, {"mate_tf/a.py": "import mate_tf.b", "mate_tf/b.py": "from mate_tf import a"}
    )
    with pytest.raises(ValueError, match="mate_tf/a -> mate_tf/b -> mate_tf/a"):
        update_build.targets(root)
