"""What is wrong with wrong answers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mate_tf.evaluation.hybridqa import Judged, error_report, exact_match, kind_of_error

WORDS = st.lists(
    st.sampled_from("a the second round 2 two rome arctic climate".split()), max_size=5
)
TEXTS = st.text(max_size=20) | WORDS.map(" ".join)


@pytest.mark.parametrize(
    ("prediction", "gold", "kind"),
    [
        ("The Arctic !", "arctic", "right"),
        ("1", "one", "same number"),
        ("2", "second", "same number"),
        ("2nd round", "second round", "same number"),
        ("second round", "second", "words too many"),
        ("two", "two thousand", "words missing"),
        ("5 km", "5 miles", "some words alike"),
        ("Arctic climate", "Arctic", "words too many"),
        ("Tommy", "Tommy Douglas", "words missing"),
        ("Tommy Lee", "Tommy Douglas", "some words alike"),
        ("Thomas Cup", "Badminton", "other words"),
        ("7", "8", "other words"),
        ("", "Badminton", "no answer"),
        ("the", "Badminton", "no answer"),  # nothing of it counts
        ("Badminton", "the", "other words"),
    ],
)
def test_kinds_of_errors(prediction, gold, kind):
    assert kind_of_error(prediction, gold) == kind


@given(TEXTS, TEXTS)
def test_only_exact_matches_are_right(prediction, gold):
    kind = kind_of_error(prediction, gold)
    assert (kind == "right") == bool(exact_match(prediction, gold))
    mirrored = {"words too many": "words missing", "words missing": "words too many"}
    other = kind_of_error(gold, prediction)
    if "no answer" not in (kind, other):
        assert other == mirrored.get(kind, kind)


def test_the_report_counts_and_shows():
    answers = [
        Judged("where ?", "Rome", "rome", True),
        Judged("what climate ?", "Arctic", "Arctic climate", True),
        Judged("what | kind ?", "Arctic", "very Arctic", False),
        Judged("who ?", "Ann", "", False),
    ]
    report = error_report(answers, num_shown=1)
    assert "3 of 4 answers are wrong, 2 of them near misses." in report
    assert "| words too many | 2 | 1 |" in report
    assert "| no answer | 1 | 0 |" in report
    assert "## words too many" in report
    assert "what climate ?" in report and "very Arctic" not in report
    assert "right |" not in report.split("##")[0]
    assert error_report([]).startswith("0 of 0 answers are wrong, 0 of them near misses.")
