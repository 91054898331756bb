"""Fine-tunes table question answering, or a classifier, and evaluates it while it trains.

    python -m experiments.finetune --config=wtq_minilm --data_dir=out/wtq_data \
        --init_checkpoint=minilm --model_dir=out/wtq_minilm

A config is a preset of experiments/configs; each says what it is for, how long it takes and what
to expect. Every value can be changed: --config.learning_rate=1e-4, --config.encoder.num_layers=3,
--config.encoder.attention.bucket_size=64; an unknown key lists the known ones.

--data_dir is a folder that experiments/create_data.py made. --model_dir takes the config
(config.json), the vocabulary, checkpoints, TensorBoard summaries (train, dev) and a line of
evaluations.jsonl for each evaluation. Started again with the same arguments, training goes on
from the latest checkpoint, to the same weights as without the interruption.
"""

import importlib
import json
import pathlib
import shutil
from dataclasses import asdict
from typing import Any

from absl import app, flags, logging

from experiments import terminal

CONFIGS = pathlib.Path(__file__).parent / "configs"

_CONFIG = flags.DEFINE_string(
    "config",
    None,
    "name of a preset: a file of experiments/configs without .py; change its values with "
    "--config.KEY=VALUE",
    required=True,
)
_DATA_DIR = flags.DEFINE_string(
    "data_dir", None, "folder of records that experiments/create_data.py wrote", required=True
)
_MODEL_DIR = flags.DEFINE_string(
    "model_dir", None, "folder of the run; goes on where one was interrupted", required=True
)
_INIT_CHECKPOINT = flags.DEFINE_string(
    "init_checkpoint",
    None,
    "weights to start from: a Hugging Face folder (config.json, model.safetensors) of BERT or "
    "TAPAS, or the prefix of a TF1 checkpoint of BERT, TAPAS or MATE; without it, random ones",
)


def load_preset(name: str):
    """The config of a preset; ValueError if there is no such preset."""
    names = sorted(path.stem for path in CONFIGS.glob("*.py") if path.stem != "__init__")
    if name not in names:
        raise ValueError(f"expected --config to be one of {', '.join(names)}, got {name!r}")
    return importlib.import_module(f"experiments.configs.{name}").CONFIG


def load_initial_weights(model, path: str) -> None:
    """Loads a Hugging Face folder or a TF1 checkpoint and logs what came of it."""
    from mate_tf.weights.hugging_face import load_hugging_face
    from mate_tf.weights.tf1 import load_tf1_checkpoint

    is_hugging_face = (pathlib.Path(path) / "config.json").is_file()
    load = load_hugging_face if is_hugging_face else load_tf1_checkpoint
    logging.info("%s", load(model, path))


def finetune(
    config, data_dir: pathlib.Path, model_dir: pathlib.Path, init_checkpoint: str | None
) -> dict[str, float]:
    """Trains as the config says, or goes on where a run stopped; the last evaluation's metrics."""
    import keras
    import tensorflow as tf

    from mate_tf.training import classification, table_qa
    from mate_tf.training.config import ClassifyConfig, save_config
    from mate_tf.training.loop import train

    of_task: Any = classification if isinstance(config, ClassifyConfig) else table_qa
    of_task.check_data(config, data_dir)
    keras.utils.set_random_seed(config.seed)
    with tf.distribute.get_strategy().scope():
        model = of_task.build_model(config)
        if init_checkpoint and tf.train.latest_checkpoint(model_dir) is None:
            load_initial_weights(model, init_checkpoint)
        task = of_task.make_task(config, data_dir, model)
        # Only now: a run that was refused leaves no folder behind.
        save_config(config, model_dir)
        shutil.copyfile(data_dir / "vocab.txt", model_dir / "vocab.txt")
        logging.info("config: %s", json.dumps(asdict(config)))
        return train(task, config, model_dir)


def main(argv: list[str]) -> None:
    from mate_tf.training.overrides import apply_overrides

    config = apply_overrides(load_preset(_CONFIG.value), argv[1:])
    data_dir, model_dir = pathlib.Path(_DATA_DIR.value), pathlib.Path(_MODEL_DIR.value)
    finetune(config, data_dir, model_dir, _INIT_CHECKPOINT.value)


def parse_flags(arguments: list[str]) -> list[str]:
    """Lets absl parse its flags and returns the rest: the program and the config's overrides."""
    from mate_tf.training.overrides import split_arguments

    flags.FLAGS.set_default("verbosity", logging.INFO)
    others, overrides = split_arguments(arguments)
    return app.parse_flags_with_usage(others) + overrides


if __name__ == "__main__":
    terminal.run(main, flags_parser=parse_flags)
