"""Measures up to which length dense attention is faster than linear attention on this machine.

    python -m experiments.benchmarks.break_even
    python -m experiments.benchmarks.break_even --config=tabfact_minilm --mode=training \\
        --batch_size=16

Encodes made-up tables with a preset's encoder, once with evaluator "dense" and once with evaluator
"multi_view". Finds by bisection the length from which the second is the faster one, and prints the
setting that makes the encoder choose the faster one at every length:

    --config.encoder.attention.dense_up_to=...

The default was measured with BERT base on a CPU. Another device or batch size has another length.
"""

import bisect
import dataclasses
import functools
import statistics
from typing import Any

from absl import flags, logging

from experiments import program
from experiments.benchmarks.runners import (
    built_encoder,
    forward_pass,
    interleaved,
    made_up_features,
    set_up,
    training_step,
)
from mate_tf.config import EncoderConfig
from mate_tf.training.starting_points import make_config

_CONFIG = flags.DEFINE_string(
    "config", "wtq_mate_base_2048", "a preset of experiments/configs, or the folder of a run"
)
_MODE = flags.DEFINE_enum(
    "mode", "inference", ["inference", "training"], "a forward pass, or a training step"
)
_BATCH = flags.DEFINE_integer("batch_size", 1, "examples, all alike", lower_bound=1)
_THREADS = flags.DEFINE_integer(
    "threads", 0, "that TensorFlow computes with; 0 for all", lower_bound=0
)
_ROUNDS = flags.DEFINE_integer("rounds", 5, "measurements of each", lower_bound=1)
_COLUMNS = flags.DEFINE_integer("columns", 8, "columns of the tables", lower_bound=1)
_LONGEST = flags.DEFINE_integer("longest", 4096, "longest length to try", lower_bound=64)

_STEP = 64


def longest_dense(encoder: EncoderConfig, options: dict[str, Any]) -> int:
    """The longest length, a multiple of 64, up to which "dense" is not the slower evaluator.

    Args:
        encoder: measured with two layers, which are enough to tell.
        options: dtype, batch_size and columns.
    """
    configs = {}
    for evaluator in ("dense", "multi_view"):
        changes: dict[str, Any] = {"evaluator": evaluator}
        if evaluator == "dense" and encoder.attention.coverage:
            changes |= {"coverage": None, "bucket_size": 0}  # without a window, as at full coverage
        attention = dataclasses.replace(encoder.attention, **changes)
        configs[evaluator] = dataclasses.replace(encoder, num_layers=2, attention=attention)
    is_training = _MODE.value == "training"
    passes = {} if is_training else {n: forward_pass(built_encoder(c)) for n, c in configs.items()}

    def linear_is_faster(length: int) -> bool:
        here = options | {"length": length}
        if is_training:
            runners = {name: training_step(config, here) for name, config in configs.items()}
        else:
            features = made_up_features(here)
            runners = {name: functools.partial(run, features) for name, run in passes.items()}
        seconds = interleaved(runners, _ROUNDS.value)
        dense, linear = (1000 * statistics.median(seconds[name]) for name in configs)
        logging.info("%d tokens: dense %.1f ms, linear %.1f ms", length, dense, linear)
        return linear < dense

    lengths = range(_STEP, _LONGEST.value + 1, _STEP)
    index = bisect.bisect_left(lengths, True, key=linear_is_faster)
    return lengths[index - 1] if index else 0


def main(argv: list[str]) -> None:
    config = make_config(_CONFIG.value, None, argv[1:])
    encoder = getattr(config, "encoder", None)
    if encoder is None or not encoder.attention.is_multi_view:
        raise ValueError(
            f"expected a config whose encoder has a linear evaluator, as mate, got {_CONFIG.value}"
        )
    set_up(_THREADS.value, config.dtype)
    options = {"dtype": config.dtype, "batch_size": _BATCH.value, "columns": _COLUMNS.value}
    print(f"--config.encoder.attention.dense_up_to={longest_dense(encoder, options)}")


if __name__ == "__main__":
    program.run(main, trains=True)
