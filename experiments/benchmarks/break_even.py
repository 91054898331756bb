"""Measures up to which length all pairs are faster than the linear evaluator, on this machine.

    python -m experiments.benchmarks.break_even
    python -m experiments.benchmarks.break_even --config=tabfact_minilm --mode=training
    --batch_size=16

Encodes made-up tables with a preset's encoder, evaluator "dense" and evaluator "multi_view" in
turn, bisects for the length from which the second is the faster one, and prints the setting that
makes the encoder choose the faster of the two at every length:

    --config.encoder.attention.dense_up_to=...

The default is measured with BERT base on a CPU. On another device, or with another batch size,
another length is right.
"""

import bisect
import dataclasses
import functools
import statistics
from typing import Any

from absl import flags, logging

from experiments import program
from experiments.benchmarks.process import interleaved
from experiments.benchmarks.runners import encoder_function, made_up_features, set_up
from mate_tf.config import EncoderConfig

_CONFIG = flags.DEFINE_string(
    "config", "wtq_mate_base_2048", "a preset of experiments/configs, or a run's folder"
)
_MODE = flags.DEFINE_enum(
    "mode", "inference", ["inference", "training"], "a forward pass, or with its gradients"
)
_BATCH = flags.DEFINE_integer("batch_size", 1, "examples, all alike", lower_bound=1)
_THREADS = flags.DEFINE_integer(
    "threads", 0, "that TensorFlow computes with; 0 for all", lower_bound=0
)
_ROUNDS = flags.DEFINE_integer("rounds", 5, "measurements of each", lower_bound=1)
_COLUMNS = flags.DEFINE_integer("columns", 8, "columns of the tables", lower_bound=1)
_LONGEST = flags.DEFINE_integer("longest", 4096, "longest length that is tried", lower_bound=64)

_STEP = 64


def main(argv: list[str]) -> None:
    from mate_tf.training.starting_points import make_config

    config = make_config(_CONFIG.value, None, argv[1:])
    encoder = getattr(config, "encoder", None)
    if encoder is None or not encoder.attention.is_multi_view:
        raise ValueError(
            f"expected a config whose encoder has a linear evaluator, as mate, got {_CONFIG.value}"
        )
    options = {
        "dtype": config.dtype,
        "threads": _THREADS.value,
        "mode": _MODE.value,
        "batch_size": _BATCH.value,
        "columns": _COLUMNS.value,
    }
    longest = longest_dense(encoder, options, _ROUNDS.value, _LONGEST.value)
    print(f"--config.encoder.attention.dense_up_to={longest}")


def longest_dense(
    encoder: EncoderConfig, options: dict[str, Any], rounds: int, longest: int
) -> int:
    """The longest length, a multiple of 64, up to which evaluator "dense" is not the slower one.

    Args:
        encoder: the encoder; of two layers, which are as good as all to tell.
        options: as of `benchmark_runners.measure_times`, without a length.
        rounds: measurements of each at a length.
        longest: the longest to try.
    """
    set_up(options)
    functions = {
        evaluator: encoder_function(_built(encoder, evaluator, bucket_size), options["mode"])
        for evaluator, bucket_size in (
            # Without a window, where there is none.
            ("dense", 0 if encoder.attention.coverage else encoder.attention.bucket_size),
            ("multi_view", encoder.attention.bucket_size),
        )
    }

    def linear_is_faster(length: int) -> bool:
        features = made_up_features(options | {"length": length})
        runners = {name: functools.partial(one, features) for name, one in functions.items()}
        seconds = interleaved(runners, rounds)
        dense, linear = (1000 * statistics.median(seconds[name]) for name in seconds)
        logging.info("%d tokens: dense %.1f ms, linear %.1f ms", length, dense, linear)
        return linear < dense

    lengths = range(_STEP, longest + 1, _STEP)
    index = bisect.bisect_left(lengths, True, key=linear_is_faster)
    return lengths[index - 1] if index else 0


def _built(encoder: EncoderConfig, evaluator: str, bucket_size: int):
    from mate_tf.layers.encoder import TableEncoder

    coverage = encoder.attention.coverage if evaluator == "multi_view" else None
    attention = dataclasses.replace(
        encoder.attention, evaluator=evaluator, bucket_size=bucket_size, coverage=coverage
    )
    built = TableEncoder(dataclasses.replace(encoder, num_layers=2, attention=attention))
    built.build()
    return built


if __name__ == "__main__":
    program.run(main, trains=True)
