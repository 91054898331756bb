"""Changes of frozen dataclass configs from the command line.

    --config.learning_rate=1e-4 --config.encoder.attention.bucket_size=64

Values are read by the type of the field. Tuples are written with commas, an absent value as
`none`. All overrides of a config are applied at once, so its own checks see the final values.
"""

import copy
import types
import typing
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from mate_tf.dataclass_json import convert

PREFIX = "--config."
Config = TypeVar("Config")
_READERS: dict[Any, Callable[[str], Any]] = {
    bool: lambda text: {"true": True, "false": False}[text.lower()],
    int: int,
    float: float,
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
    return convert(tree, type(config), "config", config, _read)


def _read(value: Any, kind: Any) -> Any:
    """What JSON would say for a text as the value of a type; the text where it is no such value."""
    if not isinstance(value, str):  # part of a tuple, already read
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
