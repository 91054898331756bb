"""Units, epochs, versions and other numbers whose column's name or units say what they are."""

import pathlib

import pytest

from mate_tf.features.numeric import ranks, values_of_column
from mate_tf.tables.columns import read_column
from tests.small import cases


def unit_case(line):
    """A column, then its kind and unit, values, order of rows and sum; "any" is not compared."""
    column, *expected = line.split(" => ")
    name, _, texts = column.partition(": ")
    return pytest.param(name, texts.split(" | "), *expected, id=column)


LINES = pathlib.Path(__file__).with_name("units.txt").read_text(encoding="utf-8").splitlines()


@cases("name, texts, kind, values, order, total", *map(unit_case, LINES))
def test_a_column_is_read_in_one_unit(name, texts, kind, values, order, total):
    column = read_column(texts, name)
    by_row = values_of_column(column, texts)
    ranked = {row: rank for row, (rank, _) in ranks(by_row).items()}
    said = column.to_dict()
    shown = [f"{it:.12g}" if isinstance(it, float) else str(it) for it in said["values"]]
    found = (
        (kind, f"{said['kind']} {said['unit'] or '-'}"),
        (values, "-" if set(said["values"]) == {None} else " ".join(shown)),
        (order, " ".join(map(str, sorted(ranked, key=ranked.__getitem__))) or "none"),
    )
    assert all("any" in wanted or wanted == got for wanted, got in found), found
    if total != "any":
        expected = None if total == "none" else pytest.approx(float(total), rel=1e-9)
        assert said["sum"] == expected
