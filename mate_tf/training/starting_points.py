"""Configs to train with, by name: those that come with the package, those of runs and of files.

STARTING_POINTS train, from the package's model or from scratch, on a folder of records that
`mate-tf data` made. Their values are those that this model was trained with.
"""

import dataclasses
import functools
import inspect
import itertools
import math
import pathlib
import runpy
from collections.abc import Callable
from typing import Any

from mate_tf.config import EncoderConfig, LinformerConfig
from mate_tf.dataclass_json import PREFIX, apply_overrides
from mate_tf.datasets.tasks import TASKS
from mate_tf.paths import as_path
from mate_tf.presets import with_architecture
from mate_tf.records.conversion_file import has_conversion, read_conversion
from mate_tf.records.splits import has_questions, read_questions
from mate_tf.tables.operators import operators_by_id
from mate_tf.task_configs import (
    ClassificationConfig,
    MaskedLMConfig,
    SpanReadingConfig,
    TableQAConfig,
)
from mate_tf.training.config import (
    ClassificationTrainingConfig,
    MaskedLMTrainingConfig,
    RunConfig,
    SpanReadingTrainingConfig,
    TableQATrainingConfig,
    TrainingConfig,
)
from mate_tf.training.run import load_config

# The sizes of all-MiniLM-L6-v2; every pair that MATE's pattern allows, with biases for the rows
# above and below; and positions that restart in each cell, so that a table may be longer than the
# 512 tokens that MiniLM knows.
ENCODER = with_architecture(
    EncoderConfig(
        hidden_size=384,
        num_layers=6,
        num_heads=12,
        intermediate_size=1536,
        activation="gelu",
        # Few epochs need no dropout.
        hidden_dropout=0.0,
        attention_dropout=0.0,
        position="per_cell",
        # All-MiniLM's word embeddings are no larger than 0.06: new type embeddings at BERT's 0.02
        # would drown them at first.
        initializer_range=0.004,
    ),
    "mate_neighbours",
)
_SHARED: dict[str, Any] = dict(
    encoder=ENCODER,
    max_seq_length=512,
    length_buckets=(128, 192, 256, 384),
    batch_size=16,
    warmup_ratio=0.05,
    dtype="mixed_bfloat16",
    eval_batch_size=16,
    checkpoint_interval=100,
)
STARTING_POINTS: dict[str, Any] = {
    "table_questions": TableQATrainingConfig(
        # TAPAS's values for WTQ, but for the temperature and the preference, which it tuned to
        # training a thousand times as long. They matter only where the operator is not known.
        task=TableQAConfig(
            operators=operators_by_id(),
            plain_answers=True,
            init_cell_selection_weights_to_zero=True,
            temperature=0.1,
            cell_select_pref=0.3,
            answer_loss_cutoff=0.664694,
            huber_loss_delta=0.121194,
            output_dropout=0.0,
        ),
        num_steps=1_200,
        learning_rate=5e-5,
        head_learning_rate_ratio=2.0,
        eval_questions=400,
        # At the end alone: half-way it answers as much, but its scores tell less.
        eval_interval=1_200,
        **_SHARED
        | {"max_seq_length": 2048, "length_buckets": (128, 192, 256, 384, 512, 768, 1024)},
    ),
    "classification": ClassificationTrainingConfig(
        task=ClassificationConfig(output_dropout=0.0),
        num_steps=800,
        # At three times this rate all tokens become alike before anything is learned.
        learning_rate=2e-5,
        head_learning_rate_ratio=5.0,
        eval_interval=200,
        **_SHARED,
    ),
    "span_reading": SpanReadingTrainingConfig(
        task=SpanReadingConfig(max_span_length=10, hidden_size=384, output_dropout=0.0),
        num_steps=400,
        learning_rate=5e-5,
        head_learning_rate_ratio=5.0,
        eval_interval=200,
        **_SHARED,
    ),
    "masked_words": MaskedLMTrainingConfig(
        task=MaskedLMConfig(),
        num_steps=1_200,
        learning_rate=2e-4,
        # The head that predicts words is new, and so is the pooler's task.
        head_learning_rate_ratio=5.0,
        eval_examples=1_000,
        eval_interval=400,
        **_SHARED | {"max_seq_length": 128, "length_buckets": (), "eval_batch_size": 32},
    ),
}
_NUM_EVALUATIONS = 4  # of training on table questions, beside that of the start
_LEARNED = 0.01  # a loss that nothing is left to learn from
_KNOWN_SHARE = 0.5
# Of the package's weights in the averaged ones at the end: a mean with the first weights knows
# nearly as much that is new, and forgets less (Wortsman et al., 2022).
_START_LEFT = 0.3
_MANY_QUESTIONS = 10_000  # what the starting points' numbers of steps are for
_CHECKOUT = pathlib.Path(__file__).resolve().parents[2]


