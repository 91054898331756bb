"""An encoder with a head and its loss; one file for each kind of model."""

from typing import Any

from mate_tf.config import EncoderConfig
from mate_tf.models.classification import SequenceClassification
from mate_tf.models.encoder_task import EncoderTask
from mate_tf.models.masked_lm import MaskedLanguageModel
from mate_tf.models.span_reading import SpanReading
from mate_tf.models.table_qa import TableQuestionAnswering
from mate_tf.task_configs import TaskConfig, model_kind

# By the kind that configs and exported folders name.
MODELS: dict[str, type[EncoderTask]] = {
    "table_qa": TableQuestionAnswering,
    "classification": SequenceClassification,
    "span_reading": SpanReading,
    "masked_lm": MaskedLanguageModel,
}


def make_model(
    encoder_config: EncoderConfig, task_config: TaskConfig, dtype: str = "float32"
) -> Any:
    """A model with its first weights; the dtype is a Keras policy, such as "mixed_bfloat16"."""
    return MODELS[model_kind(task_config)](encoder_config, task_config, dtype=dtype)


def register_keras_classes() -> None:
    """Registers all layers and models, so that Keras finds the classes of a `.keras` file itself.

    Example:
        mate_tf.register_keras_classes()
        model = keras.saving.load_model("model.keras")
    """
    # The imports of this file have done it.
