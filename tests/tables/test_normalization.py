import gzip
import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mate_tf.tables.normalization import normalize_denotation, normalize_for_match

GOLDEN = Path(os.environ.get("MATE_TF_GOLDEN_DIR", "../shared/golden"))


@pytest.mark.parametrize(
    ("text", "normalized"),
    [
        ("  Málaga\n CF ", "malaga cf"),
        ("2–5", "2-5"),
        ("“Aïda”", "aida"),
        ('"Quoted" twice"', '"quoted" twice"'),
        ("Italy (note) (see below)", "italy"),
        ("(all of it)", "(all of it)"),
        ("504,000[1]*", "504,000"),
        ("[12]", ""),
        ("[note]", "[note]"),
        ("Jr..", "jr."),
        ("½", "1⁄2"),
    ],
)
def test_details_that_do_not_count_are_removed(text, normalized):
    assert normalize_denotation(text) == normalized


@pytest.mark.parametrize(
    ("family", "function"),
    [("normalize_for_match", normalize_for_match), ("wtq_normalize", normalize_denotation)],
)
def test_texts_are_normalised_as_the_original_does(family, function):
    path = GOLDEN / "data" / "text_goldens.json.gz"
    if not path.exists():
        pytest.skip(f"no golden texts at {path}")
    cases = json.loads(gzip.decompress(path.read_bytes()))[family]
    assert cases
    assert {text: function(text) for text, _ in cases} == dict(cases)


@given(st.text())
def test_case_and_outer_white_space_do_not_count(text):
    assert normalize_for_match(f" {text}\n") == normalize_for_match(text)
    assert normalize_denotation(f" {text}\n") == normalize_denotation(text)


def test_many_references_take_no_exponential_time():
    assert normalize_denotation("[1]" * 50 + "x") == "[1]" * 50 + "x"
