"""Configurations of encoders and of their attention: frozen dataclasses, to JSON and back."""

from mate_tf.config.attention import (
    ARCHITECTURES,
    GRAMMAR_RULES,
    NUM_RELATIONS,
    RELATION_KINDS,
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
from mate_tf.config.encoder import (
    ACTIVATIONS,
    POSITIONS,
    TYPE_FEATURES,
    EncoderConfig,
    read_json_object,
)

__all__ = [
    "ACTIVATIONS",
    "ARCHITECTURES",
    "GRAMMAR_RULES",
    "NUM_RELATIONS",
    "POSITIONS",
    "RELATION_KINDS",
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
