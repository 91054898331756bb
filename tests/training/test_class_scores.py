import pytest

from mate_tf.training.classification import classification_metrics


def test_scores_are_averaged_by_the_classes_sizes():
    # Class 0: 1 of 1 found, 1 of 2 predictions right. Class 1: 2 of 3 found, 2 of 2 right.
    scores = classification_metrics([0, 0, 1, 1], [0, 1, 1, 1])
    assert scores["accuracy"] == 3 / 4
    assert scores["precision"] == pytest.approx((1 * 1 / 2 + 3 * 1) / 4)
    f1_of_0, f1_of_1 = 2 * 0.5 * 1 / 1.5, 2 * 1 * (2 / 3) / (5 / 3)
    assert scores["f1"] == pytest.approx((1 * f1_of_0 + 3 * f1_of_1) / 4)


def test_a_class_that_is_never_predicted_counts_as_zero():
    assert classification_metrics([0, 0], [0, 1])["precision"] == pytest.approx(1 / 4)


def test_no_label_is_an_error():
    with pytest.raises(ValueError, match="expected at least 1 label"):
        classification_metrics([], [])
