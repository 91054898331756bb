"""The kinds of attention: the layers, each with its implementation, and which an encoder takes."""

from functools import partial
from typing import Any

import keras

from mate_tf.config import ARCHITECTURES, SORTED_ARCHITECTURES, AttentionConfig, EncoderConfig
from mate_tf.dataclass_json import from_dict
from mate_tf.layers.attention.by_length import (
    BREAK_EVEN_FULL,
    BREAK_EVEN_WINDOW,
    ByLength,
    longest_dense,
)
from mate_tf.layers.attention.dense import Dense
from mate_tf.layers.attention.heads import Heads, Implementation
from mate_tf.layers.attention.linformer import LinformerAttention
from mate_tf.layers.attention.multi_view import MultiViews
from mate_tf.layers.attention.projections import HeadProjections
from mate_tf.layers.attention.table_etc import TableETCAttention
from mate_tf.layers.attention.tiles import Tiles
from mate_tf.layers.attention.views import MultiViewEmbedding

# The fields of AttentionConfig that MultiViewAttention takes one by one.
OPTIONS = (
    "row_heads_ratio",
    "bucket_size",
    "global_size",
    "original_bucketing",
    "architecture",
    "relation_kind",
    "disabled_relations",
    "num_neighbours",
)


def attention_layer(config: EncoderConfig, **options: Any) -> HeadProjections:
    """The attention layer of a configuration; the options are Keras's."""
    attention = config.attention
    common: dict[str, Any] = dict(
        num_heads=config.num_heads,
        head_size=config.head_size,
        temperature=config.softmax_temperature,
        dropout=config.attention_dropout,
        initializer_range=config.initializer_range,
        **options,
    )
    if attention.architecture == "linformer":
        return LinformerAttention(attention=attention, **common)
    if attention.has_global_tokens:
        return TableETCAttention(attention=attention, **common)
    if not attention.is_multi_view:
        return DenseAttention(attention=attention, **common)
    if attention.coverage is not None:
        return TiledAttention(attention=attention, **common)
    return MultiViewAttention(
        dense_up_to=0 if attention.evaluator else attention.dense_up_to,
        **{option: getattr(attention, option) for option in OPTIONS},
        **common,
    )


@keras.saving.register_keras_serializable(package="mate_tf")
class DenseAttention(HeadProjections):
    """Self-attention over all pairs, for architectures that mask pairs or add to their scores.

    Called on hidden states float [B, S, D] and token features int [B, S]; returns float
    [B, S, D]. With a bucket size it attends only to the pairs that `MultiViewAttention` computes.
    """

    architectures = tuple(name for name in ARCHITECTURES if name not in ("linformer", "table_etc"))

    def implementation_of(self, heads: Heads) -> Implementation:
        """All pairs."""
        return Dense(heads)

    @classmethod
    def default_attention(cls) -> AttentionConfig:
        """TAPAS: every token to every token."""
        return AttentionConfig(architecture="tapas", evaluator="dense")


@keras.saving.register_keras_serializable(package="mate_tf")
class TiledAttention(HeadProjections):
    """Self-attention of an architecture with sorted heads, at coverage 1.0.

    Called on hidden states float [B, S, D] and token features int [B, S]; returns float
    [B, S, D]: what `DenseAttention` returns for the pattern without a window.

    Raises:
        ValueError: if the attention has no coverage of 1.0, or its architecture is another layer's.
    """

    architectures = SORTED_ARCHITECTURES

    def implementation_of(self, heads: Heads) -> Implementation:
        """All pairs of short sequences, tiles of longer ones."""
        if self.attention.coverage is None:
            raise ValueError(
                f"layer {self.name!r}, a TiledAttention, expected an attention with coverage 1.0, "
                "got None; a MultiViewAttention attends within a window"
            )
        longest = partial(longest_dense, self.attention, BREAK_EVEN_FULL, self.compute_dtype)
        return ByLength(Dense(heads), Tiles(heads), longest)

    @classmethod
    def default_attention(cls) -> AttentionConfig:
        """MATE, in tiles of 64."""
        return AttentionConfig("mate", "multi_view", bucket_size=64, coverage=1.0)


