"""Writes a training as XLA programs and arrays, for a machine that has JAX and no TensorFlow.

    python -m experiments.exported.prepare --config=default_everything \\
        --data_dir=out/wtq_data:2,out/made_data --init_checkpoint=out/default/people_weights \\
        --batches=64x128,32x256,24x512,12x1024,6x2048 --output_dir=out/programs

`experiments.exported.train` trains there, and `experiments.exported.finish` makes a model's folder
of the weights. Configs are those of experiments/finetune.py and pretrain.py, of table questions,
classification or masked words, and are changed in the same way. A batch of --batches is as many
examples x the tokens of their longest; examples longer than all are left out. With :2 behind a
folder of records each epoch has its examples twice, with :0.5 another half of them.

The output folder gets, for each batch, the training loop's step (dropout, loss, gradients,
clipping, AdamW) and a program that judges answers; the weights to start from, in half precision;
the records of the splits train and dev; spec.json, which says what the programs take and give; and
what the model's folder will have: config.json, vocab.txt, and conversion.json of the first records.
"""

import dataclasses
import json
import lzma
import pathlib
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from absl import flags, logging

from experiments import program
from experiments.exported.arrays import LENGTHS, pack
from experiments.exported.programs import judged, run_of, write_program
from experiments.exported.train import SPEC, START

# The schedule in the programs falls from the config's rate, the largest that can be asked for, to
# zero in so many updates, without a warm-up. Who runs them sets the number of updates made so far
# before each, and with it the rate, to a millionth of the largest. Nothing else depends on that
# number, for BERT's AdamW does not correct its averages' bias (mate_tf/training/optimizer.py).
LONG = 1_000_000
# What the loss reads of an example, beside the token features.
_LABELS: dict[str, tuple[str, ...]] = {
    "table_qa": (
        *("label_ids", "numeric_values", "numeric_values_scale", "answer"),
        *("aggregation_function_id", "aggregation_is_known"),
    ),
    "classification": ("classification_class_index",),
    "masked_lm": (
        *("masked_lm_ids", "masked_lm_positions", "masked_lm_weights", "is_random_table"),
    ),
}


def prepare(
    config: Any,
    sources: Sequence[str],
    sizes: Sequence[tuple[int, ...]],
    folder: pathlib.Path,
    init_checkpoint: str | None = None,
) -> None:
    """Writes the folder of a training run.

    Sources are folders of records, FOLDER or FOLDER:TIMES; sizes are examples and tokens of each
    batch; without a checkpoint, as `load_weights` takes it, weights are random. ValueError if the
    programs cannot do what the config says, or the records' vocabularies or features differ.
    """
    import keras

    from mate_tf.training.examples import save_conversion
    from mate_tf.training.run import save_config
    from mate_tf.weights.initial import load_weights
    from mate_tf.weights.run import weights_by_path

    _check(config, sizes)
    weighted = [_weighted(source) for source in sources]
    vocabularies = {(data_dir / "vocab.txt").read_bytes() for data_dir, _ in weighted}
    if len(vocabularies) != 1:
        raise ValueError(f"expected one vocabulary, got {len(vocabularies)} in {sources}")
    save_config(config, folder)
    save_conversion(config, weighted[0][0], folder)
    (folder / "vocab.txt").write_bytes(*vocabularies)
    records, inputs = _write_records(config, weighted, max(size[1] for size in sizes), folder)

    keras.utils.set_random_seed(config.seed)
    long = dataclasses.replace(config, num_steps=LONG, warmup_ratio=0.0)
    model, optimizer, trainer = run_of(long, at_zero=False)
    if init_checkpoint:
        vocab_file = folder / "vocab.txt"
        logging.info("%s", load_weights(model, init_checkpoint, vocab_file=vocab_file))
    weights = weights_by_path(model)
    variables = weights | {
        one.path: one
        for one in (*model.variables, *optimizer.variables)
        if one.path.removeprefix(f"{model.name}/") not in weights
    }
    names = {id(one.value.handle): name for name, one in variables.items()}
    start = {name: one.numpy().astype(np.float16) for name, one in weights.items()}
    # Such as a seed; averages of gradients and the counter start at zero.
    start |= {
        name: value
        for name, one in variables.items()
        if name not in weights and (value := one.numpy()).any()
    }
    np.savez(folder / START, **start)
    functions = {"train": trainer.replica_step, "judge": lambda batch: judged(model, batch)}
    programs = {
        kind: [
            write_program(f"{kind}_{size[0]}x{size[1]}", function, inputs, size, names, folder)
            for size in sizes
        ]
        for kind, function in functions.items()
    }
    spec = {
        "peak": config.learning_rate,
        "num_steps": LONG,
        "counter": optimizer.iterations.path,
        "weights": [*weights],
        "variables": {name: [[*one.shape], one.dtype] for name, one in variables.items()},
        "records": records,
        "programs": programs,
    }
    (folder / SPEC).write_text(json.dumps(spec), encoding="utf-8")


