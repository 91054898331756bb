import pytest
from hypothesis import given
from hypothesis import strategies as st

from mate_tf.evaluation.official import Denotation, denotation_correct, read_golds
from tests.small import cases


@cases(
    "predicted, gold, correct",
    *((["Italy (note)"], ["italy"], True), (["2000.0"], ["2000"], True)),
    *((["5.000000e+00"], ["5"], True), (["3.0000001"], ["3"], True), (["3.001"], ["3"], False)),
    # A number just below a whole one is cut, not rounded.
    *((["2.9999999"], ["2"], True), (["2.9999999"], ["3"], False)),
    *((["-2.9999999"], ["-2"], True), (["2.99999"], ["2"], False)),
    *((["12467"], ["12,467"], False), (["b", "a", "a"], ["a", "b"], True)),
    *((["a"], ["a", "b"], False), (["a", "b"], ["a"], False), (["0", "0.0"], ["0"], True)),
    *(([], ["a"], False), ([], [], True), (["1995-01-26"], ["1995-1-26"], True)),
    *((["1995-01-31"], ["1995-1-31"], True), (["1995-01-32"], ["1995-1-32"], False)),
    *((["1995-01-00"], ["1995-1-0"], False), (["1995-00-01"], ["1995-0-1"], False)),
    *((["1995-12-01"], ["1995-12-1"], True), (["1995-xx-xx"], ["1995"], True)),
    *((["1995-05-xx"], ["1995"], False), (["1995-xx-05"], ["1995"], False)),
    *((["xx-5-xx"], ["xxxx-05-xx"], True), (["xx-xx-xx"], ["xx-XX-xx"], True)),
    *((["xx-13-01"], ["xxxx-13-01"], False), (["xx-12-01"], ["XXXX-12-01"], True)),
    *((["1_000"], ["1000"], False), (["nan"], ["NaN"], True)),
)
def test_items_are_compared_as_sets_of_texts_numbers_and_dates(predicted, gold, correct):
    assert denotation_correct(predicted, gold) is correct


@pytest.mark.parametrize("predicted", ["12467", "12,467"])
def test_the_official_annotation_gives_a_gold_item_its_number(predicted):
    assert denotation_correct([predicted], [Denotation.from_text("12,467", canonical="12467.0")])


@given(st.lists(st.text(), min_size=1))
def test_an_answer_equals_itself_in_any_order(items):
    assert denotation_correct(items[::-1], items)


def test_golds_are_read_with_and_without_annotation(tmp_path):
    plain, tagged = tmp_path / "a.tsv", tmp_path / "a.tagged"
    plain.write_text("id\ttargetValue\nnt-0\t1,000|a\\pb\n")
    tagged.write_text("id\ttargetValue\ttargetCanon\nnt-0\t1,000|a\\pb\t1000.0|a\\pb\n")
    assert [item.value for item in read_golds(plain)["nt-0"]] == ["1,000", "a|b"]
    assert [item.value for item in read_golds(tagged)["nt-0"]] == [1000.0, "a|b"]
    tagged.write_text("id\ttargetValue\ttargetCanon\nnt-0\ta|b\ta\n")
    with pytest.raises(ValueError, match="expected 2 canonical values, got 1"):
        read_golds(tagged)