@keras.saving.register_keras_serializable(package="mate_tf")
class MultiViewAttention(HeadProjections):
    """MATE's self-attention, linear in the sequence length (MATE paper, section 3).

    Called on hidden states float [B, S, D] and token features int [B, S]; returns float
    [B, S, D], for any S. Question tokens beyond the global part see only neighbouring buckets.

    Args:
        num_heads: H.
        head_size: E.
        row_heads_ratio: the share of heads that attend within rows, rounded down to heads.
        bucket_size: R; a token sees its own bucket and its neighbours.
        global_size: G; the first tokens of each order, which see all and are seen by all.
        original_bucketing: whether to join the first and last bucket, and repeat keys with fewer
            than three buckets, as the authors' release does.
        architecture: "mate", or "mate_tableformer" to learn biases for TableFormer's relations.
        relation_kind, disabled_relations: see `AttentionConfig`.
        num_neighbours: the neighbours that a token sees on each side.
        dense_up_to: the longest sequence that is computed over all pairs, with the same result;
            None for the longest one where this is faster.
        **kwargs: temperature, dropout and initializer_range of `HeadProjections`, and Keras's.

    Raises:
        ValueError: if a size or the ratio cannot work.

    Example:
        >>> from mate_tf.features.token_features import TokenFeatures
        >>> ids = tf.constant([[0, 0, 1, 1, 2, 2]])
        >>> zeros, ones = tf.zeros_like(ids), tf.ones_like(ids)
        >>> features = TokenFeatures(
        ...     input_ids=ones, input_mask=ones, segment_ids=tf.minimum(ids, 1),
        ...     column_ids=tf.constant([[0, 0, 1, 2, 1, 2]]), row_ids=ids, prev_label_ids=zeros,
        ...     column_ranks=zeros, inv_column_ranks=zeros, numeric_relations=zeros)
        >>> layer = MultiViewAttention(num_heads=2, head_size=4, bucket_size=2, global_size=2)
        >>> layer(tf.ones([1, 6, 8]), features).shape
        TensorShape([1, 6, 8])
    """

    architectures = SORTED_ARCHITECTURES

    def __init__(
        self,
        num_heads: int,
        head_size: int,
        row_heads_ratio: float = 0.5,
        bucket_size: int = 42,
        global_size: int = 116,
        original_bucketing: bool = False,
        architecture: str = "mate",
        relation_kind: str = "scalar",
        disabled_relations: tuple[int, ...] = (),
        num_neighbours: int = 1,
        dense_up_to: int | None = 0,
        **kwargs,
    ):
        attention = AttentionConfig(
            architecture=architecture,
            dense_up_to=dense_up_to,
            row_heads_ratio=row_heads_ratio,
            bucket_size=bucket_size,
            global_size=global_size,
            original_bucketing=original_bucketing,
            relation_kind=relation_kind,
            disabled_relations=tuple(disabled_relations),
            num_neighbours=num_neighbours,
        )
        super().__init__(num_heads, head_size, attention, **kwargs)

    def implementation_of(self, heads: Heads) -> Implementation:
        """All pairs of short sequences, the views of longer ones."""
        attention = self.attention
        self.views = MultiViewEmbedding(
            attention.bucket_size,
            attention.global_size,
            attention.num_neighbours,
            name="views",
            dtype=self.dtype_policy,
        )
        longest = partial(longest_dense, attention, BREAK_EVEN_WINDOW, self.compute_dtype)
        return ByLength(Dense(heads), MultiViews(heads, self.views), longest)

    def get_config(self):
        config = super().get_config()
        attention = config.pop("attention")
        return config | {name: attention[name] for name in (*OPTIONS, "dense_up_to")}

    @classmethod
    def from_config(cls, config):
        former = {key: config[key] for key in AttentionConfig.FORMER_FIELDS if key in config}
        from_dict(AttentionConfig, former, "attention")  # refuses what is not as it was
        return cls(**{key: value for key, value in config.items() if key not in former})
