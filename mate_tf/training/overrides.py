"""Frozen dataclass configs: values from the command line, to JSON and back.

    --config.learning_rate=1e-4 --config.encoder.attention.bucket_size=64

Values are read by the type of the field. Tuples are written with commas, an absent value as
`none`. All overrides of a config are applied at once, so its own checks see the final values.
"""

import copy
import dataclasses
import functools
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

PREFIX = "--config."
Config = TypeVar("Config")


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


# Each takes the text of an override or a value out of JSON.
_READERS: dict[Any, Callable[[Any], Any]] = {
    bool: lambda value: {"true": True, "false": False}[str(value).lower()],
    int: lambda value: int(str(value)),
    float: float,
    str: _text,
}


def split_arguments(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """Separates command line arguments into (others, overrides of the config)."""
    others = [argument for argument in arguments if not argument.startswith(PREFIX)]
    overrides = [argument for argument in arguments if argument.startswith(PREFIX)]
    return others, overrides


def apply_overrides(config: Config, overrides: Sequence[str], **changes: Any) -> Config:
    """The config with overrides such as "--config.encoder.num_layers=6".

    Args:
        config: a dataclass.
        overrides: one key and value each.
        **changes: fields that are replaced before; only what the overrides make of them has to
            pass the config's own checks.

    Raises:
        ValueError: for an override that is not key=value, an unknown key (the message lists the
            known ones) or a value that is not of the field's type.
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
    return _convert(tree, type(config), "config", config)


def from_dict(cls: type[Config], values: Mapping[str, Any]) -> Config:
    """A config out of what `dataclasses.asdict` gave, possibly by way of JSON.

    Raises:
        ValueError: for an unknown or missing key, or a value that is not of the field's type.
    """
    return _convert(values, cls, "config", None)


def _convert(value: Any, kind: Any, key: str, current: Any) -> Any:
    """Makes a value of the annotated type; a mapping changes `current` where there is one."""
    origin, options = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        if value is None or (isinstance(value, str) and value.lower() == "none"):
            return None
        (kind,) = (option for option in options if option is not types.NoneType)
        return _convert(value, kind, key, current)
    if dataclasses.is_dataclass(kind):
        return _convert_group(value, kind, key, current)
    if origin is tuple and isinstance(value, str | list | tuple):
        items = [item for item in value.split(",") if item] if isinstance(value, str) else value
        return tuple(_convert(item, options[0], key, None) for item in items)
    try:
        if origin is typing.Literal:
            return {str(option): option for option in options}[str(value)]
        return _READERS[kind](value)
    except (KeyError, TypeError, ValueError):
        expected = f"one of {', '.join(map(str, options))}" if origin is typing.Literal else kind
        expected = getattr(expected, "__name__", expected)
        raise ValueError(f"expected {expected} for {key}, got {value!r}") from None


def _convert_group(value: Any, kind: Any, key: str, current: Any) -> Any:
    fields = _field_types(kind)
    known = ", ".join(fields)
    if not isinstance(value, Mapping):
        raise ValueError(f"expected {key} to be set by its keys {known}, got {value!r}")
    for name in value:
        if name not in fields:
            raise ValueError(f"unknown key {key}.{name}; the known keys are {known}")
    values = {
        name: _convert(item, fields[name], f"{key}.{name}", getattr(current, name, None))
        for name, item in value.items()
    }
    if current is not None:
        return dataclasses.replace(current, **values)
    required = [
        field.name
        for field in dataclasses.fields(kind)
        if field.default is field.default_factory is dataclasses.MISSING
    ]
    missing = [name for name in required if name not in values]
    if missing:
        raise ValueError(f"expected the keys {', '.join(missing)} in {key}, which lacks them")
    return kind(**values)


@functools.cache
def _field_types(kind: Any) -> dict[str, Any]:
    types_of = typing.get_type_hints(kind)
    return {field.name: types_of[field.name] for field in dataclasses.fields(kind) if field.init}
