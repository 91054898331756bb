"""A trained model's outputs, as fast as this machine computes them."""

from collections.abc import Callable
from typing import Any

import keras
import tensorflow as tf

from mate_tf.compilation import constant_kernels
from mate_tf.tables.token_features import TokenFeatures


def inference_function(model: keras.layers.Layer) -> Callable[[TokenFeatures], Any]:
    """A graph function of token features that computes what `model(features)` does.

    Of a model that computes in bfloat16 on a CPU it has the kernels as constants, as they are now,
    which oneDNN packs once and not in each call: the projections take two thirds of the time. In
    float32 constants are no faster, and weights that change later are seen.

    Args:
        model: built; a `TableEncoder` or a task's model.

    Returns:
        A function of `TokenFeatures`, int32 [B, S] each, that is traced anew for each new shape.

    Example:
        >>> from mate_tf.config import EncoderConfig
        >>> from mate_tf.encoder import TableEncoder
        >>> encoder = TableEncoder(EncoderConfig(
        ...     vocab_size=50, hidden_size=8, num_layers=1, num_heads=2, intermediate_size=16))
        >>> encoder.build()
        >>> run = inference_function(encoder)
        >>> run(TokenFeatures(*[tf.ones([1, 6], tf.int32)] * 9)).sequence_output.shape
        TensorShape([1, 6, 8])
    """

    @tf.function(autograph=False)
    def run(features: TokenFeatures) -> Any:
        if model.compute_dtype != "bfloat16" or tf.config.list_physical_devices("GPU"):
            return model(features, training=False)
        with constant_kernels():
            return model(features, training=False)

    return run
