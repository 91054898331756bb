"""Overrides of frozen configs."""

import dataclasses

import pytest

from mate_tf.dataclass_json import apply_overrides, split_arguments
from tests.example_configs import Attention, Config, Encoder

BASE = Config(name="base")


@dataclasses.dataclass(frozen=True)
class Range:
    low: int = 0
    high: int = 10

    def __post_init__(self):
        if self.low >= self.high:
            raise ValueError("expected low below high")


def test_changes_come_first_and_are_checked_with_the_overrides():
    base = Range()
    assert apply_overrides(base, ["--config.high=30"], low=20) == Range(20, 30)
    assert apply_overrides(base, ["--config.low=3"], low=20) == Range(3, 10)
    with pytest.raises(ValueError, match="low below high"):
        apply_overrides(base, [], low=20)
    assert base == Range()


@pytest.mark.parametrize(
    ("override", "expected"),
    [
        ("learning_rate=1e-4", {"learning_rate": 1e-4}),
        ("learning_rate=1", {"learning_rate": 1.0}),
        ("name=a=b", {"name": "a=b"}),
        ("name=7", {"name": "7"}),
        ("shuffle=False", {"shuffle": False}),
        ("limit=12", {"limit": 12}),
        ("limit=none", {"limit": None}),
        ("lengths=64,256", {"lengths": (64, 256)}),
        ("lengths=", {"lengths": ()}),
        ("encoder.hidden_size=32", {"encoder": Encoder(hidden_size=32)}),
        (
            "encoder.attention.bucket_size=64",
            {"encoder": Encoder(attention=Attention(bucket_size=64))},
        ),
        (
            "encoder.attention.kind=multi_view",
            {"encoder": Encoder(attention=Attention(kind="multi_view"))},
        ),
    ],
)
def test_values_are_read_by_the_type_of_the_field(override, expected):
    changed = apply_overrides(BASE, ["--config." + override])
    assert changed == dataclasses.replace(BASE, **expected)


def test_an_argument_that_is_no_override_is_refused():
    with pytest.raises(ValueError, match=r"expected --config.key=value, got learning_rate=1"):
        apply_overrides(BASE, ["learning_rate=1"])


def test_overrides_are_checked_together_and_the_last_one_wins():
    overrides = ["encoder.num_heads=3", "encoder.hidden_size=9", "limit=1", "limit=2"]
    changed = apply_overrides(BASE, ["--config." + override for override in overrides])
    assert (changed.encoder.num_heads, changed.encoder.hidden_size, changed.limit) == (3, 9, 2)


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("speed=1", "unknown key config.speed; the known keys are name, learning_rate, shuffle"),
        ("encoder.attention.size=1", "config.encoder.attention.size; .* bucket_size, kind"),
        ("limit=many", "expected int for config.limit, got 'many'"),
        ("limit=1.5", "expected int for config.limit, got '1.5'"),
        ("shuffle=perhaps", "expected bool for config.shuffle"),
        ("learning_rate=", "expected float for config.learning_rate, got ''"),
        ("lengths=1,x", "expected int for config.lengths, got 'x'"),
        ("encoder.attention.kind=fast", "expected one of dense, multi_view"),
        ("encoder=small", "set by its keys hidden_size, num_heads, attention"),
        ("limit.x=1", "config.limit"),
        ("limit", "expected --config.key=value, got --config.limit"),
        ("encoder.num_heads=3", "multiple of num_heads"),
    ],
)
def test_a_wrong_override_is_named(override, message):
    with pytest.raises(ValueError, match=message):
        apply_overrides(BASE, ["--config." + override])


def test_arguments_are_split():
    others, overrides = split_arguments(["x", "--config=demo", "--config.limit=1", "--data_dir=d"])
    assert others == ["x", "--config=demo", "--data_dir=d"]
    assert overrides == ["--config.limit=1"]
