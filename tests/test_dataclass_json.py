"""Dataclasses out of JSON: their way there and back, and what is refused."""

import dataclasses
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mate_tf.dataclass_json import from_dict
from tests.example_configs import Attention, Config, Encoder


@given(
    st.builds(
        Config,
        name=st.text(),
        learning_rate=st.floats(allow_nan=False),
        shuffle=st.booleans(),
        limit=st.none() | st.integers(),
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


def test_a_whole_number_may_stand_for_a_fraction():
    learning_rate = from_dict(Config, {"name": "x", "learning_rate": 1}).learning_rate
    assert (learning_rate, type(learning_rate)) == (1.0, float)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({}, "expected the keys name in config"),
        ({"name": "x", "colour": 1}, "unknown key config.colour"),
        ({"name": 3}, "expected str for config.name, got 3"),
        ({"name": "x", "lengths": 3}, "config.lengths"),
        (
            {"name": "x", "lengths": "3,4"},
            r"expected tuple\[int, ...\] for config.lengths, got '3,4'",
        ),
        ({"name": "x", "limit": "3"}, "expected int for config.limit, got '3'"),
        ({"name": "x", "limit": True}, "expected int for config.limit, got True"),
        ({"name": "x", "limit": "none"}, "expected int for config.limit, got 'none'"),
        ({"name": "x", "shuffle": "true"}, "expected bool for config.shuffle, got 'true'"),
        ({"name": "x", "shuffle": 1}, "expected bool for config.shuffle, got 1"),
        (
            {"name": "x", "encoder": {"attention": {"kind": "fast"}}},
            "expected one of dense, multi_view for config.encoder.attention.kind, got 'fast'",
        ),
        ({"name": "x", "encoder": {"hidden_size": 1.5}}, "expected int for config.encoder.hidden"),
    ],
)
def test_a_wrong_dictionary_is_named(values, message):
    with pytest.raises(ValueError, match=message):
        from_dict(Config, values)
