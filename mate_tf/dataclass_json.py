"""Frozen dataclasses from JSON, the inverse of dataclasses.asdict, and their checks and changes.

Values must have the types that the fields are annotated with: bool, int, float, str, Literal,
tuple[X, ...], Mapping[str, X], X | None and other dataclasses.
"""

import copy
import dataclasses
import functools
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar


def require_fields(config: Any, holds: Callable[[Any], bool], expected: str, *names: str) -> None:
    """ValueError where a field that is not None does not hold, such as "expected NAME above 0"."""
    for name in names:
        value = getattr(config, name)
        require(value is None or holds(value), f"expected {name} {expected}, got {value!r}")


def require(condition: bool, message: str) -> None:
    """ValueError with the message, "expected X, got Y", unless the condition holds."""
    if not condition:
        raise ValueError(message)


Dataclass = TypeVar("Dataclass")
# Fields that releases had, and their defaults: the only values with which they are still read.
GONE: dict[str, Any] = {
    "add_aggregation_candidates": False,
    "agg_temperature": 1.0,
    "aggregation_loss_importance": 1.0,
    "answer_loss_importance": 1.0,
    "average_logits_per_cell": False,
    "cell_cross_entropy_hard_em": False,
    "discard_ambiguous": False,
    "early_stopping_patience": None,
    "label_weights": [],
    "learn_grammar_bias": False,
    "longer_lengths": [],
    "max_gradient_norm": 1.0,
    "num_aggregation_labels": 4,  # now the names of the operators
    "num_neighbours": 1,
    "numbers_version": 2,
    "scale_relations": False,
    "use_gumbel_for_agg": False,
    "use_gumbel_for_cells": False,
    "with_titles": False,
}


def from_dict(cls: type[Dataclass], values: Any, name: str = "config") -> Dataclass:
    """A dataclass out of what `dataclasses.asdict` gave, possibly by way of JSON.

    A field with a default may be missing, and a key in GONE may have the value that it has there.
    ValueError, with the dataclass's name, for an unknown or missing key, or a value that is not of
    the field's type.
    """
    return convert(values, cls, name)


def convert(
    value: Any,
    kind: Any,
    name: str,
    current: Any = None,
    read: Callable[[Any, Any], Any] = lambda value, kind: value,
) -> Any:
    """A value of an annotated type; errors as `from_dict`.

    A dataclass of several kinds has a function `kind_of_values` that says which one a mapping is.

    Args:
        value: what JSON says.
        kind: the type.
        name: what the value is called in errors.
        current: the dataclass whose fields a mapping replaces; None for a new one.
        read: makes of a value that is written in another way, and its type, what JSON would say.
    """
    if hasattr(kind, "kind_of_values") and isinstance(value, Mapping):
        kind, value, current = kind.kind_of_values(value, current)
    if dataclasses.is_dataclass(kind):
        return _convert_fields(value, kind, name, current, read)
    value = read(value, kind)
    origin, options = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        if value is None:
            return None
        (kind,) = (option for option in options if option is not types.NoneType)
        return convert(value, kind, name, current, read)
    if origin is tuple and isinstance(value, list | tuple):
        return tuple(convert(item, options[0], name, None, read) for item in value)
    if origin is Mapping and isinstance(value, Mapping):
        return {
            str(key): convert(item, options[1], f"{name}.{key}", None, read)
            for key, item in value.items()
        }
    if origin is typing.Literal:
        if value in options:
            return value
        kind = f"one of {', '.join(map(str, options))}"
    elif kind is float and type(value) is int:
        return float(value)
    # bool is a subclass of int.
    elif not origin and isinstance(value, kind) and isinstance(value, bool) == (kind is bool):
        return value
    expected = kind.__name__ if isinstance(kind, type) and not origin else kind
    raise ValueError(f"expected {expected} for {name}, got {value!r}")


