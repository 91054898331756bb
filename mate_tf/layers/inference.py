"""A trained model's outputs, as fast as this machine computes them."""

import contextlib
import functools
from collections.abc import Callable
from typing import Any

import keras
import tensorflow as tf

from mate_tf.features.token_features import TokenFeatures
from mate_tf.layers.compilation import constant_kernels


def inference_function(
    model: keras.layers.Layer, pack_kernels: bool | None = None, calls_without_graph: int = 0
) -> Callable[[TokenFeatures], Any]:
    """A graph function of token features that computes what `model(features)` does.

    It is traced once, for all batch sizes and lengths; a new length takes half a second more the
    first time, in which XLA compiles small parts for it: pad to a few lengths.

    Args:
        model: built; a `TableEncoder` or a task's model.
        pack_kernels: makes the kernels, as they are now, constants of the graph, which oneDNN packs
            once and not in each call. In bfloat16 that is a fifth of the time, and takes ten times
            the memory of the kernels (BERT base: 2 GB); in float32 it is no faster. None: in
            bfloat16 on a CPU. Otherwise weights that change later are seen.
        calls_without_graph: so many calls of one example each run op by op before the graph is
            made, which takes as long as twenty or thirty of them: for whoever asks little. A batch
            of several makes it at once. Kernels that are packed belong to a graph from the start.

    Returns:
        A function of `TokenFeatures`, int32 [B, S] each.

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
    if pack_kernels is None:
        on_cpu = not tf.config.get_visible_devices("GPU")
        pack_kernels = model.compute_dtype == "bfloat16" and on_cpu
    kernels = constant_kernels if pack_kernels else contextlib.nullcontext

    @functools.cache
    def function_of(names: tuple[str, ...]) -> Callable[..., Any]:
        spec = tf.TensorSpec([None, None], tf.int32)

        @tf.function(input_signature=[spec] * len(names), autograph=False)
        def run(*given: tf.Tensor) -> Any:
            absent = dict.fromkeys(TokenFeatures._fields)
            features = TokenFeatures(**(absent | dict(zip(names, given, strict=True))))
            with kernels():
                return model(features, training=False)

        return run

    calls_left = 0 if pack_kernels else calls_without_graph

    def call(features: TokenFeatures) -> Any:
        nonlocal calls_left
        if calls_left and features.input_ids.shape[0] == 1:
            calls_left -= 1
            return model(features, training=False)
        calls_left = 0
        given = {name: one for name, one in features._asdict().items() if one is not None}
        return function_of(tuple(given))(*given.values())

    return call
