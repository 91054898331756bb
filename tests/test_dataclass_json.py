"""Dataclasses out of JSON and changed by overrides: their way there and back, what is refused."""

import dataclasses
import json
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mate_tf.dataclass_json import GONE, apply_overrides, from_dict, split_arguments
from tests.small import cases, stored_cases


@dataclasses.dataclass(frozen=True)
class Attention:
    bucket_size: int = 42
    kind: Literal["dense", "multi_view"] = "dense"


@dataclasses.dataclass(frozen=True)
class Encoder:
    hidden_size: int = 64
    num_heads: int = 4
    attention: Attention = Attention()

    def __post_init__(self):
        if self.hidden_size % self.num_heads:
            raise ValueError("expected hidden_size to be a multiple of num_heads")


@dataclasses.dataclass(frozen=True)
class Config:
    name: str
    learning_rate: float = 1e-3
    shuffle: bool = True
    limit: int | None = None
    lengths: tuple[int, ...] = (128, 512)
    encoder: Encoder = Encoder()

    def __post_init__(self):
        if self.limit is not None and self.limit > self.encoder.hidden_size:
            raise ValueError("expected a limit up to hidden_size")


BASE = Config(name="base")


def overridden(*overrides: str, **changes) -> Config:
    return apply_overrides(BASE, [f"--config.{override}" for override in overrides], **changes)


@given(
    st.builds(
        Config,
        name=st.text(),
        learning_rate=st.floats(allow_nan=False),
        shuffle=st.booleans(),
        limit=st.none() | st.integers(max_value=4),
        lengths=st.lists(st.integers()).map(tuple),
        encoder=st.builds(
            Encoder,
            hidden_size=st.integers(1, 9).map(lambda size: size * 4),
            num_heads=st.sampled_from([1, 2, 4]),
            attention=st.builds(Attention),
        ),
    )
)
def test_a_config_survives_json(config):
    assert from_dict(Config, json.loads(json.dumps(dataclasses.asdict(config)))) == config


def test_a_whole_number_may_stand_for_a_fraction_and_arguments_are_split():
    learning_rate = from_dict(Config, {"name": "x", "learning_rate": 1}).learning_rate
    assert (learning_rate, type(learning_rate)) == (1.0, float)
    others, overrides = split_arguments(["x", "--config=demo", "--config.limit=1", "--data_dir=d"])
    assert others == ["x", "--config=demo", "--data_dir=d"]
    assert overrides == ["--config.limit=1"]


@stored_cases("values, message")
def test_a_wrong_dictionary_is_named(values, message):
    with pytest.raises(ValueError, match=message):
        from_dict(Config, {"name": "x"} | values)
    with pytest.raises(ValueError, match="expected the keys name in config"):
        from_dict(Config, {})


def test_changes_come_first_and_are_checked_with_the_overrides():
    changed = overridden("encoder.num_heads=3", "encoder.hidden_size=9", "limit=1", "limit=2")
    assert (changed.encoder, changed.limit) == (Encoder(9, 3), 2)  # the last one wins
    assert overridden("limit=100", encoder=Encoder(128)).limit == 100
    assert overridden("encoder.hidden_size=128", "limit=90", limit=100).limit == 90
    assert overridden("encoder.hidden_size=128", limit=100).limit == 100
    with pytest.raises(ValueError, match="up to hidden_size"):
        overridden(limit=100)
    assert Config(name="base") == BASE


@cases(
    "override, expected",
    *(("learning_rate=1e-4", {"learning_rate": 1e-4}), ("learning_rate=1", {"learning_rate": 1.0})),
    *(("name=a=b", {"name": "a=b"}), ("name=7", {"name": "7"})),
    *(("shuffle=False", {"shuffle": False}), ("limit=12", {"limit": 12})),
    *(("limit=none", {"limit": None}), ("lengths=64,256", {"lengths": (64, 256)})),
    ("lengths=", {"lengths": ()}),
    ("encoder.hidden_size=32", {"encoder": Encoder(hidden_size=32)}),
    ("encoder.attention.bucket_size=64", {"encoder": Encoder(attention=Attention(64))}),
    ("encoder.attention.kind=multi_view", {"encoder": Encoder(64, 4, Attention(42, "multi_view"))}),
)
def test_values_are_read_by_the_type_of_the_field(override, expected):
    assert overridden(override) == dataclasses.replace(BASE, **expected)


@pytest.mark.parametrize("name", GONE)
def test_what_is_gone_is_read_with_its_default_alone_and_is_nothing_to_set(name):
    stored = json.loads(json.dumps({**dataclasses.asdict(BASE), name: GONE[name]}))
    assert from_dict(Config, stored) == BASE
    message = f"for config.{name}, an option of former versions, got 'other'"
    with pytest.raises(ValueError, match=message):
        from_dict(Config, stored | {name: "other"})
    with pytest.raises(ValueError, match=f"unknown key config.{name}"):
        overridden(f"{name}={GONE[name]}")
