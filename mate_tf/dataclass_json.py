"""Frozen dataclasses out of JSON, the inverse of dataclasses.asdict and json.dumps.

Values have to be of the types that the fields are annotated with: bool, int, float, str, Literal,
tuple[X, ...], X | None and other dataclasses.

How a value that cannot work is refused.
"""

import dataclasses
import functools
import types
import typing
from collections.abc import Callable, Mapping
from typing import Any, TypeVar


def require(condition: bool, message: str) -> None:
    """ValueError with the message, "expected X, got Y", unless the condition holds."""
    if not condition:
        raise ValueError(message)


Dataclass = TypeVar("Dataclass")


def from_dict(cls: type[Dataclass], values: Any, name: str = "config") -> Dataclass:
    """A dataclass out of what `dataclasses.asdict` gave, possibly by way of JSON.

    Args:
        cls: the dataclass.
        values: a mapping; a field with a default may be missing. A key in the dataclass's
            FORMER_FIELDS, options of former versions, may have the value that it has there.
        name: what the dataclass is called in errors.

    Raises:
        ValueError: for an unknown or missing key, or a value that is not of the field's type.
    """
    return convert(values, cls, name)


def convert(
    value: Any,
    kind: Any,
    name: str,
    current: Any = None,
    read: Callable[[Any, Any], Any] = lambda value, kind: value,
) -> Any:
    """A value of an annotated type; a mapping changes `current` where there is one.

    Args:
        value: what JSON says.
        kind: the type.
        name: what the value is called in errors.
        current: the dataclass whose fields a mapping replaces; None for a new one.
        read: makes of a value that is written in another way, and its type, what JSON would say.

    Raises:
        ValueError: as `from_dict`.
    """
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
    former = getattr(kind, "FORMER_FIELDS", {})
    for key in value:
        if key in former and value[key] != former[key]:
            raise ValueError(
                f"expected {former[key]!r} for {name}.{key}, an option of former versions, got "
                f"{value[key]!r}"
            )
        if key not in (*fields, *former):
            raise ValueError(f"unknown key {name}.{key}; the known keys are {known}")
    values = {
        key: convert(item, fields[key], f"{name}.{key}", getattr(current, key, None), read)
        for key, item in value.items()
        if key in fields
    }
    if current is not None:
        return dataclasses.replace(current, **values)
    required = [
        field.name
        for field in dataclasses.fields(kind)
        if field.default is field.default_factory is dataclasses.MISSING
    ]
    missing = [key for key in required if key not in values]
    if missing:
        raise ValueError(f"expected the keys {', '.join(missing)} in {name}, which lacks them")
    return kind(**values)


@functools.cache
def _field_types(kind: Any) -> dict[str, Any]:
    types_of = typing.get_type_hints(kind)
    return {field.name: types_of[field.name] for field in dataclasses.fields(kind) if field.init}
