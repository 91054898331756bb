import numpy as np
import pytest
import tensorflow as tf

from mate_tf.models.classification import SequenceClassification
from mate_tf.task_configs import ClassificationConfig
from tests.small import ENCODER, cases


def losses(labels, logits, **options) -> dict[str, np.ndarray]:
    model = SequenceClassification(ENCODER, ClassificationConfig(len(logits[0]), **options))
    batch = {"classification_class_index": tf.constant(labels, tf.int32)[:, tf.newaxis]}
    outputs = {"class_logits": tf.constant(logits, tf.float32)}
    return {k: v.numpy() for k, v in model.compute_task_loss(batch, outputs).items()}


def test_the_loss_is_the_mean_cross_entropy():
    rng = np.random.default_rng(0)
    labels, logits = [2, 0, 1, 2], rng.normal(size=(4, 3))
    plain = losses(labels, logits)
    expected = np.log(np.exp(logits).sum(axis=1)) - logits[np.arange(4), labels]
    np.testing.assert_allclose(plain["example_loss"], expected, rtol=1e-6)
    np.testing.assert_allclose(plain["loss"], expected.mean(), rtol=1e-6)


@cases(
    "options, message",
    ({"num_classes": 1}, "num_classes of at least 2, got 1"),
    ({"output_dropout": 1.0}, "output_dropout from 0 to below 1, got 1.0"),
    ({"class_names": ("a",)}, r"expected 2 class_names \(num_classes\) or none, got \('a',\)"),
    ({"class_names": ("a", "a")}, r"class_names that tell classes apart, got \('a', 'a'\)"),
    ({"class_names": ("a", "")}, "class_names that tell classes apart"),
)
def test_what_cannot_be_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        ClassificationConfig(**options)
