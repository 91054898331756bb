"""The papers' architectures by name: which ids and which orders each of them sees."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf

from mate_tf.config import AttentionConfig, EncoderConfig, LinformerConfig
from mate_tf.features.token_features import TokenFeatures
from mate_tf.layers.encoder import TableEncoder
from mate_tf.presets import ARCHITECTURE_PRESETS, with_architecture
from tests.layers.small_layers import in_first_order, serialized
from tests.small import small_encoder

NAMES = tuple(ARCHITECTURE_PRESETS)
LENGTH = 48  # 3 + 5 * 3 cells of three tokens at most
SMALL = small_encoder(40, num_heads=4, max_position_embeddings=LENGTH, initializer_range=0.3)
# Whether the output changes with other row ids, other column ids, other ranks, and another order of
# rows and columns. The TableFormer paper's table 5 takes the ids away one by one; positions are
# per cell, but where a preset says otherwise.
SEES = dict.fromkeys(NAMES, (True, True, True, True)) | {
    "sat_text_only": (False, False, False, False),
    "tableformer_c_gp": (False, True, True, True),
    "tableformer_gp": (False, False, True, True),
    **dict.fromkeys(("tableformer_pcp", "mate_tableformer"), (False, False, True, False)),
}
# Sums of some hundred numbers of unit size in another order (as in attention/test_relations.py),
# against changes of an embedding or a position, which show in the first decimal.
SAME, DIFFERENT = 2e-5, 0.01


def encoder_of(name: str) -> TableEncoder:
    """The preset at small size, with relations and projections that are not zero."""
    config = with_architecture(SMALL, name)
    if isinstance(config.attention, LinformerConfig):
        attention = dataclasses.replace(config.attention, sequence_length=LENGTH)
        config = dataclasses.replace(config, attention=attention)
    tf.keras.utils.set_random_seed(0)
    encoder = TableEncoder(config)
    encoder.build()
    random = np.random.default_rng(0)
    for weight in encoder.weights:
        if "relative_" in weight.path or "proj_seq_length" in weight.path:
            weight.assign(random.normal(size=weight.shape))
    return encoder


def relabelled(features: TokenFeatures, name: str) -> TokenFeatures:
    """Other ids for the same groups of tokens; 0, of the question and the header, stays."""
    ids = getattr(features, name)
    return features._replace(**{name: tf.where(ids > 0, 12 - ids, 0)})


def test_names_mean_different_architectures_that_keep_positions_where_they_can():
    configs = [with_architecture(SMALL, name) for name in NAMES]
    assert len({repr(config) for config in configs}) == len(NAMES)
    absolute = dataclasses.replace(SMALL, position="absolute")
    changed = [n for n in NAMES if with_architecture(absolute, n).position != "absolute"]
    assert changed == ["tableformer_pcp", "mate_tableformer"]
    with pytest.raises(ValueError, match=r"among tapas, sat, .*, mate_neighbours, got 'bert'"):
        with_architecture(SMALL, "bert")


@pytest.mark.parametrize("name", NAMES)
def test_a_preset_sees_what_its_paper_says_and_hides_the_former_attention(name):
    encoder = encoder_of(name)
    features, first = serialized([1, 2, 3, 4], [1, 2, 3], length=LENGTH)
    ranks = tf.where(features.column_ranks > 0, 8 - features.column_ranks, 0)
    changed = {
        "row ids": (relabelled(features, "row_ids"), first),
        "column ids": (relabelled(features, "column_ids"), first),
        "ranks": (features._replace(column_ranks=ranks, inv_column_ranks=ranks), first),
        "order": serialized([3, 1, 4, 2], [2, 3, 1], length=LENGTH),
    }
    expected = in_first_order(encoder, (features, first))
    assert expected.shape == (len(first), 16) and np.isfinite(expected).all()
    for (what, table), sees in zip(changed.items(), SEES[name], strict=True):
        difference = np.abs(in_first_order(encoder, table) - expected).max()
        assert difference > DIFFERENT if sees else difference <= SAME, what
    former = dataclasses.replace(
        SMALL,
        attention=AttentionConfig("tableformer", disabled_relations=(1,)),
        disabled_features=("numeric_relations",),
    )
    config = with_architecture(former, name)
    assert config == with_architecture(SMALL, name)
    chosen = ("attention", "position", "disabled_features")
    for field in dataclasses.fields(EncoderConfig):
        if field.name not in chosen:
            assert getattr(config, field.name) == getattr(former, field.name)
