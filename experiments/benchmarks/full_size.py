"""Takes two training steps of each preset at its full width and depth, on a CPU.

    python -m experiments.benchmarks.full_size
    python -m experiments.benchmarks.full_size --only=wtq_large,hybridqa_mate_large

A step has one example of made ids: of 128 tokens, or of all 2,048 where the preset has them, whose
layers are then computed again for the gradient (`recompute`). It computes in float32, which every
processor has. Each preset runs in a process of its own; it prints the parameters, the losses, which
must be finite, the seconds of the first step, with its tracing, and of the second, and the most
memory. {output_dir}/full_size.json has all, and is complete after each preset.
"""

import dataclasses
import json
import math
import pathlib
import time
from collections.abc import Sequence
from typing import Any

from experiments import program
from experiments.benchmarks.check_tpu import small_steps, table_batch
from experiments.benchmarks.runners import in_its_own_process, peak_megabytes
from experiments.exported.programs import run_of
from mate_tf.reading.text_files import complete_text_file, read_json

_OUTPUT, _ONLY = program.define_steps("out/full_size")


def take_steps(name: str) -> dict[str, Any]:
    """Two steps of a preset, in this process: what the module's docstring says of them."""
    import tensorflow as tf

    whole = {step.name: step.whole for step in small_steps()}[name]
    is_long = whole.max_seq_length > 512
    length = whole.max_seq_length if is_long else 128
    sizes = dict(max_seq_length=length, length_buckets=(), batch_size=1)
    changes = dict(gradient_accumulation_steps=1, recompute=is_long, dtype="float32")
    tf.keras.utils.set_random_seed(0)
    model, _, trainer = run_of(dataclasses.replace(whole, **sizes, **changes), at_zero=False)
    inputs, losses, seconds = table_batch(1, length), [], []
    step = tf.function(trainer.replica_step, autograph=False)
    for _ in range(2):
        start = time.monotonic()
        losses.append(float(step(inputs)["loss"]))
        seconds.append(round(time.monotonic() - start, 1))
    return {
        "tokens": length,
        "million_parameters": round(model.count_params() / 1e6, 1),
        "losses": losses,
        "seconds": seconds,
        "memory_gb": round(peak_megabytes() / 1024, 1),
    }


def main(_: Sequence[str]) -> int:
    known = [step.name for step in small_steps()]
    names = _ONLY.value or known
    if unknown := [name for name in names if name not in known]:
        raise ValueError(f"expected --only among {', '.join(known)}, got {unknown[0]!r}")
    path = pathlib.Path(_OUTPUT.value) / "full_size.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    results: dict[str, Any] = read_json(path) if path.exists() else {}
    for name in names:
        try:
            results[name] = in_its_own_process(take_steps, name)
        except Exception as error:  # the others go on
            results[name] = {"error": f"{type(error).__name__}: {error}"}
        print(name, results[name], flush=True)
        with complete_text_file(path) as file:
            file.write(json.dumps(results, indent=1) + "\n")
    losses = (loss for result in results.values() for loss in result.get("losses", [math.nan]))
    return int(not all(map(math.isfinite, losses)))


if __name__ == "__main__":
    program.run(main)
