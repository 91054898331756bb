"""What the original makes of single texts: numbers, dates, and texts that count as equal."""

import pytest

from mate_tf.features.normalization import normalize_denotation, normalize_for_match
from mate_tf.features.numeric import NumericSpan, parse_text
from tests.golden.interactions import load, value

FAMILY = "texts"


def load_cases(golden, family: str):
    (file,) = golden.require("data/text_goldens.json.gz")
    return load(file)[family]


def test_numbers_and_dates_in_texts_equal_the_originals(golden):
    cases = load_cases(golden, "parse_text")
    different = []
    for case in cases:
        expected = [
            NumericSpan(
                span.get("begin_index", 0), span["end_index"], tuple(map(value, span["values"]))
            )
            for span in case["spans"]
        ]
        if parse_text(case["text"], original=True) != expected:
            different.append(case["text"])
    assert not different
    golden.compare(FAMILY, "parse_text", len(cases) - len(different), len(cases), 0.0)


@pytest.mark.parametrize(
    ("family", "function"),
    [
        ("normalize_for_match", normalize_for_match),
        ("wtq_normalize", lambda text: normalize_denotation(text, original=True)),
    ],
)
def test_texts_are_normalised_as_the_original_does(golden, family, function):
    cases = load_cases(golden, family)
    different = [(text, expected) for text, expected in cases if function(text) != expected]
    assert not different
    golden.compare(FAMILY, family, len(cases) - len(different), len(cases), 0.0)
