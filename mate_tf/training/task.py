"""What the loop trains."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import keras
import tensorflow as tf

from mate_tf.features.token_features import TokenFeatures
from mate_tf.training.distribution import Batch


@dataclasses.dataclass(frozen=True)
class Task:
    """A model, what it learns from, and how it is measured.

    Attributes:
        model: with its weights created.
        train_dataset: from the number of steps already made to the batches that follow, without
            end; their order must be a function of the seed alone.
        compute_loss: from a batch and the model's outputs to metrics, among them "loss", the mean
            over the batch's examples, or a sum over "mean_NAME" (see `normalized_by`); of other
            tensors the mean is logged.
        evaluate: metrics on held-out data; and texts in Markdown that show more, by name.
        best_by: the metric of `evaluate` that a higher value is better of.
        model_inputs: the model's positional arguments, from a batch.
        normalized_by: names of features, floats [B, ...], whose sum over the global batch the loss
            is to be divided by, such as weights of which each example has others. For each the
            batch of `compute_loss` has the scalar "mean_NAME", the feature's sum over the global
            batch by the number of parts that the batch is computed in, so that the loss does not
            depend on how many there are.
    """

    model: keras.Model
    train_dataset: Callable[[int], tf.data.Dataset]
    compute_loss: Callable[[Batch, Any], Mapping[str, tf.Tensor]]
    evaluate: Callable[[], Mapping[str, float | str]]
    best_by: str
    model_inputs: Callable[[Batch], tuple[Any, ...]] = lambda batch: (
        TokenFeatures.from_dict(batch),
    )
    normalized_by: tuple[str, ...] = ()
