"""Writes a training as XLA programs and arrays, for a machine that has JAX and no TensorFlow.

    python -m experiments.exported.prepare --config=default_everything \\
        --data_dir=out/wtq_data:2,out/made_data --init_checkpoint=out/default/people_weights \\
        --batches=64x128,32x256,24x512,12x1024,6x2048 --output_dir=out/programs

`experiments.exported.train` trains there, and `experiments.exported.finish` makes a model's folder
of the weights. Configs are those of experiments/finetune.py and pretrain.py, of table questions,
classification or masked words, and are changed in the same way. A batch of --batches is as many
examples x the tokens of their longest; longer examples are left out. With :2 behind a folder of
records each epoch has its examples twice, with :0.5 about half of them.

The output folder gets the training loop's step for each batch, the weights to start from, the
records of the split train, spec.json, and what the model's folder will have.
"""

import itertools
import json
import lzma
import pathlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import keras
import numpy as np
from absl import flags, logging

from experiments import program
from experiments.exported.programs import Inputs, Size, run_of, write_program
from experiments.exported.train import LENGTHS, MASK, RECORDS, SPEC, START, TIMES, Arrays
from mate_tf.features.token_features import TAPAS_FEATURES
from mate_tf.records.batches import read_records
from mate_tf.records.records import OF_TOKENS
from mate_tf.records.splits import split_files
from mate_tf.task_configs import model_kind
from mate_tf.training.examples import save_conversion
from mate_tf.training.run import save_config
from mate_tf.training.starting_points import make_config
from mate_tf.weights.initial import load_weights
from mate_tf.weights.run import weights_by_path

# What the loss reads of an example, beside the token features.
_LABELS = {
    "table_qa": "label_ids numeric_values numeric_values_scale answer"
    " aggregation_function_id aggregation_is_known",
    "classification": "classification_class_index",
    "masked_lm": "masked_lm_ids masked_lm_positions masked_lm_weights is_random_table",
}


def prepare(
    config: Any, sources: Sequence[str], sizes: Sequence[Size], folder: pathlib.Path, init: str = ""
) -> None:
    """Writes the folder of a training run; arguments are as on the command line.

    ValueError if the programs cannot do what the config says, or vocabularies or features differ.
    """
    if config.ema_decay is not None:
        raise ValueError(f"expected no ema_decay, which counts updates, got {config.ema_decay}")
    if config.schedule != "linear":
        raise ValueError(f"expected schedule 'linear', the programs' own, got {config.schedule!r}")
    sizes = sorted(sizes, key=lambda size: size[1])
    longest = sizes[-1][1]
    if longest > config.max_seq_length:
        limit = f"{config.max_seq_length} tokens (max_seq_length)"
        raise ValueError(f"expected batches of at most {limit}, got {longest}")
    weighted = [source.rpartition(":") for source in sources]
    times = {one or last: float(last) if one else 1.0 for one, _, last in weighted}  # by folder
    vocabularies = {pathlib.Path(one, "vocab.txt").read_bytes() for one in times}
    if len(vocabularies) != 1:
        raise ValueError(f"expected one vocabulary, got {len(vocabularies)} in {sources}")
    save_config(config, folder)
    save_conversion(config, next(iter(times)), folder)
    (folder / "vocab.txt").write_bytes(*vocabularies)
    inputs = _write_records(config, times, longest, folder)

    keras.utils.set_random_seed(config.seed)
    model, optimizer, trainer = run_of(config, at_zero=False, constant_rate=True)
    if init:
        logging.info("%s", load_weights(model, init, vocab_file=folder / "vocab.txt"))
    weights = weights_by_path(model)
    variables = weights | {
        one.path: one
        for one in (*model.variables, *optimizer.variables)
        if one.path.removeprefix(f"{model.name}/") not in weights
    }
    start = {name: one.numpy().astype(np.float16) for name, one in weights.items()}
    others = {name: one.numpy() for name, one in variables.items() if name not in weights}
    # Averages of gradients and the counter start at zero.
    start |= {name: value for name, value in others.items() if value.any()}
    np.savez(folder / START, **start)
    names = {id(one.value.handle): name for name, one in variables.items()}
    spec = {
        "learning_rate": config.learning_rate,
        "rate": optimizer.learning_rate.path,  # its variable
        "weights": [*weights],
        "variables": {name: [[*one.shape], one.dtype] for name, one in variables.items()},
        "programs": [
            write_program(trainer.replica_step, inputs, size, names, folder) for size in sizes
        ],
    }
    (folder / SPEC).write_text(json.dumps(spec), encoding="utf-8")


