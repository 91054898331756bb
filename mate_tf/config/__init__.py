"""Configurations of encoders and of their attention: frozen dataclasses, to JSON and back."""

from mate_tf.config.attention import (
    ARCHITECTURES,
    NUM_RELATIONS,
    AllPairsConfig,
    AttentionConfig,
    GrammarHardConfig,
    GrammarSoftConfig,
    LinformerConfig,
    MateConfig,
    MateTableFormerConfig,
    TableETCConfig,
    TableFormerConfig,
)
from mate_tf.config.encoder import TYPE_FEATURES, EncoderConfig, read_json_object

__all__ = [
    "ARCHITECTURES",
    "NUM_RELATIONS",
    "TYPE_FEATURES",
    "AllPairsConfig",
    "AttentionConfig",
    "EncoderConfig",
    "GrammarHardConfig",
    "GrammarSoftConfig",
    "LinformerConfig",
    "MateConfig",
    "MateTableFormerConfig",
    "TableETCConfig",
    "TableFormerConfig",
    "read_json_object",
]
