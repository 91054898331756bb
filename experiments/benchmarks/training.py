"""Times training steps side by side, and measures their memory, on made-up tables.

    python -m experiments.benchmarks.training
    python -m experiments.benchmarks.training --variants=mate,mate+recompute --lengths=512,2048

A variant is an architecture of experiments/benchmarks/benchmark.py, with "+recompute" where the
encoder computes its activations anew for the gradients. Each measurement is a process of its own,
which builds an encoder of BERT base's width with a classifier, and makes the training loop's own
steps: forwards, with dropout, backwards, and the update. Each round measures every variant once, so
that a busy machine slows all of them alike.

Prints a Markdown table of medians: the time of a step, the processor time of its threads, which a
busy machine changes less, and the most memory resident during the steps, the first one with its
tracing included, above that of the loaded model and optimizer. In parentheses stands each as a
multiple of the first variant's. The memory is what the allocator holds: with glibc's, of the
environment's settings.
"""

import json
import statistics
import time
from typing import Any

from absl import flags, logging

from experiments import program
from experiments.benchmarks.inputs import attentions, parse_lengths
from experiments.benchmarks.process import in_its_own_process, reset_peak, resident_megabytes

_VARIANTS = flags.DEFINE_list(
    "variants",
    ["tapas", "tapas+recompute", "mate", "mate+recompute"],
    "architectures of experiments/benchmarks/benchmark.py, each alone or with +recompute",
)
_LENGTHS = flags.DEFINE_list("lengths", ["2048"], "tokens in an example")
_ROUNDS = flags.DEFINE_integer("rounds", 3, "measurements of each", lower_bound=1)
_STEPS = flags.DEFINE_integer("steps", 2, "timed steps of each measurement", lower_bound=1)
_BATCH = flags.DEFINE_integer("batch_size", 1, "examples, all alike", lower_bound=1)
_LAYERS = flags.DEFINE_integer("num_layers", 12, "layers of the encoder", lower_bound=1)
_THREADS = flags.DEFINE_integer("threads", 2, "that TensorFlow computes with", lower_bound=1)
_DTYPE = flags.DEFINE_enum("dtype", "float32", ["float32", "mixed_bfloat16"], "of the model")
_OUTPUT = flags.DEFINE_string("output", None, "file that each measurement is added to, as JSON")
_RECOMPUTE = "+recompute"


def measure(options: dict[str, Any]) -> dict[str, Any]:
    """Makes training steps; for a process of its own.

    Args:
        options: variant, length, batch_size, num_layers, threads, steps and dtype.

    Returns:
        The options with seconds and cpu_seconds (of each step after the first), loaded_mb and
        peak_mb (resident memory).
    """
    import keras
    import tensorflow as tf

    from experiments.benchmarks.inputs import table_features
    from mate_tf.config import EncoderConfig
    from mate_tf.models.classification import ClassificationConfig
    from mate_tf.training.config import ClassificationTrainingConfig
    from mate_tf.training.examples import build_model
    from mate_tf.training.optimizer import BertAdamW
    from mate_tf.training.trainer import Task, Termination, Trainer

    tf.config.threading.set_intra_op_parallelism_threads(options["threads"])
    tf.config.threading.set_inter_op_parallelism_threads(options["threads"])
    keras.utils.set_random_seed(1)
    length, batch_size = options["length"], options["batch_size"]
    architecture = options["variant"].removesuffix(_RECOMPUTE)
    config = ClassificationTrainingConfig(
        num_steps=100,
        learning_rate=1e-5,
        dtype=options["dtype"],
        recompute=options["variant"].endswith(_RECOMPUTE),
        encoder=EncoderConfig(
            num_layers=options["num_layers"],
            position="per_cell",
            attention=attentions(length)[architecture],
        ),
        task=ClassificationConfig(num_classes=2),
        max_seq_length=length,
    )
    model = build_model(config)
    optimizer = BertAdamW(config.learning_rate)
    optimizer.build(model.trainable_variables)
    features = table_features(length, columns=8, batch_size=batch_size)
    batch = {name: ids for name, ids in features._asdict().items() if ids is not None}
    batch["classification_class_index"] = tf.zeros([batch_size, 1], tf.int32)
    task = Task(
        model=model,
        train_dataset=lambda step: tf.data.Dataset.from_tensors(batch).repeat(),
        compute_loss=model.compute_task_loss,
        evaluate=dict,
        best_by="loss",
    )
    trainer = Trainer(task, optimizer, config, Termination())
    loaded = resident_megabytes("VmRSS")
    reset_peak()
    trainer.train(tf.constant(1))  # traces
    seconds, cpu_seconds = [], []
    for _ in range(options["steps"]):
        start, cpu_start = time.perf_counter(), time.process_time()
        trainer.train(tf.constant(1))
        seconds.append(time.perf_counter() - start)
        cpu_seconds.append(time.process_time() - cpu_start)
    return options | {
        "seconds": seconds,
        "cpu_seconds": cpu_seconds,
        "loaded_mb": loaded,
        "peak_mb": resident_megabytes("VmHWM"),
    }


def markdown_table(measurements: list[dict[str, Any]]) -> str:
    """A row of medians for each variant and length; in parentheses, by the first variant's."""
    groups: dict[tuple[int, str], list[dict[str, Any]]] = {}
    for one in measurements:
        groups.setdefault((one["length"], one["variant"]), []).append(one)
    lines = ["| tokens | variant | step | processor time | memory |", "|---:|---|---:|---:|---:|"]
    first: dict[int, list[float]] = {}
    for (length, variant), group in groups.items():
        medians = [
            statistics.median(time for one in group for time in one["seconds"]),
            statistics.median(time for one in group for time in one["cpu_seconds"]),
            statistics.median(one["peak_mb"] - one["loaded_mb"] for one in group),
        ]
        ratios = [
            value / of_first
            for value, of_first in zip(medians, first.setdefault(length, medians), strict=True)
        ]
        texts = (f"{medians[0]:.2f} s", f"{medians[1]:.2f} s", f"{medians[2]:,.0f} MB")
        cells = (f"{text} ({ratio:.2f})" for text, ratio in zip(texts, ratios, strict=True))
        lines.append(f"| {length:,} | {variant} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main(_) -> None:
    lengths = parse_lengths(_LENGTHS.value)
    known = list(attentions(lengths[0]))
    if unknown := [name for name in _VARIANTS.value if name.removesuffix(_RECOMPUTE) not in known]:
        raise ValueError(
            f"expected --variants among {', '.join(known)}, each alone or with {_RECOMPUTE}, got "
            f"{unknown}"
        )
    measurements = []
    for length in lengths:
        for done in range(_ROUNDS.value):
            for variant in _VARIANTS.value:
                options = {
                    "variant": variant,
                    "length": length,
                    "batch_size": _BATCH.value,
                    "num_layers": _LAYERS.value,
                    "threads": _THREADS.value,
                    "steps": _STEPS.value,
                    "dtype": _DTYPE.value,
                }
                found = in_its_own_process(measure, options)
                measurements.append(found)
                if _OUTPUT.value:
                    with open(_OUTPUT.value, "a", encoding="utf-8") as file:
                        file.write(json.dumps(found) + "\n")
                logging.info(
                    "%d tokens, round %d of %d: %s %.2f s, %.0f MB",
                    length,
                    done + 1,
                    _ROUNDS.value,
                    variant,
                    statistics.median(found["seconds"]),
                    found["peak_mb"] - found["loaded_mb"],
                )
    print(markdown_table(measurements))


if __name__ == "__main__":
    program.run(main)