@functools.cache
def presets() -> dict[str, Any]:
    """The configs that a checkout has beside them, by name."""
    return {name: preset() for name, preset in preset_functions().items()}


@functools.cache
def preset_functions() -> dict[str, Callable[[], Any]]:
    """The functions without arguments of experiments/configs, whose docstrings are lab books."""
    files = sorted(_CHECKOUT.glob("experiments/configs/*.py"))
    return {
        name: value
        for file in files
        for name, value in runpy.run_path(str(file), run_name="presets").items()
        if getattr(value, "__module__", "") == "presets" and not inspect.signature(value).parameters
    }


def fitting_starting_point(data_dir: str | pathlib.Path) -> tuple[str, str]:
    """The starting point that fits a folder of records, by its conversion.json, and why."""
    conversion = read_conversion(data_dir)
    if conversion.pretraining is not None:
        return "masked_words", "the records have masked words"
    if conversion.features.label_answer_spans:
        return "span_reading", "the records label the answers' texts"
    if conversion.task in TASKS and not TASKS[conversion.task].has_tables:
        return "classification", "the records are of sentences"
    if has_questions(data_dir, "train"):
        _, question = next(read_questions(data_dir, "train"))
        if question.class_index is not None and not question.answers:
            return "classification", "the questions have a class_index"
    return "table_questions", "the records are of questions about tables"


def run_folder(name: str) -> pathlib.Path | None:
    """The folder of the run that a config is named by, itself or its config.json; or None."""
    path = as_path(name)
    folder = path.parent if path.name == "config.json" else path
    is_run = name not in STARTING_POINTS and name not in presets()
    return folder if is_run and (folder / "config.json").is_file() else None


def find_config(name: str) -> Any:
    """The config of a starting point, a run's folder or config.json, or a .py file with CONFIG.

    Or, in a checkout of the project, a preset in experiments/configs. FileNotFoundError if there is
    no such file; ValueError if there is no such config, or the file has none.
    """
    known = STARTING_POINTS | presets()
    if name in known:
        return known[name]
    if (folder := run_folder(name)) is not None:
        return load_config(folder)
    if not name.endswith(".py"):
        raise ValueError(
            f"expected --config to be one of {', '.join(known)}; a run's folder, or a .py file "
            f"with CONFIG; got {name!r}"
        )
    if not pathlib.Path(name).is_file():
        raise FileNotFoundError(f"expected a file with CONFIG at {name!r}, found none")
    config = runpy.run_path(name).get("CONFIG")
    if not isinstance(config, TrainingConfig) and not hasattr(config, "point"):
        raise ValueError(
            f"expected CONFIG in {name} to be a config of mate_tf.training.config, got {config!r}"
        )
    return config


