"""Training steps as XLA programs, and what they take and give."""

import contextlib
import lzma
import pathlib
import re
from collections.abc import Callable, Mapping
from typing import Any

from absl import logging

Inputs = Mapping[str, tuple[int | None, str]]  # features' widths, None for tokens, and dtypes
Size = tuple[int, ...]  # examples and tokens of a batch


def run_of(
    config: Any, at_zero: bool = True, batch: Mapping | None = None, constant_rate: bool = False
) -> tuple[Any, Any, Any]:
    """The model of a training run, its optimizer and its trainer, whose steps are all of one batch.

    Weights are zero or random. With a constant rate it is a variable of the optimizer.
    """
    import keras
    import tensorflow as tf

    from mate_tf.layers.basic import weights_at_zero
    from mate_tf.training.examples import build_model
    from mate_tf.training.loop import make_optimizer
    from mate_tf.training.trainer import Task, Termination, Trainer

    keras.utils.clear_session()  # of the step before
    with weights_at_zero() if at_zero else contextlib.nullcontext():
        model = build_model(config)
    optimizer = make_optimizer(model, config)
    if constant_rate:
        options = optimizer.get_config() | {"learning_rate": config.learning_rate}
        optimizer = type(optimizer).from_config(options)
        optimizer.build(model.trainable_variables)
    data = tf.data.Dataset.from_tensors(batch or 0).repeat()
    task = Task(model, lambda _: data, evaluate=dict, best_by="loss")
    return model, optimizer, Trainer(task, optimizer, config, Termination())


def write_program(
    function: Callable, inputs: Inputs, size: Size, names: Mapping[int, str], folder: pathlib.Path
) -> dict[str, Any]:
    """Writes a function of a batch as HLO; returns what the spec says of it.

    It may change variables, whose names are by the ids of their handles.
    """
    import tensorflow as tf

    count, length = size
    logging.info("%d examples of %d tokens", count, length)
    # Sorted by name, as TensorFlow flattens a batch and what is returned.
    given = [
        (one, [count, length if width is None else width], dtype)
        for one, (width, dtype) in sorted(inputs.items())
    ]
    batch = {one: tf.zeros(shape, dtype) for one, shape, dtype in given}
    traced = tf.function(function, jit_compile=True, autograph=False)
    concrete = traced.get_concrete_function(batch)
    written = traced.experimental_get_compiler_ir(batch)
    # Which results take the place of which arguments, in the first line of a program's text.
    first_line = written(stage="hlo").partition("\n")[0]
    updates = re.findall(r"\{(\d+)\}: \((\d+), \{\}", first_line)
    file = f"{count}x{length}.hlo.xz"
    (folder / file).write_bytes(lzma.compress(written(stage="hlo_serialized")))
    return {
        "file": file,
        "size": size,
        "inputs": given,
        "variables": [names[id(handle)] for handle in concrete.captured_inputs],
        "updates": [(int(result), int(argument)) for result, argument in updates],
        "outputs": sorted(concrete.structured_outputs),
    }
