"""Dividing a split by its tables."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mate_tf.datasets.tasks import Division

DIVISION = Division.from_text("dev:train=72,calibration=8,dev=20")


def test_a_division_is_read_from_its_text_and_written_as_it():
    assert DIVISION.split == "dev"
    assert DIVISION.names == ("train", "calibration", "dev")
    assert str(DIVISION) == "dev:train=72,calibration=8,dev=20"
    assert Division.from_text(str(DIVISION)) == DIVISION


@given(st.text())
def test_every_table_is_in_one_part_and_always_in_the_same(table_id):
    part = DIVISION.part_of(table_id)
    assert part in DIVISION.names
    assert Division.from_text(str(DIVISION)).part_of(table_id) == part


def test_parts_are_as_large_as_their_percentages():
    parts = [DIVISION.part_of(f"table_{i}.csv") for i in range(10_000)]
    for name, percentage in DIVISION.parts:
        # Three standard deviations of a binomial count.
        share = percentage / 100
        expected, deviation = 10_000 * share, (10_000 * share * (1 - share)) ** 0.5
        assert abs(parts.count(name) - expected) < 3 * deviation


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("train", "expected SPLIT:PART=PERCENT"),
        (":a=50,b=50", "expected SPLIT:PART=PERCENT"),
        ("train:a=50,b", "expected SPLIT:PART=PERCENT"),
        ("train:a=50.5,b=49.5", "expected SPLIT:PART=PERCENT"),
        ("train:../a=50,b=50", "expected SPLIT:PART=PERCENT"),
        ("train:a=50,b=40", r"add up to 100, got \[50, 40\]"),
        ("train:a=100,b=0", r"of at least 1 .* got \[100, 0\]"),
        ("train:a=50,a=50", "expected parts of different names"),
    ],
)
def test_what_is_no_division_is_refused(text, error):
    with pytest.raises(ValueError, match=error):
        Division.from_text(text)


def test_the_parts_take_the_place_of_their_split():
    division = Division.from_text("train:train=90,calibration=10")
    assert division.divided(["dev", "train", "test"]) == ["dev", "train", "calibration", "test"]


@pytest.mark.parametrize(
    ("splits", "error"),
    [
        (["train"], r"a division of one of the splits \['train'\], got 'dev'"),
        (["train", "dev"], r"expected parts beside the splits \['train'\], got \['train'\]"),
    ],
)
def test_a_division_of_what_is_not_there_or_into_what_is_is_refused(splits, error):
    with pytest.raises(ValueError, match=error):
        DIVISION.divided(splits)
