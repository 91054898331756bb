"""The tasks, in one table: of each its options, model, loss, decoding, metrics and training.

Parts are named, not imported, so that any room can look them up: the first use imports one.
"""

import dataclasses
import importlib
from collections.abc import Callable
from typing import Any


@dataclasses.dataclass(frozen=True)
class TaskSpec:
    """The parts of a task, each by the dotted name of its module and its name in it.

    Attributes:
        name: what configs and exported folders call the task.
        config: the class of its options, a frozen dataclass.
        model: the Keras model, made from an encoder's config and the options.
        loss: the model's loss, from a batch and the model's outputs.
        training_config: the class of a training run's config.
        check_data: raises ValueError for a folder of records that the model cannot learn from.
        metrics: measures the model on the dev split while it trains.
        decode: reads answers off the model's outputs; None for a task that answers nothing.
        outputs: the outputs that `decode` reads; a model may lack some of them.
        needs_tables: whether it answers from a table only, and takes no sentence alone.
    """

    name: str
    config: str
    model: str
    loss: str
    training_config: str
    check_data: str
    metrics: str
    decode: str | None = None
    outputs: tuple[str, ...] = ()
    needs_tables: bool = False

    @property
    def config_class(self) -> type[Any]:
        return _imported(self.config)

    @property
    def model_class(self) -> Callable[..., Any]:
        return _imported(self.model)

    @property
    def training_config_class(self) -> type[Any]:
        return _imported(self.training_config)

    def function(self, part: str) -> Callable[..., Any]:
        """The function of "loss", "check_data", "metrics" or "decode"."""
        return _imported(getattr(self, part))


def _imported(name: str) -> Any:
    module, _, names = name.partition(":")
    found = importlib.import_module(module)
    for part in names.split("."):
        found = getattr(found, part)
    return found


def _task(name: str, config: str, model: str, training: str, **answering: Any) -> TaskSpec:
    models, trainer = f"mate_tf.models.{name}", f"mate_tf.training.{name}"
    return TaskSpec(
        name=name,
        config=f"{models}:{config}",
        model=f"{models}:{model}",
        loss=f"{models}:{model}.compute_task_loss",
        training_config=f"mate_tf.training.config:{training}",
        check_data=f"{trainer}:check_data",
        metrics=f"{trainer}:dev_evaluation",
        **answering,
    )


TASKS: dict[str, TaskSpec] = {
    task.name: task
    for task in (
        _task(
            "table_qa",
            "TableQAConfig",
            "TableQuestionAnswering",
            "TableQATrainingConfig",
            decode="mate_tf.answers.decoding:decode_cells",
            outputs=("token_probabilities", "aggregation_logits", "column_logits", "token_logits"),
            needs_tables=True,
        ),
        _task(
            "classification",
            "ClassificationConfig",
            "SequenceClassification",
            "ClassificationTrainingConfig",
            decode="mate_tf.answers.decoding:decode_classes",
            outputs=("class_logits",),
        ),
        _task(
            "span_reading",
            "SpanReadingConfig",
            "SpanReading",
            "SpanReadingTrainingConfig",
            decode="mate_tf.answers.decoding:decode_spans",
            outputs=("span_logits", "class_logits"),
            needs_tables=True,
        ),
        _task("masked_lm", "MaskedLMConfig", "MaskedLanguageModel", "MaskedLMTrainingConfig"),
    )
}
ANSWERING = tuple(name for name, task in TASKS.items() if task.decode is not None)


def task_of(config: Any) -> TaskSpec:
    """The task with these options; ValueError where there is none."""
    kind = type(config)
    for task in TASKS.values():
        if task.config == f"{kind.__module__}:{kind.__qualname__}":
            return task
    raise ValueError(f"expected the options of a task ({', '.join(TASKS)}), got {kind.__name__}")


def answering_task(config: Any) -> TaskSpec:
    """The same for a model that answers; ValueError for one that does not."""
    task = task_of(config)
    if task.decode is None:
        raise ValueError(
            f"expected a model that answers ({', '.join(ANSWERING)}), got one for {task.name}; "
            "fine-tune it first"
        )
    return task


def model_of(encoder_config: Any, task_config: Any, dtype: str = "float32") -> Any:
    """A task's model with its first weights.

    Args:
        encoder_config: an `EncoderConfig`.
        task_config: the task's options.
        dtype: the Keras policy to compute in, such as "mixed_bfloat16".
    """
    model = task_of(task_config).model_class(encoder_config, task_config, dtype=dtype)
    model.build()
    return model
