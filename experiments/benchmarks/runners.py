"""What the benchmark runs: our encoders, their limit, and a peer.

Shapes: B batch, S sequence, D hidden, I intermediate.
"""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

from experiments.benchmarks.flops import matrix_flops
from experiments.benchmarks.inputs import attentions, table_features
from experiments.benchmarks.process import (
    give_back_freed,
    interleaved,
    reset_peak,
    resident_megabytes,
)
from mate_tf.config import TYPE_FEATURES, EncoderConfig

Runner = Callable[[], Any]

_SHORT = 64  # tokens


def measure_times(names: list[str], options: dict[str, Any], rounds: int) -> list[dict[str, Any]]:
    """Times each in turn; for a process of its own.

    Args:
        names: "limit", "hf_tapas" or an architecture of `attentions`.
        options: length, dtype, threads, mode, batch_size, num_layers and columns.
        rounds: measurements of each.

    Returns:
        The name, the seconds of each round and flops of each, None where they are not known, as of
        a training step.
    """
    set_up(options)
    runners, flops = {}, dict.fromkeys(names)
    for name in names:
        if name == "hf_tapas":
            runners[name] = _hugging_face(options)
        elif name == "limit":
            runners[name] = _limit(options)
        else:
            encoder = _built(name, options)
            run = encoder_function(encoder, options["mode"])
            runners[name] = functools.partial(run, made_up_features(options))
            if options["mode"] == "inference":
                flops[name] = _flops(encoder, options)
    seconds = interleaved(runners, rounds)
    return [{"name": name, "seconds": seconds[name], "flops": flops[name]} for name in names]


def measure_memory(name: str, options: dict[str, Any]) -> float:
    """The peak of the first pass of a length, in MB above the loaded model.

    A short pass comes before, so that the program's code and what it keeps of the weights count as
    loaded: TensorFlow's allocator keeps what a pass has used.
    """
    set_up(options)
    short = options | {"length": _SHORT}
    encoder = _built(name, options)
    takes_one_length = encoder.config.fixed_length is not None
    warmed = _built(name, short) if takes_one_length else encoder
    # Packed kernels would be counted for the encoder that takes no short pass alone.
    run = encoder_function(encoder, options["mode"], pack_kernels=False)
    warm = encoder_function(warmed, options["mode"], False) if takes_one_length else run
    warm(made_up_features(short))
    features = made_up_features(options)
    give_back_freed()
    loaded = resident_megabytes("VmRSS")
    reset_peak()
    run(features)
    return resident_megabytes("VmHWM") - loaded


def set_up(options: dict[str, Any]) -> None:
    """Sets the threads and the dtype; only before TensorFlow has done anything."""
    import keras
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(options["threads"])
    tf.config.threading.set_inter_op_parallelism_threads(options["threads"])
    keras.config.set_dtype_policy(options["dtype"])


def _built(name: str, options: dict[str, Any]):
    from mate_tf.layers.encoder import TableEncoder

    config = EncoderConfig(num_layers=options["num_layers"], position="per_cell")
    config = dataclasses.replace(config, attention=attentions(options["length"])[name])
    encoder = TableEncoder(config)
    encoder.build()
    return encoder


def made_up_features(options: dict[str, Any]):
    """The `TokenFeatures` of a length, of so many columns and examples."""
    return table_features(options["length"], options["columns"], options["batch_size"])


def encoder_function(encoder, mode: str, pack_kernels: bool | None = None) -> Callable[..., Any]:
    """A pass of a built `TableEncoder` over token features, "inference", or a "training" step."""
    import tensorflow as tf

    from mate_tf.answers.predictor import inference_function

    if mode == "inference":
        run = inference_function(encoder, pack_kernels)
        return lambda features: run(features).pooled_output.numpy()
    weights = [weight.value for weight in encoder.trainable_weights]
    # Without the word embeddings, whose gradient costs every architecture the same.
    weights = [weight for weight in weights if weight.shape[0] != encoder.config.vocab_size]

    @tf.function(autograph=False)
    def step(features):
        with tf.GradientTape() as tape:
            output = encoder(features, training=True).sequence_output
            loss = tf.reduce_sum(tf.cast(output, tf.float32))
        gradients = tape.gradient(loss, weights, unconnected_gradients="zero")
        return tf.add_n([tf.reduce_sum(gradient) for gradient in gradients])

    return lambda features: step(features).numpy()


def _flops(encoder, options: dict[str, Any]) -> int | None:
    import tensorflow as tf

    from mate_tf.layers.compilation import portable_graph

    function = tf.function(lambda features: encoder(features).sequence_output, autograph=False)
    with portable_graph():  # of plain operations
        return matrix_flops(function.get_concrete_function(made_up_features(options)).graph)


def _limit(options: dict[str, Any]) -> Runner:
    """The products of each layer's matrices, from one layer's to the next one's.

    That TensorFlow's plain product knows a matrix as a constant makes it no faster.
    """
    import tensorflow as tf

    config = EncoderConfig()
    size, inner = config.hidden_size, config.intermediate_size
    dtype = tf.bfloat16 if options["dtype"].endswith("bfloat16") else tf.float32

    def random(*shape: int) -> tf.Variable:
        return tf.Variable(tf.cast(tf.random.normal(shape, stddev=size**-0.5), dtype))

    layers = [
        [*(random(size, size) for _ in range(4)), random(size, inner), random(inner, size)]
        for _ in range(options["num_layers"])
    ]
    inputs = random(options["batch_size"] * options["length"], size)

    def products(rows: tf.Tensor) -> tf.Tensor:
        for *projections, intermediate, output in layers:
            projected = [tf.matmul(rows, kernel) for kernel in projections]
            rows = tf.matmul(tf.matmul(projected[0], intermediate), output)
            # A number of each, or they would not be computed.
            rows += tf.add_n([one[:1, :1] for one in projected[1:]])
        return tf.reduce_sum(tf.cast(rows, tf.float32))

    @tf.function(autograph=False)
    def forward(rows):
        return products(rows)

    @tf.function(autograph=False)
    def step(rows):
        kernels = [kernel for layer in layers for kernel in layer]
        with tf.GradientTape() as tape:
            loss = products(rows)
        return tf.add_n([tf.reduce_sum(g[:1]) for g in tape.gradient(loss, kernels)])

    run = forward if options["mode"] == "inference" else step
    return lambda: run(inputs.value()).numpy()


def _hugging_face(options: dict[str, Any]) -> Runner:
    try:
        import torch
        import transformers
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"--peers: {error}; pip install mate_tf[test-transformers]"
        ) from None
    if options["mode"] != "inference":
        raise ValueError("expected --mode=inference with --peers")
    torch.set_num_threads(options["threads"])
    config = transformers.TapasConfig(
        num_hidden_layers=options["num_layers"], reset_position_index_per_cell=True
    )
    dtype = torch.bfloat16 if options["dtype"].endswith("bfloat16") else torch.float32
    model = transformers.TapasModel(config).eval().to(dtype)
    features = made_up_features(options)
    types = [getattr(features, name).numpy() for name in TYPE_FEATURES]

    def tensor(array):
        return torch.from_numpy(array).long()

    inputs = {
        "input_ids": tensor(features.input_ids.numpy()),
        "attention_mask": tensor(features.input_mask.numpy()),
        "token_type_ids": torch.stack([tensor(one) for one in types], dim=-1).clamp(max=255),
    }

    def run():
        with torch.inference_mode():
            return model(**inputs).pooler_output

    return run
