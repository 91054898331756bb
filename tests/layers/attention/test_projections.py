"""What all attention layers share: each takes a configuration of its own kind."""

import dataclasses

import pytest

from mate_tf.config import ARCHITECTURES, AttentionConfig, EncoderConfig
from mate_tf.layers.attention.kinds import (
    DenseAttention,
    MultiViewAttention,
    TiledAttention,
    attention_layer,
)
from mate_tf.layers.attention.linformer import LinformerAttention
from mate_tf.layers.attention.table_etc import TableETCAttention

SMALL = EncoderConfig(hidden_size=8, num_heads=2)
CONFIGS = {
    name: AttentionConfig(name, sequence_length=6, projected_length=2) for name in ARCHITECTURES
}


@pytest.mark.parametrize("layer", [DenseAttention, LinformerAttention, TableETCAttention])
@pytest.mark.parametrize("name", ARCHITECTURES)
def test_a_layer_takes_the_architectures_that_it_computes(layer, name):
    if name in layer.architectures:
        assert layer(2, 4, CONFIGS[name]).attention == CONFIGS[name]
        return
    message = rf"'a', a {layer.__name__}, expected an architecture in \(.*\), got '{name}'"
    with pytest.raises(ValueError, match=message):
        layer(2, 4, CONFIGS[name], name="a")


@pytest.mark.parametrize("name", ["tapas", "sat", "table_etc"])
def test_linear_layers_take_sorted_heads_alone(name):
    message = rf"expected an architecture in \('mate', 'mate_tableformer'\), got '{name}'"
    with pytest.raises(ValueError, match=message):
        MultiViewAttention(2, 4, architecture=name)
    with pytest.raises(ValueError, match=message):
        TiledAttention(2, 4, CONFIGS[name])


def test_tiles_are_for_full_coverage():
    with pytest.raises(ValueError, match=r"TiledAttention, expected .* coverage 1.0, got None"):
        TiledAttention(2, 4, CONFIGS["mate"])
    assert TiledAttention(2, 4, AttentionConfig("mate", coverage=1.0)).attention.coverage == 1.0


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_an_encoder_chooses_a_layer_that_takes_its_architecture(name):
    layer = attention_layer(dataclasses.replace(SMALL, attention=CONFIGS[name]), name="a")
    assert name in layer.architectures
    assert layer.name == "a"
