"""Trains a PointR on tables with passages, and answers with it: points to a cell, then reads it.

    python -m experiments.pointr --config=pointr_minilm --input_dir=HybridQA \\
        --output_dir=out/pointr --vocab_file=minilm/vocab.txt --point_checkpoint=minilm \\
        --read_checkpoint=minilm

--stage=all does one after the other. Started again after an interruption, trainings go on; records
and answers are made again:

    create    the pointer's records: cells get the sentences of their passages that are most like
              the question, answers are looked for in cells and passages. Says how many of them
              stand where, and what had to be cut or left out.
    clozes    trains the reader on sentences of passages that lack a name or a number, if the config
              says so; they need no questions. It may be done before or after "point".
    point     trains the pointer and exports it.
    read      points to a cell for each question, trains the reader on those of the training split
              (the best cell of those that hold the answer) and exports it.
    evaluate  answers the questions of --eval_splits with both and scores them, in total, in-table
              and in-passage.

The input is HybridQA's release or, with --task=LINKED_JSONL, one's own tables and passages
(docs/training.md). A config is a preset of experiments/configs named pointr_...; every value
can be changed: --config.point.num_steps=1000, --config.inputs.evidence=table. --architecture=sat
replaces the pointer's attention.

--output_dir takes point_data, clozes_data and read_data (records), point, clozes and read (runs,
as of experiments/finetune.py), model (both exported; mate_tf.pointr.answering.load_pointr answers
with it) and answers: {split}.json in the format of HybridQA's evaluation, {split}.jsonl with cells
and scores, {split}.md with the scores.
"""

import pathlib

from absl import flags

from experiments import program
from mate_tf.command_line import arguments
from mate_tf.command_line.arguments import say
from mate_tf.datasets.tasks import TASKS

_DEVICES = program.define_flags(arguments.add_training_devices)
_CONFIG = flags.DEFINE_string(
    "config",
    None,
    "name of a preset pointr_... of experiments/configs; change its values with --config.KEY=VALUE",
    required=True,
)
_ARCHITECTURE = flags.DEFINE_string(
    "architecture", None, "a name of mate_tf/presets.py: replaces the pointer's architecture"
)
_STAGE = flags.DEFINE_enum(
    "stage", "all", ["all", "create", "clozes", "point", "read", "evaluate"], "what to do"
)
_LINKED = [name for name, task in TASKS.items() if task.is_linked]
_TASK = flags.DEFINE_enum("task", "HYBRIDQA", _LINKED, "what the input is")
_INPUT = flags.DEFINE_string("input_dir", None, "folder with the data set", required=True)
_OUTPUT = flags.DEFINE_string("output_dir", None, "folder to write to", required=True)
_VOCAB = flags.DEFINE_string("vocab_file", None, "BERT's or TAPAS's vocabulary", required=True)
_POINT_CHECKPOINT = flags.DEFINE_string(
    "point_checkpoint",
    None,
    "the encoder's weights that the pointer starts from, as experiments/finetune.py takes them; "
    "without it, random ones",
)
_READ_CHECKPOINT = flags.DEFINE_string("read_checkpoint", None, "the same of the reader")
_TRAIN = flags.DEFINE_string("train_split", "train", "the split to train on")
_DEV = flags.DEFINE_string("dev_split", "dev", "the split that says which weights are the best")
_EVAL = flags.DEFINE_list("eval_splits", None, "the splits to answer; without it, --dev_split")


def splits_of_source() -> tuple[dict[str, str], list[str]]:
    """The input's names of the splits "train", "dev" and others, and which of them are answered."""
    splits, answered = {"train": _TRAIN.value, "dev": _DEV.value}, []
    for split in _EVAL.value or [_DEV.value]:
        name = "dev" if split == _DEV.value else split
        if splits.setdefault(name, split) != split:
            raise ValueError(
                f"expected --eval_splits with names of their own, got '{split}', as which "
                f"'{splits[name]}' is trained on"
            )
        answered.append(name)
    return splits, answered


def main(argv: list[str]) -> None:
    from mate_tf.pointr.pipeline import Pipeline, Source
    from mate_tf.training.distribution import workers_of_environment
    from mate_tf.training.starting_points import check_kind, make_config

    config = make_config(_CONFIG.value, _ARCHITECTURE.value, argv[1:])
    check_kind(config, _CONFIG.value, "pointr")
    devices = _DEVICES()

    splits, answered = splits_of_source()
    is_several = devices.distribution_strategy == "multi_worker_mirrored"
    if is_several or devices.worker_hosts or len(workers_of_environment()) > 1:
        raise ValueError(
            "expected the devices of one machine, got several workers; on several machines "
            "experiments/finetune.py trains a stage, with the records that --stage=create makes"
        )
    pipeline = Pipeline(
        config,
        Source(_TASK.value, _INPUT.value, splits),
        _VOCAB.value,
        pathlib.Path(_OUTPUT.value),
        lambda items, name: arguments.with_progress(items, name, "question"),
        arguments.make_strategy(devices).scope,
    )
    stages = {
        "create": pipeline.create,
        "clozes": lambda: pipeline.clozes(_READ_CHECKPOINT.value),
        "point": lambda: pipeline.point(_POINT_CHECKPOINT.value),
        "read": lambda: pipeline.read(_READ_CHECKPOINT.value),
        "evaluate": lambda: "\n".join(map(pipeline.evaluate, answered)),
    }
    for stage in stages if _STAGE.value == "all" else [_STAGE.value]:
        say(stages[stage]())


if __name__ == "__main__":
    program.run(main, trains=True)
