"""mate-tf train: records become a run, from the model that comes with the package or others."""

import argparse
import pathlib
from typing import Any

from mate_tf.command_line import arguments
from mate_tf.command_line.arguments import say

HELP = "train a model on records"
DESCRIPTION = """\
Trains a model on records that `mate-tf data` made, and evaluates it meanwhile:
pip install 'mate_tf[train]'.

Without --config it takes the starting point that fits the records: table_questions, classification,
span_reading or masked_words. A starting point trains the small model that comes with the package,
from its weights unless --init-checkpoint says otherwise; then questions of the kinds that it knows
are mixed in (--config.known_share=0 for none), and the weights are averaged with its own. The start
is evaluated first, and kept where nothing is better. --config may also name a run, which is
made again with the same data and first weights unless told otherwise, or a .py file with CONFIG, a
config of mate_tf.training.config. In a checkout of the project it may be a preset of
experiments/configs too, whose docstrings say how long each takes and what to expect.

Every value can be changed: --config.learning_rate=1e-4, --config.num_steps=400,
--config.encoder.attention.bucket_size=64; an unknown key lists the known ones. --architecture is
applied before the values are changed.

--model-dir takes all of the run: the config (config.json), which data and first weights were used
(inputs.json), the vocabulary, how the records were made (conversion.json), checkpoints, in best the
weights of the best evaluation, TensorBoard summaries (train, dev), and for each evaluation a line
of evaluations.jsonl, its confusions and first answers (evaluations/). The evaluations are printed
at the end. Started again with the same arguments, or with --config and --model-dir naming the run,
training goes on from the latest checkpoint, to the same weights as without the interruption.

The batch size is that of all devices together. Except for dropout, the result does not depend on
their number.
"""
EPILOG = """\
examples:
  mate-tf train --data-dir=my_data --model-dir=my_run
  mate-tf train --data-dir=my_data --model-dir=my_run --config.num_steps=400
  mate-tf train --config=my_run --model-dir=my_run        (goes on, or does nothing if it is done)
  mate-tf ask my_table.csv "my question" --model=my_run
"""
RANDOM = "none"
_MOST_CALIBRATED = 1_000  # questions


def add_arguments(parser: Any) -> None:
    """Adds what the command takes."""
    arguments.add(
        parser,
        """
        --data-dir=FOLDER  folder of records that mate-tf data wrote; by default that of the run in
            --config
        --model-dir=FOLDER  folder of the run; goes on if one was interrupted there
        --config=CONFIG  what is trained, and how: table_questions, classification, span_reading or
            masked_words, the folder of a run, a .py file with CONFIG, or a preset of
            experiments/configs; by default what fits the records; change its values with
            --config.KEY=VALUE
        --architecture=NAME  a paper's architecture in place of the config's, such as mate, sat,
            linformer_256 or tableformer_pcp: a name of mate_tf/presets.py
        --init-checkpoint=WEIGHTS  weights to start from: a Hugging Face folder (config.json,
            model.safetensors) of BERT or TAPAS, or its name on the Hub, such as google/tapas-base;
            the prefix or folder of a TF1 checkpoint of BERT, TAPAS or MATE; the folder of another
            run; none for random ones; by default the model that comes with the package for a
            starting point, a run's own for a run, and random ones for others
        --init-revision=REVISION  commit, branch or tag of an --init-checkpoint on the Hub, such as
            no_reset; a commit is what no one can change
        --reset-heads  take only the encoder from --init-checkpoint and start all heads anew, as for
            another number of classes
        --skip-corrupt  pass over damaged records, with a warning that counts them, instead of
            stopping at them
        """,
        defaults=dict(reset_heads=None),
        required=["model_dir"],
    )
    arguments.add_training_devices(parser)
    parser.set_defaults(overrides=[], program="train")


