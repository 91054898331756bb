"""A training run in its folder: from records to weights, or on from where it stopped.

What the training of each kind of model (mate_tf/answers/tasks.py) has of its own.

Each module has `check_data`, which refuses a folder of records that the model cannot learn from,
and `dev_evaluation`, which measures it meanwhile.
"""

import json
import os
import pathlib
import shutil
from dataclasses import asdict
from types import ModuleType

import keras
import tensorflow as tf
from absl import logging

from mate_tf.answers.tasks import kind_of
from mate_tf.records.records import complete_file
from mate_tf.training import classification, masked_lm, span_reading, table_qa
from mate_tf.training.config import RunConfig
from mate_tf.training.distribution import is_chief
from mate_tf.training.examples import SPLITS, build_model, make_task, save_conversion
from mate_tf.training.loop import train
from mate_tf.training.run_folder import RunInputs, data_files, save_config, save_inputs
from mate_tf.weights.initial import load_weights

MODULES: dict[str, ModuleType] = {
    "table_qa": table_qa,
    "classification": classification,
    "span_reading": span_reading,
    "masked_lm": masked_lm,
}


def train_run(
    config: RunConfig,
    data_dir: pathlib.Path,
    model_dir: pathlib.Path,
    init_checkpoint: str | None = None,
    **load_options,
) -> dict[str, float]:
    """Trains as the config says, or goes on where a run stopped.

    Call it in the scope of the strategy to train with.

    Args:
        config: what is trained, and how.
        data_dir: the folder of records (examples.check_examples).
        model_dir: the run's folder, a new one or that of the same run.
        init_checkpoint: weights to start from, as `load_weights` takes them; None for random ones.
        **load_options: of `load_weights`.

    Returns:
        The metrics of the last evaluation.

    Raises:
        FileNotFoundError, ValueError: if data, weights or folder do not fit the config; the error
            says which.
    """
    of_kind = MODULES[kind_of(config.task)]
    of_kind.check_data(config, data_dir)
    keras.utils.set_random_seed(config.seed)
    with tf.distribute.get_strategy().scope():
        model = build_model(config)
        source = None
        begins = tf.train.latest_checkpoint(model_dir) is None
        if init_checkpoint and begins:
            vocab_file = data_dir / "vocab.txt"
            report = load_weights(model, init_checkpoint, vocab_file=vocab_file, **load_options)
            logging.info("%s", report)
            source = report.source
            if source.startswith(os.path.normpath(init_checkpoint)):  # not on the Hub
                init_checkpoint = os.path.abspath(init_checkpoint)
        evaluation = of_kind.dev_evaluation(config, data_dir, model)
        task = make_task(config, data_dir, model, evaluation)
        # Only now: a run that was refused leaves no folder behind.
        if is_chief():
            save_config(config, model_dir)
            save_conversion(config, data_dir, model_dir)
            names = [
                f"{split}{records.suffix}" for split in SPLITS for records in config.record_sets
            ]
            inputs = RunInputs(
                data_dir=os.path.abspath(data_dir),
                files=data_files(data_dir, names),
                init_checkpoint=init_checkpoint,
                init_revision=load_options.get("revision"),
                reset_heads=load_options.get("reset_heads", False),
                loaded_from=source and os.path.abspath(source),
            )
            save_inputs(inputs, model_dir, begins, may_differ=config.skip_corrupt)
            with complete_file(model_dir / "vocab.txt") as unfinished:
                shutil.copyfile(data_dir / "vocab.txt", unfinished)
        logging.info("config: %s", json.dumps(asdict(config)))
        return train(task, config, model_dir)
