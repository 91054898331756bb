"""Fine-tunes table question answering, a classifier or a reader, and evaluates it meanwhile.

    python -m experiments.finetune --config=wtq_minilm --data_dir=out/wtq_data \\
        --init_checkpoint=minilm --model_dir=out/wtq_minilm

A config is a preset of experiments/configs; each says what it is for, how long it takes and what
to expect. Or it is the folder of a run, which is made again, with the same data and first weights
unless told otherwise: --config=out/wtq_minilm --model_dir=out/again. Every value can be changed:
--config.learning_rate=1e-4, --config.encoder.num_layers=3,
--config.encoder.attention.bucket_size=64; an unknown key lists the known ones. --architecture
replaces the encoder's attention and embedded ids by those of a paper (mate_tf/presets.py), before
the values are changed; a Linformer then gets the length of the records, max_seq_length, as its
sequence_length, and no length_buckets.

--data_dir is a folder that experiments/create_data.py made. --model_dir takes the config
(config.json), which data and first weights were used (inputs.json), the vocabulary, how the records
were made (conversion.json), checkpoints, in best the weights of the best evaluation, which export
and further runs start from, TensorBoard summaries (train, dev), and for each evaluation a line of
evaluations.jsonl and its confusions and first answers (evaluations/). Started again with the same
arguments, or with --config and --model_dir naming the run, training goes on from the latest
checkpoint, to the same weights as without the interruption.

It trains on one device, or as --distribution_strategy says; the batch size is that of all devices
together, and but for dropout what comes out does not depend on their number.
"""

import json
import os
import pathlib
import shutil
import typing
from dataclasses import asdict

from absl import app, flags, logging

from experiments import strategy_flags, terminal
from experiments.config_files import make_config, run_folder

flags.adopt_module_key_flags(strategy_flags)

_CONFIG = flags.DEFINE_string(
    "config",
    None,
    "name of a preset: a file of experiments/configs without .py; or the folder of a run, to make "
    "again or to go on with; change its values with --config.KEY=VALUE",
    required=True,
)
_ARCHITECTURE = flags.DEFINE_string(
    "architecture",
    None,
    "a paper's architecture in place of the config's, such as mate, sat, linformer_256 or "
    "tableformer_pcp: a name of mate_tf/presets.py",
)
_DATA_DIR = flags.DEFINE_string(
    "data_dir",
    None,
    "folder of records that experiments/create_data.py wrote; without it, that of the run in "
    "--config",
)
_MODEL_DIR = flags.DEFINE_string(
    "model_dir", None, "folder of the run; goes on where one was interrupted", required=True
)
_INIT_CHECKPOINT = flags.DEFINE_string(
    "init_checkpoint",
    None,
    "weights to start from: a Hugging Face folder (config.json, model.safetensors) of BERT or "
    "TAPAS, or its name on the Hub, such as google/tapas-base; the prefix or folder of a TF1 "
    "checkpoint of BERT, TAPAS or MATE; the folder of another run; without it, random ones",
)
_INIT_REVISION = flags.DEFINE_string(
    "init_revision",
    None,
    "commit, branch or tag of an --init_checkpoint on the Hub, such as no_reset; a commit is what "
    "no one can change",
)
_RESET_HEADS = flags.DEFINE_bool(
    "reset_heads",
    False,
    "take only the encoder from --init_checkpoint and start all heads anew, as for another number "
    "of classes",
)
_SKIP_CORRUPT = flags.DEFINE_bool(
    "skip_corrupt",
    False,
    "pass over damaged records, with a warning that counts them, instead of stopping at them",
)


