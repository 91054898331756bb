"""Writes the targets of BUILD from the Python files of the tree and what they import.

Each file of mate_tf/, experiments/, scripts/ and tests/ is one target named after its path: a
py_test if it is called test_*.py, a py_binary if it has a main block, a py_library otherwise. Its
deps are the files of this project that it imports, anywhere in its text, or names in a string, as
"experiments.demo". `make build-files` runs this; tests/test_build_files.py checks that it was run.
"""

import ast
import dataclasses
import pathlib
from collections.abc import Iterable, Iterator

ROOT = pathlib.Path(__file__).resolve().parents[1]
TOP_FOLDERS = ("experiments", "mate_tf", "scripts", "tests")
PROGRAMS = ("experiments.", "scripts.")  # how names in strings begin
TEST_MAIN = "tests/run_pytest.py"

HEADER = '''\
"""One target a file, written by `make build-files`.

TensorFlow and the other packages of setup.py come from the Python that runs the targets:
make env && PATH="$PWD/.venv/bin:$PATH" bazel test //...
"""

load("@rules_python//python:defs.bzl", "py_binary", "py_library", "py_test")

package(default_visibility = ["//visibility:public"])
'''


@dataclasses.dataclass(frozen=True)
class Target:
    """One rule of BUILD; paths are relative to the root, deps are names of targets."""

    rule: str
    source: str
    data: tuple[str, ...]
    deps: tuple[str, ...]

    @property
    def name(self) -> str:
        return self.source.removesuffix(".py")


def python_files(root: pathlib.Path) -> list[str]:
    """The paths, relative to the root, of the files that get a target."""
    return sorted(
        path.relative_to(root).as_posix()
        for folder in TOP_FOLDERS
        for path in (root / folder).rglob("*.py")
    )


def strings(tree: ast.AST) -> set[str]:
    """Every string constant, and the constant pieces of f-strings."""
    return {
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }


def imported_names(tree: ast.AST) -> Iterator[str]:
    """Every dotted name that an import statement may stand for."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def file_of(name: str, files: frozenset[str]) -> str | None:
    """The file that an imported name comes from, None if it is not one of this project's.

    `a.b.c` is the module a/b/c.py, the package a/b/c, or something inside a/b.py or package a/b.
    """
    path = name.replace(".", "/")
    for candidate in (path, path.rpartition("/")[0]):
        for file in (f"{candidate}.py", f"{candidate}/__init__.py"):
            if file in files:
                return file
    return None


def files_of_strings(words: set[str], files: frozenset[str]) -> set[str]:
    """Programs and presets that are started or loaded by their dotted name."""
    paths = {word.strip(".").replace(".", "/") for word in words if word.startswith(PROGRAMS)}
    return {
        file
        for file in files
        if any(file == f"{path}.py" or file.startswith(f"{path}/") for path in paths)
    }


def is_main_block(node: ast.stmt) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test) == "__name__ == '__main__'"


def rule_of(path: pathlib.PurePosixPath, tree: ast.Module) -> str:
    if path.parts[0] == "tests":
        return "py_test" if path.name.startswith("test_") else "py_library"
    is_program = path.name == "__main__.py" or any(map(is_main_block, tree.body))
    return "py_binary" if is_program else "py_library"


def data_patterns(root: pathlib.Path, words: set[str]) -> list[str]:
    """Patterns for the data files in the folders that a file names in a string."""
    return sorted(
        {
            (path.parent.relative_to(root) / f"*{path.suffix}").as_posix()
            for top in (*TOP_FOLDERS, "docs")
            for path in (root / top).rglob("*.*")
            if path.is_file()
            and path.parent.name in words - {"__pycache__", *TOP_FOLDERS}
            and path.suffix != ".py"
        }
    )


def conftests(path: pathlib.PurePosixPath, files: frozenset[str]) -> list[str]:
    """The conftest.py files that pytest loads for a test."""
    return [file for up in path.parents if (file := f"{up}/conftest.py") in files]


def targets(root: pathlib.Path) -> list[Target]:
    """One target for each Python file.

    Raises:
        ValueError: if the imports run in a circle, which Bazel refuses.
    """
    files = frozenset(python_files(root)) - {TEST_MAIN}
    made = []
    for file in sorted(files):
        path = pathlib.PurePosixPath(file)
        tree = ast.parse((root / file).read_text(encoding="utf-8"), file)
        rule = rule_of(path, tree)
        words = strings(tree)
        imported = {file_of(name, files) for name in imported_names(tree)}
        needed = (imported | files_of_strings(words, files)) - {file, None}
        if rule == "py_test":
            needed.update(conftests(path, files))
        deps = sorted(str(dep).removesuffix(".py") for dep in needed)
        made.append(Target(rule, file, tuple(data_patterns(root, words)), tuple(deps)))
    check_acyclic({target.name: target.deps for target in made})
    return made


def check_acyclic(deps: dict[str, tuple[str, ...]]) -> None:
    """Raises ValueError, naming the circle, if a target depends on itself."""
    done: set[str] = set()

    def visit(name: str, trail: tuple[str, ...]) -> None:
        if name in trail:
            circle = " -> ".join((*trail[trail.index(name) :], name))
            raise ValueError(f"expected imports without a circle, got {circle}")
        if name in done:
            return
        for dep in deps[name]:
            visit(dep, (*trail, name))
        done.add(name)

    for name in deps:
        visit(name, ())


def string_list(items: Iterable[str]) -> str:
    """A Starlark list of strings as buildifier lays it out."""
    quoted = [f'"{item}"' for item in items]
    if len(quoted) < 2:
        return f"[{''.join(quoted)}]"
    return "[\n" + "".join(f"        {item},\n" for item in quoted) + "    ]"


def render_target(target: Target) -> str:
    """The text of one rule, its attributes in buildifier's order."""
    attributes = {"name": f'"{target.name}"'}
    if target.rule == "py_test":
        attributes["srcs"] = string_list(sorted([TEST_MAIN, target.source]))
        attributes["args"] = string_list([target.source])
    else:
        attributes["srcs"] = string_list([target.source])
    if target.source.startswith("tests/") and target.rule == "py_library":
        attributes = {"name": attributes["name"], "testonly": "True", "srcs": attributes["srcs"]}
    if target.rule == "py_test":
        attributes["data"] = string_list(["pyproject.toml"])
        attributes["main"] = f'"{TEST_MAIN}"'
    elif target.rule == "py_binary":
        attributes["main"] = f'"{target.source}"'
    if target.data:
        more = attributes.get("data", "")
        attributes["data"] = f"{more}{' + ' if more else ''}glob({string_list(target.data)})"
    if target.deps:
        attributes["deps"] = string_list(f":{dep}" for dep in target.deps)
    lines = "".join(f"    {key} = {value},\n" for key, value in attributes.items())
    return f"{target.rule}(\n{lines})\n"


def render(root: pathlib.Path) -> str:
    """The whole text of BUILD."""
    return "\n".join([HEADER, *map(render_target, targets(root))])


if __name__ == "__main__":
    (ROOT / "BUILD").write_text(render(ROOT), encoding="utf-8")
