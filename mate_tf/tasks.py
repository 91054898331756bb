"""The tasks, in one table: of each its options, model, training, decoding and metrics.

Parts are named, not imported, so that any room can look them up: the first use imports one.
"""

import dataclasses
import importlib
from collections.abc import Callable
from typing import Any


@dataclasses.dataclass(frozen=True)
class TaskSpec:
    """The parts of a task, by their names in mate_tf/models/NAME.py and mate_tf/training."""

    name: str  # what configs and exported folders call the task
    prefix: str  # PREFIXConfig are its options, PREFIXTrainingConfig a training run's config
    model: str  # the Keras model, made from an encoder's config and the options
    decode: str | None = None  # in mate_tf/answers, reads the outputs; None where there are none
    outputs: tuple[str, ...] = ()  # what it reads; a model may lack some of them
    needs_tables: bool = False  # whether it answers from a table only, and takes no sentence alone
    measures: str = "measures"  # where in mate_tf/training its checks and its evaluation are

    @property
    def config_class(self) -> type[Any]:
        return self._of(f"models.{self.name}", f"{self.prefix}Config")

    @property
    def model_class(self) -> Callable[..., Any]:
        return self._of(f"models.{self.name}", self.model)

    @property
    def training_config_class(self) -> type[Any]:
        return self._of("training.config", f"{self.prefix}TrainingConfig")

    @property
    def check_data(self) -> Callable[..., None]:
        """Raises ValueError for a folder of records that the model cannot learn from."""
        return self._of(f"training.{self.measures}", f"check_{self.name}")

    @property
    def dev_evaluation(self) -> Callable[..., Any]:
        """Makes what measures the model on the dev split while it trains."""
        return self._of(f"training.{self.measures}", f"{self.name}_evaluation")

    @property
    def decode_function(self) -> Callable[..., Any]:
        module, _, name = str(self.decode).partition(".")
        return self._of(f"answers.{module}", name)

    def _of(self, module: str, name: str) -> Any:
        return getattr(importlib.import_module(f"mate_tf.{module}"), name)


TASKS: dict[str, TaskSpec] = {
    task.name: task
    for task in (
        TaskSpec(
            "table_qa",
            "TableQA",
            "TableQuestionAnswering",
            "decoding.decode_cells",
            ("token_probabilities", "aggregation_logits", "column_logits", "token_logits"),
            needs_tables=True,
            measures="table_qa",
        ),
        TaskSpec(
            "classification",
            "Classification",
            "SequenceClassification",
            "spans.decode_classes",
            ("class_logits",),
        ),
        TaskSpec(
            "span_reading",
            "SpanReading",
            "SpanReading",
            "spans.decode_spans",
            ("span_logits", "class_logits"),
            needs_tables=True,
        ),
        TaskSpec("masked_lm", "MaskedLM", "MaskedLanguageModel"),
    )
}
ANSWERING = tuple(name for name, task in TASKS.items() if task.decode is not None)


def task_of(config: Any) -> TaskSpec:
    """The task with these options; ValueError where there is none."""
    kind = type(config)
    for task in TASKS.values():
        name = f"mate_tf.models.{task.name}.{task.prefix}Config"
        if f"{kind.__module__}.{kind.__qualname__}" == name:
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
    """A task's model with its first weights, from an `EncoderConfig` and the task's options.

    The dtype is the Keras policy to compute in, such as "mixed_bfloat16".
    """
    model = task_of(task_config).model_class(encoder_config, task_config, dtype=dtype)
    model.build()
    return model