def _check(config: Any, sizes: Sequence[tuple[int, ...]]) -> None:
    from mate_tf.task_configs import model_kind

    kind = model_kind(config.task)
    if kind not in _LABELS:
        raise ValueError(f"expected a config of {', '.join(_LABELS)}, got one of {kind}")
    if config.ema_decay is not None:
        raise ValueError(f"expected no ema_decay, which counts updates, got {config.ema_decay}")
    longest = max(length for _, length in sizes)
    if longest > config.max_seq_length:
        raise ValueError(
            f"expected batches of at most {config.max_seq_length} tokens (max_seq_length), got "
            f"{longest}"
        )


def _weighted(source: str) -> tuple[pathlib.Path, float]:
    """A folder of records, and how often an epoch has each of its examples."""
    data_dir, _, times = source.rpartition(":")
    return (pathlib.Path(data_dir), float(times)) if data_dir else (pathlib.Path(source), 1.0)


def _write_records(
    config: Any, sources: Iterable[tuple[pathlib.Path, float]], longest: int, folder: pathlib.Path
) -> tuple[dict[str, list[dict[str, Any]]], dict[str, tuple[int | None, str]]]:
    """Writes the arrays of each source; a folder need not have a dev split.

    Returns:
        What the spec says of them, by split; and of each feature the width, None for as many as
        tokens, and the dtype.
    """
    from mate_tf.features.token_features import TAPAS_FEATURES
    from mate_tf.records.batches import read_records
    from mate_tf.records.records import OF_TOKENS
    from mate_tf.records.splits import split_files
    from mate_tf.task_configs import model_kind

    features = (*TAPAS_FEATURES, *_LABELS[model_kind(config.task)])
    records: dict[str, list[dict[str, Any]]] = {"train": [], "dev": []}
    inputs: dict[str, tuple[int | None, str]] = {}
    for split, entries in records.items():
        for data_dir, times in sources:
            try:
                files = split_files(data_dir, config.record_name(split))
            except FileNotFoundError:
                if split == "train":
                    raise
                continue
            examples = read_records(files)
            if missing := [name for name in features if name not in examples.element_spec]:
                raise ValueError(f"expected {', '.join(missing)} in {files[0]}, found none")
            for name in features:
                spec = examples.element_spec[name]
                width = None if name in OF_TOKENS else spec.shape[0]
                inputs[name] = width, spec.dtype.name
            arrays = pack(examples.as_numpy_iterator(), features, longest)
            count = len(arrays[LENGTHS])
            logging.info("%s of %s: %d examples", split, data_dir, count)
            file = f"{split}_{len(entries)}.npz.xz"
            with lzma.open(folder / file, "wb") as stream:
                np.savez(stream, allow_pickle=False, **arrays)
            entries.append({"name": f"{data_dir}", "file": file, "times": times})
    return records, inputs


def _main(arguments: Sequence[str]) -> None:
    from mate_tf.training.starting_points import make_config

    given = flags.FLAGS
    config = make_config(given.config, None, [*arguments[1:]])
    sizes = [tuple(map(int, batch.split("x"))) for batch in given.batches]
    prepare(config, given.data_dir, sizes, pathlib.Path(given.output_dir), given.init_checkpoint)


if __name__ == "__main__":  # flags of the module would meet those of others in the tests
    flags.DEFINE_string("config", None, "what is trained, and how", required=True)
    flags.DEFINE_list("data_dir", None, "folders of records, or FOLDER:TIMES", required=True)
    flags.DEFINE_string("init_checkpoint", None, "weights to start from; random ones without")
    flags.DEFINE_list("batches", None, "sizes, EXAMPLESxTOKENS", required=True)
    flags.DEFINE_string("output_dir", None, "folder to write to", required=True)
    program.run(_main, trains=True)
