"""Lists the options of configs that nothing sets to another value than their default.

    python -m scripts.unset_options

An option is set by a preset, by a command or program (a flag, or a call that names it), by a script
or a command in the docs (--config.learning_rate=1e-4), by a configuration of published weights that
is read, or by a comparison with numbers of the original code (tests/golden). Other tests set none.
"""

import ast
import dataclasses
import pathlib
import re
import typing
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

_ROOT = pathlib.Path(__file__).resolve().parents[1]
_SOURCES = ("mate_tf", "experiments", "scripts", "tests/golden")
_TEXTS = ("README.md", "docs/*.md", "experiments/**/*.md", "scripts/*.sh", "Makefile")
# They read other configurations by the names of ours.
_TRANSLATORS = ("mate_tf/weights/initial.py", "tests/golden/")
_CHANGERS = ("replace", "dict", "steps", "_preset")  # besides the configs themselves


def unset_options() -> list[str]:
    """The options that nothing sets, as "Config.field", each by the config that defines it."""
    from mate_tf.config import AttentionConfig
    from mate_tf.features.config import FeatureConfig
    from mate_tf.presets import ARCHITECTURE_PRESETS
    from mate_tf.records.conversion_file import Conversion
    from mate_tf.training.starting_points import STARTING_POINTS, presets

    groups = (presets(), STARTING_POINTS, ARCHITECTURE_PRESETS)
    configs = [config for group in groups for config in group.values()]
    kinds = set(AttentionConfig.__subclasses__())
    for kind in {FeatureConfig, Conversion, *map(type, configs)} - {dict, type(None)}:
        kinds |= set(_dataclasses_in(kind))
    names = set(_changed(configs)) | set(_named_in_sources({kind.__name__ for kind in kinds}))
    return sorted(
        f"{kind.__name__}.{name}"
        for kind in kinds - {Conversion}  # which no one writes but the programs
        for name in _own_options(kind)
        if name not in names
    )


def _own_options(kind: type) -> Iterator[str]:
    """The fields that a config defines itself, but for configs in it."""
    for field in dataclasses.fields(kind):
        is_own = field.name in vars(kind).get("__annotations__", {})
        if is_own and field.default_factory is dataclasses.MISSING:
            yield field.name


def _dataclasses_in(kind: Any) -> Iterator[type]:
    """A dataclass with those that it is derived from, that are derived from it or in its fields."""
    if not (isinstance(kind, type) and dataclasses.is_dataclass(kind)):
        for option in typing.get_args(kind):
            yield from _dataclasses_in(option)
        return
    yield from (base for base in kind.__mro__ if dataclasses.is_dataclass(base))
    for derived in kind.__subclasses__():
        yield from _dataclasses_in(derived)
    for field_type in typing.get_type_hints(kind).values():
        yield from _dataclasses_in(field_type)


def _changed(configs: Iterable[Any]) -> Iterator[str]:
    """The fields whose values are not their defaults, and keys of mappings."""
    for config in configs:
        if isinstance(config, Mapping):
            yield from config
            yield from _changed(config.values())
        elif dataclasses.is_dataclass(config):
            for field in dataclasses.fields(config):
                value = getattr(config, field.name)
                if field.default_factory is not dataclasses.MISSING:
                    yield from _changed([value])
                elif value != field.default:
                    yield field.name
                    yield from _changed([value])


def _named_in_sources(classes: set[str]) -> Iterator[str]:
    """The names that sources and texts give to options where they set them."""
    for folder in _SOURCES:
        for path in sorted((_ROOT / folder).rglob("*.py")):
            if path != pathlib.Path(__file__).resolve():
                where = path.relative_to(_ROOT).as_posix()
                yield from _named_in_code(ast.parse(path.read_text("utf-8")), where, classes)
    for pattern in _TEXTS:
        for path in _ROOT.glob(pattern):
            yield from _overridden(path.read_text("utf-8"))


def _named_in_code(tree: ast.AST, where: str, classes: set[str]) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            called = getattr(node.func, "attr", getattr(node.func, "id", ""))
            if called in classes or called in _CHANGERS:
                yield from (keyword.arg for keyword in node.keywords if keyword.arg)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from _overridden(node.value)
            if where.startswith("mate_tf/command_line/"):
                for name in re.findall(r"^ *--([a-z-]+)", node.value, re.MULTILINE):
                    yield name.replace("-", "_")
            if where.startswith(_TRANSLATORS):
                yield from node.value.split() if len(node.value) < 500 else ()


def _overridden(text: str) -> Iterator[str]:
    for path in re.findall(r"(?:--config\.|\bencoder\.|\btask\.|^)([\w.]+)=", text):
        yield path.split(".")[-1]


if __name__ == "__main__":
    print("\n".join(unset_options()))