def run(options: argparse.Namespace) -> None:
    """Trains as the options say, and prints the run's evaluations."""
    from mate_tf.evaluation.predictions import evaluations_table
    from mate_tf.paths import as_path
    from mate_tf.serving.onnx_graph import add_graph
    from mate_tf.training.config import TableQATrainingConfig
    from mate_tf.training.distribution import is_chief
    from mate_tf.training.examples import expected_seconds
    from mate_tf.training.loop import read_evaluations
    from mate_tf.training.run import train_run
    from mate_tf.training.starting_points import changed, check_kind

    use_inputs_of_run(options)
    config = _config(options)
    check_kind(config, options.config, options.program)
    skip = ["--config.skip_corrupt=true"] if options.skip_corrupt else []
    overrides = [*options.overrides, *skip]
    config = changed(config, options.architecture, overrides)
    data_dir, model_dir = as_path(options.data_dir), as_path(options.model_dir)
    load_options = load_options_of(options)

    def say_how_long() -> None:
        minutes = expected_seconds(config, data_dir) / 60
        about = f"{minutes:.0f} minutes" if minutes >= 1.5 else "a minute"
        say(f"{config.num_steps} steps of {config.batch_size} examples: about {about} here")

    with arguments.make_strategy(options).scope():
        start = options.init_checkpoint
        train_run(config, data_dir, model_dir, start, on_begin=say_how_long, **load_options)
        if is_chief():
            say(evaluations_table(read_evaluations(model_dir)).rstrip("\n"))
            if isinstance(config, TableQATrainingConfig):
                if reason := add_graph(model_dir):
                    say(f"answers: by TensorFlow, for there is no model.onnx: {reason}")
                if start is not None:
                    _calibrate(model_dir, data_dir, start)


def _calibrate(model_dir: pathlib.Path, data_dir: pathlib.Path, start: str) -> None:
    """Stores the first weights' calibration, fitted again to the dev split, with the best ones.

    Nothing is done where the first weights have none, or the best ones have one.
    """
    from mate_tf.evaluation.predictions import read_asked
    from mate_tf.evaluation.scoring import calibrate, observe
    from mate_tf.records.conversion_file import read_conversion
    from mate_tf.records.splits import has_questions
    from mate_tf.serving.loading import from_pretrained
    from mate_tf.tables.part_of_speech import load_tagger
    from mate_tf.weights.folder import read_calibration, write_calibration

    calibration = read_calibration(start)
    if calibration is None or read_calibration(model_dir) is not None:
        return
    if has_questions(data_dir, "dev"):
        asked = read_asked(data_dir / "dev.jsonl", limit=_MOST_CALIBRATED)
        name = read_conversion(model_dir).tagger
        tagger = load_tagger(name) if name else None
        predictor = from_pretrained(model_dir, tagger=tagger, calibrated=False, num_alternatives=1)
        observed = observe(arguments.answers(predictor, asked), asked.task)
        calibration = calibrate([observed], start=calibration)
        say(f"scores: calibrated on {len(observed.scores)} questions of dev, as those of the start")
    write_calibration(model_dir, calibration)


def _config(options: argparse.Namespace) -> Any:
    """The config before it is changed; sets its name, and the first weights, if none are given."""
    from mate_tf.training.starting_points import (
        STARTING_POINTS,
        find_config,
        fitted,
        fitting_starting_point,
    )
    from mate_tf.weights.folder import DEFAULT_MODEL

    if options.config is None:
        options.config, reason = fitting_starting_point(options.data_dir)
        say(f"config: {options.config}, because {reason} (--config changes it)")
    is_starting_point = options.config in STARTING_POINTS
    if is_starting_point and options.init_checkpoint is None:
        options.init_checkpoint = str(DEFAULT_MODEL)
        say("start: the model that comes with the package (--init-checkpoint changes it)")
    if options.init_checkpoint == RANDOM:
        options.init_checkpoint = None
    if is_starting_point:
        return fitted(
            options.config, options.data_dir, options.init_checkpoint == str(DEFAULT_MODEL)
        )
    return find_config(options.config)


def load_options_of(options: argparse.Namespace) -> dict[str, Any]:
    """How first weights are loaded; ValueError if there are none to load."""
    more = {"revision": options.init_revision, "reset_heads": bool(options.reset_heads)}
    if any(more.values()) and not options.init_checkpoint:
        raise ValueError("expected --init-revision and --reset-heads with --init-checkpoint alone")
    return more


def use_inputs_of_run(options: argparse.Namespace) -> None:
    """Sets data and first weights that are not given to those of the run in --config.

    FileNotFoundError if the run does not say what it was made from; ValueError if there is no data,
    and the config is no run.
    """
    from mate_tf.training.run import load_inputs
    from mate_tf.training.starting_points import run_folder

    folder = None if options.config is None else run_folder(options.config)
    if folder is None and options.data_dir is None:
        raise ValueError("expected --data-dir, the folder of records to train on, got none")
    if folder is None or None not in (options.data_dir, options.init_checkpoint):
        return
    inputs = load_inputs(folder)
    names = ["data_dir"]
    if options.init_checkpoint is None:
        names += ["init_checkpoint", "init_revision", "reset_heads"]
    for name in names:
        if getattr(options, name) is None:
            setattr(options, name, getattr(inputs, name))
