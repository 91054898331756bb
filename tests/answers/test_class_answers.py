"""Classes as answers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from mate_tf.answers.decoding import decode_classes
from mate_tf.models.classification import ClassificationConfig

LOGITS = np.log([[0.2, 0.5, 0.3], [0.9, 0.04, 0.06]])


def test_the_likeliest_class_is_the_answer_and_the_others_are_alternatives():
    config = ClassificationConfig(3, class_names=("refuted", "entailed", "unknown"))
    first, second = decode_classes(config, {"class_logits": LOGITS}, num_alternatives=5)
    assert (first.items, first.text, first.class_index) == (("entailed",), "entailed", 1)
    assert first.score == pytest.approx(0.5)
    assert [other.text for other in first.alternatives] == ["unknown", "refuted"]
    assert [other.class_index for other in second.alternatives] == [2, 1]
    assert (first.cells, first.aggregation, first.value, first.number) == ((), "NONE", None, None)


def test_classes_without_names_are_called_by_their_numbers():
    first, second = decode_classes(
        ClassificationConfig(3), {"class_logits": LOGITS}, num_alternatives=1
    )
    assert (first.text, second.text) == ("1", "0")
    assert [other.text for other in first.alternatives] == ["2"]


@given(arrays.arrays(np.float32, (2, 4), elements=st.floats(-50, 50, width=32)))
def test_every_class_is_said_once_by_falling_probability(logits):
    for answer in decode_classes(
        ClassificationConfig(4), {"class_logits": logits}, num_alternatives=3
    ):
        said = [answer, *answer.alternatives]
        assert sorted(other.class_index for other in said) == [0, 1, 2, 3]
        scores = [other.score for other in said]
        assert scores == sorted(scores, reverse=True)
        assert sum(scores) == pytest.approx(1.0)
