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
evaluations.jsonl and its confusions and first answers (evaluations/). At the end the evaluations
are printed as a table. Started again with the same arguments, or with --config and --model_dir
naming the run, training goes on from the latest checkpoint, to the same weights as without the
interruption.

It trains on one device, or as --distribution_strategy says; the batch size is that of all devices
together, and but for dropout what comes out does not depend on their number.
"""

import pathlib
import typing

from absl import flags

from experiments import strategy_flags, terminal
from experiments.config_files import check_kind, make_config, parse_flags, run_folder

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
    from mate_tf.training.run import load_inputs

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


def train_as_told(argv: list[str], program: str) -> None:
    """Trains as the flags say, and prints the run's evaluations.

    Args:
        argv: the program and the config's overrides.
        program: "finetune" or "pretrain".

    Raises:
        ValueError: if the config is of another kind, and as `train_run`.
    """
    from mate_tf.evaluation.markdown import evaluations_table
    from mate_tf.training.distribution import is_chief
    from mate_tf.training.loop import read_evaluations
    from mate_tf.training.run import train_run

    overrides = [*argv[1:], *(["--config.skip_corrupt=true"] if _SKIP_CORRUPT.value else [])]
    config = make_config(_CONFIG.value, _ARCHITECTURE.value, overrides)
    check_kind(config, _CONFIG.value, program)
    use_inputs_of_run(_CONFIG.value)
    for flag in (_DATA_DIR, _MODEL_DIR):
        if "://" in flag.value:
            raise ValueError(f"expected a folder, mounted here, as --{flag.name}, got {flag.value}")
    data_dir, model_dir = pathlib.Path(_DATA_DIR.value), pathlib.Path(_MODEL_DIR.value)
    options = load_options()
    with strategy_flags.make_strategy().scope():
        train_run(config, data_dir, model_dir, _INIT_CHECKPOINT.value, **options)
        if is_chief():
            print(evaluations_table(read_evaluations(model_dir)), end="")


def main(argv: list[str]) -> None:
    train_as_told(argv, "finetune")


if __name__ == "__main__":
    terminal.run(main, flags_parser=parse_flags)