def _convert_fields(
    value: Any, kind: Any, name: str, current: Any, read: Callable[[Any, Any], Any]
) -> Any:
    fields = _field_types(kind)
    known = ", ".join(fields)
    if not isinstance(value, Mapping):
        raise ValueError(f"expected {name} to be set by its keys {known}, got {value!r}")
    former = GONE if current is None else {}
    for key in (key for key in value if key not in fields):
        if key not in former:
            raise ValueError(f"unknown key {name}.{key}; the known keys are {known}")
        given = list(value[key]) if isinstance(value[key], tuple) else value[key]
        if given != former[key]:
            expected = f"expected {former[key]!r} for {name}.{key}, an option of former versions"
            raise ValueError(f"{expected}, got {value[key]!r}")
    values = {
        key: convert(item, fields[key], f"{name}.{key}", getattr(current, key, None), read)
        for key, item in value.items()
        if key in fields
    }
    if current is not None:
        return dataclasses.replace(current, **values)
    missing = [
        field.name
        for field in dataclasses.fields(kind)
        if field.default is field.default_factory is dataclasses.MISSING
        and field.name not in values
    ]
    if missing:
        raise ValueError(f"expected the keys {', '.join(missing)} in {name}, which lacks them")
    return kind(**values)


@functools.cache
def _field_types(kind: Any) -> dict[str, Any]:
    types_of = typing.get_type_hints(kind)
    return {field.name: types_of[field.name] for field in dataclasses.fields(kind) if field.init}


PREFIX = "--config."
_READERS: dict[Any, Callable[[str], Any]] = {int: int, float: float}
_READERS[bool] = lambda text: {"true": True, "false": False}[text.lower()]


def split_arguments(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """Separates command line arguments into (others, overrides of the config before a "--")."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    overrides = [argument for argument in arguments[:end] if argument.startswith(PREFIX)]
    others = [argument for argument in arguments[:end] if not argument.startswith(PREFIX)]
    return [*others, *arguments[end:]], overrides


def apply_overrides(config: Dataclass, overrides: Sequence[str], **changes: Any) -> Dataclass:
    """The config with overrides such as "--config.encoder.num_layers=6", all applied at once.

    Values are read by the type of the field: tuples with commas, an absent value as `none`. Other
    changes of fields come first; the config's own checks see only the result. ValueError for an
    override that is not key=value, an unknown key (the message lists the known ones) or a value
    that is not of the field's type.
    """
    config = copy.copy(config)
    for name, value in changes.items():
        object.__setattr__(config, name, value)
    tree: dict[str, Any] = {}
    for override in overrides:
        key, equals, text = override.removeprefix(PREFIX).partition("=")
        if not (equals and override.startswith(PREFIX)):
            raise ValueError(f"expected {PREFIX}key=value, got {override}")
        *groups, name = key.split(".")
        node = tree
        for group in groups:
            node = node.setdefault(group, {})
            if not isinstance(node, dict):
                raise ValueError(f"expected one value or the keys of config.{group}, got both")
        node[name] = text
    return convert(tree, type(config), "config", config, _read)


def _read(value: Any, kind: Any) -> Any:
    """A text as JSON would have it for a type; the text itself where it does not fit."""
    if not isinstance(value, str):  # part of a tuple, read already
        return value
    origin, options = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType) and value.lower() == "none":
        return None
    if origin is tuple:
        return [item for item in value.split(",") if item]
    if origin is typing.Literal:
        return {str(option): option for option in options}.get(value, value)
    try:
        return _READERS[kind](value)
    except (KeyError, ValueError):
        return value


def differences(there: dict, here: dict, prefix: str = "") -> list[str]:
    """The keys of both whose values differ, as "key=here (there: value)"."""
    changes = []
    for key, value in here.items():
        if key not in there:
            continue
        if isinstance(value, dict) and isinstance(there[key], dict):
            changes += differences(there[key], value, f"{prefix}{key}.")
        elif value != there[key]:
            changes.append(f"{prefix}{key}={value} (there: {there[key]})")
    return changes
