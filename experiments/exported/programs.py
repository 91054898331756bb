"""Training steps and judgements as XLA programs, and what they take and give.

Shapes: B batch, S sequence, K cells, P predicted words.
"""

import contextlib
import lzma
import pathlib
import re
from collections.abc import Callable, Mapping
from typing import Any

from absl import logging

from experiments.exported.arrays import MASK

_CHOSEN = 0.5  # the probability from which a cell belongs to an answer


def run_of(
    config: Any, at_zero: bool = True, batch: Mapping[str, Any] | None = None
) -> tuple[Any, Any, Any]:
    """The model of a training run, its optimizer and its trainer, whose steps are all of one batch.

    Weights are zero or random.
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
    data = tf.data.Dataset.from_tensors(batch or 0).repeat()
    task = Task(model, lambda _: data, evaluate=dict, best_by="loss")
    optimizer = make_optimizer(model, config)
    return model, optimizer, Trainer(task, optimizer, config, Termination())


def updates_of(hlo: str) -> list[tuple[int, int]]:
    """Which results take the place of which arguments, from the first line of a program's text."""
    pairs = re.findall(r"\{(\d+)\}: \((\d+), \{\}", hlo.partition("\n")[0])
    return [(int(result), int(argument)) for result, argument in pairs]


def judged(model: Any, batch: Mapping[str, Any]) -> dict[str, Any]:
    """How many answers of each example are right, and how many count: float32 [B].

    An answer is a masked word, a class, or, where the operator is known, the operator with exactly
    the cells that it takes. Those are not the scores of `mate-tf evaluate`, but move with them.
    """
    import tensorflow as tf

    from mate_tf.models import cell_selection
    from mate_tf.models.table_qa import known_operators
    from mate_tf.tables.operators import ABSENT

    outputs = model(*model.model_inputs(batch), training=False)
    if "masked_lm_logits" in outputs:
        is_right = tf.argmax(outputs["masked_lm_logits"], -1, tf.int32) == batch["masked_lm_ids"]
        weights = batch["masked_lm_weights"]  # [B, P]
        right = tf.reduce_sum(tf.where(is_right, weights, 0.0), axis=1)
        return {"right": right, "counted": tf.reduce_sum(weights, axis=1)}
    if "class_logits" in outputs:
        classes = tf.reshape(batch["classification_class_index"], [-1])
        is_right = tf.argmax(outputs["class_logits"], -1, tf.int32) == classes
        return {"right": tf.cast(is_right, tf.float32), "counted": tf.ones_like(classes, "float32")}
    columns, rows, mask = (batch[name] for name in ("column_ids", "row_ids", MASK))
    cells = cell_selection.group_cells(columns, rows, mask, model.task_config.max_num_columns)
    probabilities = cell_selection.mean_by_cell(outputs["token_probabilities"], cells)
    labelled = cell_selection.is_labelled(batch["label_ids"], cells)  # [B, K]
    is_right = tf.reduce_all(((probabilities > _CHOSEN) == labelled) | ~cells.in_body, axis=1)
    counted = tf.ones_like(is_right)
    if "aggregation_logits" in outputs:
        names = model.task_config.operators
        operators = known_operators(names, batch)
        counted = tf.reshape(batch["aggregation_is_known"], [-1]) > 0
        if ABSENT in names:
            is_right |= operators == names.index(ABSENT)
        is_right &= tf.argmax(outputs["aggregation_logits"], -1, tf.int32) == operators
    return {
        "right": tf.cast(is_right & counted, tf.float32),
        "counted": tf.cast(counted, tf.float32),
    }


def write_program(
    name: str,
    function: Callable[[Mapping[str, Any]], Mapping[str, Any]],
    inputs: Mapping[str, tuple[int | None, str]],
    size: tuple[int, ...],
    names: Mapping[int, str],
    folder: pathlib.Path,
) -> dict[str, Any]:
    """Writes a function of a batch as HLO; returns what the spec says of it.

    It makes tensors by name of a batch, and may change variables. The inputs are each feature's
    width, None for as many as tokens, and dtype; the size is examples and tokens; the names are
    those of variables, by the ids of their handles.
    """
    import tensorflow as tf

    logging.info("%s", name)
    count, length = size
    batch = {
        feature: tf.zeros([count, length if width is None else width], dtype)
        for feature, (width, dtype) in inputs.items()
    }
    traced = tf.function(function, jit_compile=True, autograph=False)
    concrete = traced.get_concrete_function(batch)
    written = traced.experimental_get_compiler_ir(batch)
    file = f"{name}.hlo.xz"
    (folder / file).write_bytes(lzma.compress(written(stage="hlo_serialized")))
    return {
        "file": file,
        "size": count,
        "length": length,
        # Sorted by name, as TensorFlow flattens a batch and what is returned.
        "inputs": [
            [one, batch[one].shape.as_list(), batch[one].dtype.name] for one in sorted(batch)
        ],
        "variables": [names[id(handle)] for handle in concrete.captured_inputs],
        "updates": updates_of(written(stage="hlo")),
        "outputs": sorted(concrete.structured_outputs),
    }
