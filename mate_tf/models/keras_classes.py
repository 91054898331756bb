"""All Keras layers and models of mate_tf, which an import of this module registers with Keras.

Then `keras.saving.load_model` finds the classes of a `.keras` file by itself, without
custom_objects.
"""

from mate_tf.layers.attention.dense import DenseAttention
from mate_tf.layers.attention.linformer import LinformerAttention
from mate_tf.layers.attention.multi_view import MultiViewAttention
from mate_tf.layers.attention.table_etc import TableETCAttention
from mate_tf.layers.attention.tiles import TiledAttention
from mate_tf.layers.attention.views import MultiViewEmbedding
from mate_tf.layers.encoder import TableEncoder
from mate_tf.layers.layer_norm import LayerNorm
from mate_tf.models.classification import SequenceClassification
from mate_tf.models.masked_lm import MaskedLanguageModel
from mate_tf.models.span_reading import SpanReading
from mate_tf.models.table_qa import TableQuestionAnswering

__all__ = [
    "DenseAttention",
    "LayerNorm",
    "LinformerAttention",
    "MaskedLanguageModel",
    "MultiViewAttention",
    "MultiViewEmbedding",
    "SequenceClassification",
    "SpanReading",
    "TableETCAttention",
    "TableEncoder",
    "TableQuestionAnswering",
    "TiledAttention",
]
