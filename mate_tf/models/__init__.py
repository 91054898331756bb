"""An encoder with a head and its loss; one file a task (mate_tf/tasks.py lists them)."""

import importlib

from mate_tf.tasks import TASKS

_LAYERS = ("attention.kinds", "attention.multi_view", "encoder", "basic")


def register_keras_classes() -> None:
    """Registers all layers and models, so that Keras finds the classes of a `.keras` file itself.

    Example:
        mate_tf.register_keras_classes()
        model = keras.saving.load_model("model.keras")
    """
    for name in (*(f"layers.{name}" for name in _LAYERS), *(f"models.{name}" for name in TASKS)):
        importlib.import_module(f"mate_tf.{name}")
