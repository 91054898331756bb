"""An encoder with a head and its loss; one file a task (mate_tf/tasks.py lists them)."""

import importlib

_OF_KERAS = (
    "layers.attention.kinds",
    "layers.attention.multi_view",
    "layers.encoder",
    "layers.basic",
    "models.classification",
    "models.masked_lm",
    "models.span_reading",
    "models.table_qa",
)


def register_keras_classes() -> None:
    """Registers all layers and models, so that Keras finds the classes of a `.keras` file itself.

    Example:
        mate_tf.register_keras_classes()
        model = keras.saving.load_model("model.keras")
    """
    for name in _OF_KERAS:
        importlib.import_module(f"mate_tf.{name}")
