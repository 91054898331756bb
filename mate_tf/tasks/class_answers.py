"""Answers of classification: a class, and the other classes as alternatives.

Shapes: B batch, C classes.
"""

import dataclasses
from collections.abc import Mapping

import numpy as np
import tensorflow as tf
from scipy import special

from mate_tf.tasks.answers import Answer
from mate_tf.tasks.classification import ClassificationConfig


def decode_classes(
    config: ClassificationConfig, outputs: Mapping[str, tf.Tensor], num_alternatives: int = 0
) -> list[Answer]:
    """Reads the likeliest class of each example, the first of equally likely ones.

    Args:
        config: the model's.
        outputs: class_logits [B, C].
        num_alternatives: how many of the other classes are alternatives.
    """
    logits = np.asarray(outputs["class_logits"], np.float64)  # [B, C]
    probabilities = special.softmax(logits, axis=1)
    order = np.argsort(-logits, axis=1, kind="stable")[:, : num_alternatives + 1]
    scores = np.take_along_axis(probabilities, order, axis=1)
    names = config.class_names or tuple(map(str, range(config.num_classes)))
    answers = []
    for classes, of_classes in zip(order.tolist(), scores.tolist(), strict=True):
        pairs = zip(classes, of_classes, strict=True)
        best, *others = [_class_answer(names[index], index, score) for index, score in pairs]
        answers.append(dataclasses.replace(best, alternatives=tuple(others)))
    return answers


def _class_answer(name: str, index: int, score: float) -> Answer:
    return Answer((name,), name, (), "NONE", None, score, class_index=index)
