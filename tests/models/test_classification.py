import numpy as np
import tensorflow as tf

from mate_tf.models.classification import SequenceClassification
from mate_tf.task_configs import ClassificationConfig
from tests.small import ENCODER


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