def fitted(name: str, data_dir: str | pathlib.Path, from_default: bool = True) -> RunConfig:
    """A starting point with the steps, length and number of classes that fit a folder's records.

    Fewer than 10,000 training questions take fewer steps, in proportion to their number to the
    power of 0.6, and at least 40. From the package's model, `from_default`, as many again learn
    from known questions, and the weights are averaged with its own. A folder that does not say how
    it was made leaves the starting point as it is.
    """
    config = STARTING_POINTS[name]
    if not has_conversion(data_dir):
        return config
    conversion = read_conversion(data_dir)
    changes: dict[str, Any] = {}
    if conversion.pretraining is None and has_questions(data_dir, "train"):
        is_classifier = isinstance(config, ClassificationTrainingConfig)
        read = read_questions(data_dir, "train")
        most = None if is_classifier else _MANY_QUESTIONS
        classes = [question.class_index or 0 for _, question in itertools.islice(read, most)]
        share = min(len(classes) / _MANY_QUESTIONS, 1.0)
        num_steps = max(round(config.num_steps * share**0.6), 40)
        changes = dict(num_steps=num_steps, eval_interval=min(config.eval_interval, num_steps))
        if isinstance(config, TableQATrainingConfig):
            known_share = _KNOWN_SHARE if from_default else 0.0
            num_steps = round(num_steps / (1 - known_share))
            dev = read_questions(data_dir, "dev") if has_questions(data_dir, "dev") else iter(())
            num_dev = sum(1 for _ in itertools.islice(dev, config.eval_questions))
            changes = dict(
                num_steps=num_steps,
                eval_interval=math.ceil(num_steps / _NUM_EVALUATIONS),
                early_stopping_loss=_LEARNED,
                # The standard error of an accuracy of a half.
                start_tolerance=0.5 / math.sqrt(max(num_dev, 1)),
                known_share=known_share,
                ema_decay=_START_LEFT ** (1 / num_steps) if from_default else None,
            )
        if is_classifier:
            classes += [q.class_index or 0 for _, q in read_questions(data_dir, "dev")]
            task = dataclasses.replace(config.task, num_classes=max(2, 1 + max(classes)))
            changes["task"] = task
    length = conversion.features.max_seq_length
    if length is not None:
        buckets = tuple(bucket for bucket in config.length_buckets if bucket < length)
        changes |= {"max_seq_length": length, "length_buckets": buckets}
    return dataclasses.replace(config, **changes)


def make_config(name: str, architecture: str | None, overrides: list[str]) -> Any:
    """A config of `find_config` with an architecture of mate_tf/presets.py and changed values."""
    return changed(find_config(name), architecture, overrides)


def changed(config: Any, architecture: str | None, overrides: list[str]) -> Any:
    """A config, or of a PointR its pointer, with an architecture, if any, and changed values."""
    if architecture is None:
        return apply_overrides(config, overrides)
    # Of a PointR, the stage that reads tables.
    stage, prefix = (config.point, "point.") if hasattr(config, "point") else (config, "")
    encoder = with_architecture(stage.encoder, architecture)
    changes: dict[str, Any] = {"encoder": encoder}
    if isinstance(encoder.attention, LinformerConfig):
        # A Linformer takes sequences of one length: that of the records, also if it is overridden.
        attention = dataclasses.replace(encoder.attention, sequence_length=stage.max_seq_length)
        encoder = dataclasses.replace(encoder, attention=attention)
        changes = {"encoder": encoder, "length_buckets": ()}
        is_length = f"{PREFIX}{prefix}max_seq_length="
        lengths = [one for one in overrides if one.startswith(is_length)]
        its = "encoder.attention.sequence_length"
        overrides = [*(one.replace("max_seq_length", its, 1) for one in lengths), *overrides]
    if prefix:
        changes = {"point": dataclasses.replace(stage, **changes)}
    return apply_overrides(config, overrides, **changes)


def check_kind(config: Any, name: str, program: str) -> None:
    """ValueError for a config that "finetune", "pretrain", "pointr" or "train" does not train."""
    is_pointr = hasattr(config, "point")
    if is_pointr and program != "pointr":
        raise ValueError(
            f"expected a config of one model, got {name} with the two stages of a PointR, which "
            "mate_tf.pointr.pipeline.Pipeline trains"
        )
    kind = "pretrain" if isinstance(config, MaskedLMTrainingConfig) else "finetune"
    if not is_pointr and program not in (kind, "train"):
        raise ValueError(
            f"expected a preset that this program trains, got {name}; "
            f"`mate-tf train --config={name}` trains it"
        )