def pack(examples: Iterable[tuple[Arrays, float]], features: Sequence[str], longest: int) -> Arrays:
    """Some features of examples as arrays without padding, for `train.Examples`.

    Given are examples, [S] for features of tokens and [W] for others, and how often an epoch has
    each; longer ones are left out. It gives LENGTHS [N], which is what is kept of the mask, TIMES
    [N], features of all tokens one after the other [sum of lengths], and others [N, W].
    """
    lengths, all_times = [], []
    kept: dict[str, list[np.ndarray]] = {name: [] for name in features if name != MASK}
    for example, times in examples:
        length = int(example[MASK].sum())
        if length > longest:
            continue
        lengths.append(length)
        all_times.append(times)
        for name, values in kept.items():
            is_of_tokens = example[name].shape == example[MASK].shape
            given = example[name][:length] if is_of_tokens else example[name][np.newaxis]
            values.append(given.copy())  # for a view would keep its padding
    if not lengths:
        raise ValueError(f"expected examples of at most {longest} tokens, found none")
    arrays = {LENGTHS: np.array(lengths), TIMES: np.array(all_times)}
    return arrays | {name: np.concatenate(values) for name, values in kept.items()}


def _write_records(
    config: Any, sources: Mapping[str, float], longest: int, folder: pathlib.Path
) -> Inputs:
    """Writes all sources; returns of each feature the width, None for tokens, and the dtype."""
    kind = model_kind(config.task)
    if kind not in _LABELS:
        raise ValueError(f"expected a config of {', '.join(_LABELS)}, got one of {kind}")
    features = (*TAPAS_FEATURES, *_LABELS[kind].split())
    read = []
    for data_dir, times in sources.items():
        files = split_files(data_dir, config.record_name("train"))
        examples = read_records(files)
        specs = examples.element_spec
        if missing := [name for name in features if name not in specs]:
            raise ValueError(f"expected {', '.join(missing)} in {files[0]}, found none")
        read.append(zip(examples.as_numpy_iterator(), itertools.repeat(times), strict=False))
    arrays = pack(itertools.chain(*read), features, longest)
    logging.info("%d examples", len(arrays[LENGTHS]))
    with lzma.open(folder / RECORDS, "wb") as stream:
        np.savez(stream, allow_pickle=False, **arrays)
    return {
        name: (None if name in OF_TOKENS else specs[name].shape[0], specs[name].dtype.name)
        for name in features
    }


def main(arguments: Sequence[str]) -> None:
    given, config = flags.FLAGS, make_config(flags.FLAGS.config, None, [*arguments[1:]])
    sizes = [tuple(map(int, batch.split("x"))) for batch in given.batches]
    prepare(config, given.data_dir, sizes, pathlib.Path(given.output_dir), given.init_checkpoint)


if __name__ == "__main__":  # flags of the module would meet those of others in the tests
    flags.DEFINE_string("config", None, "what is trained, and how", required=True)
    flags.DEFINE_list("data_dir", None, "folders of records, or FOLDER:TIMES", required=True)
    flags.DEFINE_string("init_checkpoint", "", "weights to start from; random ones without")
    flags.DEFINE_list("batches", None, "sizes, EXAMPLESxTOKENS", required=True)
    flags.DEFINE_string("output_dir", None, "folder to write to", required=True)
    program.run(main, trains=True)