def finetune(
    config,
    data_dir: pathlib.Path,
    model_dir: pathlib.Path,
    init_checkpoint: str | None,
    **load_options,
) -> dict[str, float]:
    """Trains as the config says, or goes on where a run stopped; the last evaluation's metrics.

    Call it in the scope of the strategy to train with.
    """
    import keras
    import tensorflow as tf

    from mate_tf.tables.records import complete_file
    from mate_tf.tasks.kinds import kind_of
    from mate_tf.training.distribution import is_chief
    from mate_tf.training.examples import SPLITS, build_model, make_task, save_conversion
    from mate_tf.training.kinds import MODULES
    from mate_tf.training.loop import train
    from mate_tf.training.run_config import save_config
    from mate_tf.training.run_inputs import RunInputs, data_files, save_inputs
    from mate_tf.weights.initial import load_weights

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


def load_options() -> dict[str, typing.Any]:
    """How weights are loaded; ValueError where there are none to load."""
    options = {"revision": _INIT_REVISION.value, "reset_heads": _RESET_HEADS.value}
    if any(options.values()) and not _INIT_CHECKPOINT.value:
        raise ValueError("expected --init_revision and --reset_heads with --init_checkpoint alone")
    return options


def use_inputs_of_run(config: str) -> None:
    """Sets the flags of data and first weights that are not given to those of the run in --config.

    Raises:
        FileNotFoundError: if the run does not say what it was made from.
        ValueError: if there is no data: the config is a preset.
    """
    from mate_tf.training.run_inputs import load_inputs

    folder = run_folder(config)
    if folder is None:
        if _DATA_DIR.value is None:
            raise ValueError("expected --data_dir with a preset, got none")
        return
    if _DATA_DIR.present and _INIT_CHECKPOINT.present:
        return
    inputs = load_inputs(folder)
    if not _DATA_DIR.present:
        flags.FLAGS.data_dir = inputs.data_dir
    if not _INIT_CHECKPOINT.present:
        flags.FLAGS.init_checkpoint = inputs.init_checkpoint
        if not _INIT_REVISION.present:
            flags.FLAGS.init_revision = inputs.init_revision
        if not _RESET_HEADS.present:
            flags.FLAGS.reset_heads = inputs.reset_heads


def check_kind(config, kinds: tuple[type, ...], others: str) -> None:
    """Refuses with a ValueError a config of another kind, which another program trains."""
    if not isinstance(config, kinds):
        raise ValueError(
            f"expected a preset that this program trains, got {_CONFIG.value}; "
            f"experiments/{others}.py trains it"
        )


def train_as_told(argv: list[str], kinds: tuple[type, ...], others: str) -> None:
    """Trains as the flags say.

    Args:
        argv: the program and the config's overrides.
        kinds: of configs that the program trains.
        others: the program that trains those of other kinds.

    Raises:
        ValueError: if the config is of another kind, and as `finetune`.
    """
    overrides = [*argv[1:], *(["--config.skip_corrupt=true"] if _SKIP_CORRUPT.value else [])]
    config = make_config(_CONFIG.value, _ARCHITECTURE.value, overrides)
    check_kind(config, kinds, others)
    use_inputs_of_run(_CONFIG.value)
    for flag in (_DATA_DIR, _MODEL_DIR):
        if "://" in flag.value:
            raise ValueError(f"expected a folder, mounted here, as --{flag.name}, got {flag.value}")
    data_dir, model_dir = pathlib.Path(_DATA_DIR.value), pathlib.Path(_MODEL_DIR.value)
    options = load_options()
    with strategy_flags.make_strategy().scope():
        finetune(config, data_dir, model_dir, _INIT_CHECKPOINT.value, **options)


def main(argv: list[str]) -> None:
    from mate_tf.training.config import FinetuningConfig

    train_as_told(argv, typing.get_args(FinetuningConfig), "pretrain")


def parse_flags(arguments: list[str]) -> list[str]:
    """Lets absl parse its flags and returns the rest: the program and the config's overrides."""
    from mate_tf.training.overrides import split_arguments

    flags.FLAGS.set_default("verbosity", logging.INFO)
    others, overrides = split_arguments(arguments)
    return app.parse_flags_with_usage(others) + overrides


if __name__ == "__main__":
    terminal.run(main, flags_parser=parse_flags)
