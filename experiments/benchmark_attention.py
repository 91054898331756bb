"""Times the attention architectures side by side, on made-up tables.

    python -m experiments.benchmark_attention
    python -m experiments.benchmark_attention --training --lengths=2048 --num_layers=3 \\
        --architectures=mate,mate_tableformer

Measures an encoder of BERT base's width for each architecture, forwards or as a training step
(forwards, with dropout, and backwards). Each round times every architecture once, so that a
busy machine slows all of them alike. Prints a Markdown table of medians in milliseconds and, in
parentheses, their ratio to the architecture named first.

Masks and relations are computed once for all layers: a second run with another --num_layers tells
what a layer costs. Inference over all pairs of 8,192 tokens takes 4.5 GB (tapas) to 9.4 GB
(tableformer) with one layer, a training step more; where that is too much choose among mate,
mate_tableformer, mate_exact, linformer and table_etc.
"""

import dataclasses
import statistics
import time

from absl import flags, logging

from experiments import terminal
from experiments.benchmark_inputs import QUESTION_TOKENS, attentions, table_features
from mate_tf.config import ARCHITECTURES, EncoderConfig

_VARIANTS = ("mate_dense", "mate_exact")
_ARCHITECTURES = flags.DEFINE_list(
    "architectures",
    [*ARCHITECTURES, *_VARIANTS],
    "which to time: those of AttentionConfig, and MATE by all pairs (mate_dense) or tile by tile, "
    "without a window (mate_exact)",
)
_LENGTHS = flags.DEFINE_list("lengths", ["512", "2048", "8192"], "tokens in an example")
_ROUNDS = flags.DEFINE_integer("rounds", 5, "measurements of each", lower_bound=1)
_BATCH = flags.DEFINE_integer("batch_size", 1, "examples, all alike", lower_bound=1)
_LAYERS = flags.DEFINE_integer("num_layers", 1, "layers of the encoder", lower_bound=1)
_TRAINING = flags.DEFINE_bool("training", False, "time a training step, not inference")
_COLUMNS = flags.DEFINE_integer("columns", 8, "columns of the tables", lower_bound=1)


def timed_function(name: str, length: int):
    """A function that runs the encoder once, traced and warmed up."""
    import tensorflow as tf

    from mate_tf.encoder import TableEncoder

    config = dataclasses.replace(
        EncoderConfig(num_layers=_LAYERS.value), attention=attentions(length)[name]
    )
    encoder = TableEncoder(config)
    encoder.build()
    features = table_features(length, _COLUMNS.value, _BATCH.value)

    # An argument: of a constant, TensorFlow would compute the masks while it traces.
    @tf.function(autograph=False)
    def forward(features):
        return tf.reduce_sum(encoder(features).sequence_output)

    @tf.function(autograph=False)
    def step(features):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(encoder(features, training=True).sequence_output)
        weights = [weight.value for weight in encoder.trainable_weights]
        # Without the word embeddings, whose gradient costs every architecture the same.
        body = [weight for weight in weights if weight.shape[0] != config.vocab_size]
        gradients = tape.gradient(loss, body, unconnected_gradients="zero")
        return tf.add_n([tf.reduce_sum(gradient) for gradient in gradients])

    function = step if _TRAINING.value else forward

    def run() -> None:
        function(features).numpy()

    run()
    return run


def main(_) -> None:
    try:
        lengths = [int(length) for length in _LENGTHS.value]
    except ValueError:
        raise ValueError(f"expected whole numbers as --lengths, got {_LENGTHS.value}") from None
    if min(lengths) <= QUESTION_TOKENS:
        raise ValueError(f"expected --lengths above {QUESTION_TOKENS}, got {min(lengths)}")
    names = _ARCHITECTURES.value
    known = attentions(lengths[0])
    if unknown := sorted(set(names) - set(known)):
        raise ValueError(f"expected --architectures among {', '.join(known)}, got {unknown}")

    medians: dict[tuple[str, int], float] = {}
    for length in lengths:
        functions = {name: timed_function(name, length) for name in names}
        seconds: dict[str, list[float]] = {name: [] for name in names}
        for done in range(_ROUNDS.value):
            for name, run in functions.items():
                start = time.perf_counter()
                run()
                seconds[name].append(time.perf_counter() - start)
            logging.info("%d tokens: round %d of %d", length, done + 1, _ROUNDS.value)
        for name in names:
            medians[name, length] = statistics.median(seconds[name])

    print("| architecture |" + "".join(f" {length:,} tokens |" for length in lengths))
    print("|---|" + "---:|" * len(lengths))
    for name in names:
        cells = (
            f" {1000 * medians[name, length]:,.0f} ms "
            f"({medians[name, length] / medians[names[0], length]:.2f}) |"
            for length in lengths
        )
        print(f"| {name} |" + "".join(cells))


if __name__ == "__main__":
    terminal.run(main)
