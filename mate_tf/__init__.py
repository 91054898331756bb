"""MATE and its relatives on TensorFlow and Keras 3: ask questions of large tables.

Names are imported on first use, so that reading a table does not wait for TensorFlow.
"""

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_WHERE = {
    "Answer": "mate_tf.answers.answer",
    "AttentionConfig": "mate_tf.config",
    "EncoderConfig": "mate_tf.config",
    "MultiViewAttention": "mate_tf.layers.attention.kinds",
    "MultiViewEmbedding": "mate_tf.layers.attention.multi_view",
    "Predictor": "mate_tf.answers.predictor",
    "PretrainedPredictor": "mate_tf.serving.loading",
    "Question": "mate_tf.tables.table",
    "ReadOptions": "mate_tf.reading.files",
    "Table": "mate_tf.tables.table",
    "TableEncoder": "mate_tf.layers.encoder",
    "TokenFeatures": "mate_tf.features.token_features",
    "from_pretrained": "mate_tf.serving.loading",
    "multi_view_attention": "mate_tf.layers.attention.multi_view",
    "read_table": "mate_tf.reading.sources",
    "register_keras_classes": "mate_tf.models",
}
__all__ = sorted(_WHERE)

if TYPE_CHECKING:
    from mate_tf.answers.answer import Answer
    from mate_tf.answers.predictor import Predictor
    from mate_tf.config import AttentionConfig, EncoderConfig
    from mate_tf.features.token_features import TokenFeatures
    from mate_tf.layers.attention.kinds import MultiViewAttention
    from mate_tf.layers.attention.multi_view import MultiViewEmbedding, multi_view_attention
    from mate_tf.layers.encoder import TableEncoder
    from mate_tf.models import register_keras_classes
    from mate_tf.reading.files import ReadOptions
    from mate_tf.reading.sources import read_table
    from mate_tf.serving.loading import PretrainedPredictor, from_pretrained
    from mate_tf.tables.table import Question, Table


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    where = _WHERE[name]
    if where.startswith(("mate_tf.layers", "mate_tf.models")):
        from mate_tf.private_apis import import_tensorflow

        import_tensorflow()
    return getattr(importlib.import_module(where), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
