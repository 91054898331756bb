import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mate_tf.features.normalization import normalize_denotation, normalize_for_match
from tests.small import cases


@cases(
    "text, normalized",
    *(("  Málaga\n CF ", "malaga cf"), ("2–5", "2-5"), ("“Aïda”", "aida")),
    *(('"Quoted" twice"', '"quoted" twice"'), ("Italy (note) (see below)", "italy")),
    *(("Italy (north) and (south)", "italy (north) and"), ("(all of it)", "(all of it)")),
    *(("504,000[1]*", "504,000"), ("[12]", ""), ("[note]", "[note]"), ("Jr..", "jr.")),
    ("½", "1⁄2"),
)
def test_details_that_do_not_count_are_removed(text, normalized):
    assert normalize_denotation(text) == normalized


def test_what_looks_like_a_tag_is_removed_only_as_the_original_does():
    assert normalize_denotation("a<br>b <2") == "a<br>b <2"
    assert normalize_denotation("a<br>b <2", original=True) == "ab <2"


@given(st.text())
def test_case_and_outer_white_space_do_not_count(text):
    assert normalize_for_match(f" {text}\n") == normalize_for_match(text)
    assert normalize_denotation(f" {text}\n") == normalize_denotation(text)


_TRAILING_REFERENCES = re.compile(
    r"(?: (?<!^) \[ [^\]]* \] | ^ \[ \d+ \] | [\u2022\u2666\u2020\u2021*\#+] )+ $", re.VERBOSE
)
_TRAILING_PARENTHESES = re.compile(r"(?<!^)(?: \([^)]*\))+$")
_QUOTED_WHOLE = re.compile(r'^"([^"]*)"$')


def denotation_by_patterns(text):
    """What takes quadratic time: the details as three patterns, until none is left."""
    before = None
    while text != before:
        before = text
        text = _TRAILING_REFERENCES.sub("", text.strip())
        text = _TRAILING_PARENTHESES.sub("", text.strip())
        text = _QUOTED_WHOLE.sub(r"\1", text.strip())
    return normalize_for_match(text.removesuffix("."))


@given(st.text('[]()"*1a .\t', max_size=20))
def test_details_are_those_of_the_patterns(text):
    assert normalize_denotation(text) == denotation_by_patterns(text)


MANY = 100_000  # in quadratic time each text would take minutes


@pytest.mark.parametrize("original", [False, True])
@cases(
    "text",
    "[1]" * 50 + "x",
    "[" * MANY,
    "]" * MANY,
    "(" * MANY,
    " (" * MANY,
    "x" + " )" * MANY,
    "x" + " (a) [1]" * MANY,
    "[a" * MANY + "]" * MANY,
    '"' * MANY,
    "<" * MANY,
    "<a" * MANY,
    "a" + "\u0301" * MANY + "\u0327" * MANY,
    "\U0001d16d" * MANY + "\U0001d165" * MANY,
    "\ud800\x00" * MANY,
    ids=lambda text: repr(text[:10]) if isinstance(text, str) else None,
)
def test_no_text_takes_more_than_linear_time(text, original):
    assert len(normalize_denotation(text, original)) <= len(text)
