"""A Keras model as a function of token features, by graphs of TensorFlow."""

import functools
from collections.abc import Callable, Mapping
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from mate_tf.features.token_features import TokenFeatures
from mate_tf.layers.compilation import (
    constant_kernels,
    long_sequences,
    short_sequences,
    without_gradients,
)
from mate_tf.private_apis import cpu_has_bfloat16

Batch = Mapping[str, tf.Tensor]


def divided(function: Callable[[Batch], Any]) -> Callable[[Batch], Any]:
    """A function of a batch to tensors [B, ...], computed on all replicas of this worker alone.

    Each replica of the present strategy takes an equal share of the examples. It is traced for two
    shapes, and then for all others.
    """
    if not tf.distribute.has_strategy():
        return tf.function(function, autograph=False)
    strategy = tf.distribute.get_strategy()
    num_here = len(strategy.extended.worker_devices)
    traced = tf.function(
        lambda batch: strategy.run(function, args=(batch,)), autograph=False, reduce_retracing=True
    )

    def run(batch: Batch) -> Any:
        size = len(next(iter(batch.values())))
        # The last example fills up the last share.
        examples = np.minimum(np.arange(-(-size // num_here) * num_here), size - 1)
        shares = examples.reshape(num_here, -1)

        def share(context: tf.distribute.experimental.ValueContext) -> Batch:
            here = shares[context.replica_id_in_sync_group % num_here]
            return {name: tf.gather(values, here) for name, values in batch.items()}

        results = traced(strategy.experimental_distribute_values_from_function(share))
        return tf.nest.map_structure(
            lambda values: tf.concat(strategy.experimental_local_results(values), 0)[:size], results
        )

    return run


def fastest_dtype() -> str:
    """The dtype policy for answers: "mixed_bfloat16" on a CPU that computes in it, or "float32"."""
    on_cpu = not tf.config.get_visible_devices("GPU")
    return "mixed_bfloat16" if on_cpu and cpu_has_bfloat16() else "float32"


def inference_function(
    model: keras.layers.Layer,
    pack_kernels: bool | None = None,
) -> Callable[[TokenFeatures], Any]:
    """A graph function of token features, int32 [B, S] each, that computes `model(features)`.

    In the scope of a strategy, where the model was built, its replicas share each batch.
    It is traced at its first short sequence and at its first long one (`TableEncoder.is_short`),
    each for any length and number of examples. Blocks that differ in their weights' values alone
    are traced once together.

    Args:
        model: built; a `TableEncoder` or a task's model.
        pack_kernels: makes the kernels, as they are now, constants of the graph, which oneDNN packs
            once and not in each call. In bfloat16 that is a fifth of the time, and takes ten times
            the memory of the kernels (BERT base: 2 GB); in float32 it is no faster. None: in
            bfloat16 on a CPU; there is then one graph for all lengths, with one copy, and XLA
            compiles small parts of it for each. Otherwise weights that change later are seen.

    Example:
        >>> from mate_tf.config import EncoderConfig
        >>> from mate_tf.layers.encoder import TableEncoder
        >>> encoder = TableEncoder(EncoderConfig(
        ...     vocab_size=50, hidden_size=8, num_layers=1, num_heads=2, intermediate_size=16))
        >>> encoder.build()
        >>> run = inference_function(encoder)
        >>> run(TokenFeatures(*[tf.ones([1, 6], tf.int32)] * 9)).sequence_output.shape
        TensorShape([1, 6, 8])
    """
    if tf.distribute.has_strategy():
        on_replicas = divided(lambda given: model(TokenFeatures.from_dict(given), training=False))
        return lambda features: on_replicas(_given(features))
    if pack_kernels is None:
        on_cpu = not tf.config.get_visible_devices("GPU")
        pack_kernels = model.compute_dtype == "bfloat16" and on_cpu
    encoder = getattr(model, "encoder", model)

    @functools.cache
    def function_of(names: tuple[str, ...], is_short: bool) -> Callable[..., Any]:
        many_lengths = short_sequences if is_short else long_sequences
        graph_for = constant_kernels if pack_kernels else many_lengths
        spec = tf.TensorSpec([None, None], tf.int32)

        @tf.function(input_signature=[spec] * len(names), autograph=False)
        def run(*given: tf.Tensor) -> Any:
            absent = dict.fromkeys(TokenFeatures._fields)
            features = TokenFeatures(**(absent | dict(zip(names, given, strict=True))))
            with without_gradients(), graph_for():
                return model(features, training=False)

        return run

    def call(features: TokenFeatures) -> Any:
        given = _given(features)
        is_short = not pack_kernels and encoder.is_short(features.input_ids.shape[1])
        return function_of(tuple(given), is_short)(*given.values())

    return call


def _given(features: TokenFeatures) -> dict[str, tf.Tensor]:
    return {name: one for name, one in features._asdict().items() if one is not None}
