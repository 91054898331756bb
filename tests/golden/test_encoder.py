"""The encoder against the original's outputs in each attention mode, layer by layer."""

import re

import numpy as np
import pytest
import tensorflow as tf

from mate_tf.config import AttentionConfig
from mate_tf.features.token_features import TokenFeatures
from mate_tf.layers.attention import patterns
from mate_tf.layers.attention.relations import pairwise_relation
from mate_tf.layers.encoder import TableEncoder
from tests.golden.comparison import (
    GOLDEN,
    PUBLIC,
    Golden,
    NotSupportedError,
    compare,
    compare_arrays,
    each_of,
    read_arrays,
)

TOLERANCE = 2e-5
NOT_COMPARED = {
    r"probs_.*": "no attention layer here returns its weights; the layer's output is compared"
}


def read_features(golden: Golden, batch: str) -> TokenFeatures:
    (path,) = golden.require(f"encoder/{batch}__inputs.npz")
    return TokenFeatures.from_dict({name: tf.constant(v) for name, v in read_arrays(path).items()})


@each_of("encoder", lambda *_: True, GOLDEN, PUBLIC)
def test_encoder_equals_the_original(golden, name):
    entry = golden.load_index("encoder")[name]
    if not isinstance(entry, dict):
        raise NotSupportedError("a recorded error of the original")
    (path,) = golden.require(f"encoder/{name}.npz")
    features = read_features(golden, name.split("__")[0])
    config = golden.encoder_config(
        entry["create_model_kwargs"], entry.get("bert_config_override"), features.input_ids.shape[1]
    )
    encoder = TableEncoder(config)
    encoder.build()
    golden.load_weights(encoder)
    expected = read_arrays(path)
    if "token_weights" in expected:
        raise NotSupportedError("weights of tokens, for pruned tables")
    if embedding := entry.get("embedding"):
        (embedding_path,) = golden.require(f"encoder/{embedding}")
        expected |= read_arrays(embedding_path)
    output = encoder(features, return_intermediates=True)
    for key, value in output.intermediates.items():
        assert np.isfinite(value.numpy()).all(), f"{key}: expected numbers for padding too"
    real = features.input_mask.numpy() > 0  # [B, S]
    compare_arrays(
        "encoder",
        name,
        output.intermediates | {"pooled": output.pooled_output},
        expected,
        TOLERANCE,
        counts=dict.fromkeys(output.intermediates, real),
        left_out=NOT_COMPARED,
    )


MASKS = GOLDEN.directory / "encoder/masks.npz"


@pytest.mark.parametrize("name", read_arrays(MASKS) if MASKS.exists() else [])
def test_masks_equal_the_original(name):
    expected = read_arrays(MASKS)[name]
    batch, kind = name.split("__")
    features = read_features(GOLDEN, batch)
    if kind == "sat":
        actual = groups_masks(AttentionConfig("sat"), features)[0]
    elif match := re.fullmatch(r"headwise_b(\d+)_h(\d+|None)", kind):
        config = AttentionConfig("mate", "dense", 0.5, *sizes(*match.groups()), True)
        actual = np.stack(groups_masks(config, features), axis=1)
    elif match := re.fullmatch(r"bucketid_b(\d+)_h(\d+|None)_(\w+)", kind):
        bucket, header, feature = match.groups()
        key = patterns.row if feature == "row_ids" else patterns.column
        rank = patterns.token_rank(patterns.token_order(features, key))
        actual = patterns.bucket_ids(rank, *sizes(bucket, header))
    elif match := re.fullmatch(r"relation_ids_disabled(\d+)", kind):
        disabled = tuple(filter(None, [int(match.group(1))]))
        actual = pairwise_relation(features, features, disabled)
    else:
        raise NotSupportedError("unknown kind of mask")
    compare("masks", name, actual, expected, tolerance=0)


def sizes(bucket: str, header: str) -> tuple[int, int]:
    return int(bucket), int(bucket if header == "None" else header)


def groups_masks(config: AttentionConfig, features: TokenFeatures) -> list[np.ndarray]:
    masks = []
    for group in patterns.head_groups(config, num_heads=2):
        mask = patterns.pattern_mask(group.pattern, features, features)
        in_window = patterns.window_pairs(features, group.sort_by, config)
        if in_window is not None:
            mask &= in_window
        masks.append(mask.numpy())
    return masks
