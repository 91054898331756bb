"""Numbers of cells, and what is computed from them."""

import pytest

from mate_tf.answers.answer import compute, format_number, unit_free_number


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("3.5 km", 3.5),
        ("$1,200,000", 1_200_000.0),
        ("-12 °C", -12.0),
        ("−0.1", -0.1),
        ("−16,777,217 m", -16_777_217.0),
        ("123,456,789.25 m", 123_456_789.25),
        ("2nd", 2.0),
        ("\u20135", -5.0),
        ("-$5", -5.0),
        ("\u2212US$1,200.50", -1_200.5),
        ("$-5", -5.0),
        ("-€.5m", -0.5),
        ("($1,200)", -1_200.0),
        ("($5%)", -5.0),
        ("$(1,200)", -1_200.0),
        ("$ (5.00)", -5.0),
        ("( $1,200 )", -1_200.0),
        ("US$ -5", -5.0),
        ("-$ .5", -0.5),
        ("($1.2m)", -1.2),
        ("($1.2 million)", -1.2),
        ("1e-05", 1e-05),
        ("-2.5E16", -2.5e16),
        ("\u22121.5e+3", -1_500.0),
        ("2.5e45", 2.5),  # beyond single precision, in which models are trained
        ("1.5e-3 m", 1.5),
        # Not signs: a number of a remark, a range, an amount in a remark, between words.
        ("(1200)", 1_200.0),
        ("1990\u20131995", 1_990.0),
        ("($5 each)", 5.0),
        ("paid ($5)", 5.0),
        ("a -$5", 5.0),
        ("\u2013 5", 5.0),
        ("\u20134 may 1999, 7", 7.0),
        ("twelve", 12.0),
        ("1984", 1984.0),
        ("4 may 1999", None),
        ("km", None),
        ("", None),
    ],
)
def test_a_number_is_read_without_its_unit(text, number):
    assert unit_free_number(text) == number


@pytest.mark.parametrize(
    ("aggregation", "texts", "value"),
    [
        ("SUM", ["1.5 m", "none", "2 m"], 3.5),
        ("AVERAGE", ["1.5 m", "none", "2 m"], 1.75),
        ("COUNT", ["1.5 m", "none", "2 m"], 3.0),
        ("SUM", ["−0.1", "0.3"], 0.3 - 0.1),
        ("SUM", ["$7", "-$5", "($1)", "\u20134"], -3.0),
        ("SUM", ["1e-05", "2e-05"], 1e-05 + 2e-05),
        ("SUM", ["none"], None),
        ("AVERAGE", [], None),
        ("COUNT", [], 0.0),
    ],
)
def test_cells_without_a_number_count_but_are_not_added(aggregation, texts, value):
    assert compute(aggregation, texts) == value


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (3.0, "3"),
        (-0.0, "0"),
        (0.25, "0.25"),
        (0.1 + 0.2, "0.3"),
        (1234567890123.0, "1234567890123"),
        (1e21, "1000000000000000000000"),
        (1e-7, "0.0000001"),
        (-12.5, "-12.5"),
        (float("inf"), "inf"),
    ],
)
def test_numbers_are_written_plainly(value, text):
    assert format_number(value) == text
