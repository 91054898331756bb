"""The encoder against the original's outputs in each attention mode, layer by layer."""

import functools
import re

import numpy as np
import pytest
import tensorflow as tf

from mate_tf.config import AttentionConfig
from mate_tf.features.token_features import TokenFeatures
from mate_tf.layers.attention.buckets import bucket_ids, computed_pairs, token_order, token_rank
from mate_tf.layers.attention.patterns import head_groups, pattern_mask
from mate_tf.layers.attention.relations import pairwise_relation
from mate_tf.layers.encoder import TableEncoder
from mate_tf.weights.initial import load_tf1_checkpoint
from mate_tf.weights.loading import assign_variables

TOLERANCE = 2e-5


def read_features(golden, batch: str) -> TokenFeatures:
    (path,) = golden.require(f"encoder/{batch}__inputs.npz")
    with np.load(path) as arrays:
        return TokenFeatures.from_dict({name: tf.constant(arrays[name]) for name in arrays.files})


def load_encoder(golden, config) -> TableEncoder:
    golden.require("ckpt/classifier_all/model.ckpt.index")
    checkpoint = golden.directory / "ckpt/classifier_all/model.ckpt"
    encoder = TableEncoder(config)
    encoder.build()
    if config.attention.architecture != "linformer":
        load_tf1_checkpoint(encoder, checkpoint)
        return encoder
    # The checkpoint has the projections for one length; those for others are in a file of theirs.
    (path,) = golden.require("ckpt/linformer_extra_kernels.npz")
    reader = tf.train.load_checkpoint(str(checkpoint))
    tensors = {
        name: functools.partial(reader.get_tensor, name)
        for name in reader.get_variable_to_shape_map()
    }
    size = f"{config.attention.sequence_length}x{config.attention.projected_length}"
    with np.load(path) as kernels:
        for key in kernels.files:
            name, _, of_size = key.replace("|", "/").partition("__")
            if of_size == size:
                tensors[name] = functools.partial(np.array, kernels[key])
    assign_variables(encoder, tensors, str(path))
    return encoder


def test_encoder_equals_the_original(golden, encoder_name):
    entry = golden.load_index("encoder")[encoder_name]
    if not isinstance(entry, dict):
        golden.not_compared("encoder", encoder_name, "a recorded error of the original")
    (path,) = golden.require(f"encoder/{encoder_name}.npz")
    features = read_features(golden, encoder_name.split("__")[0])
    try:
        config = golden.encoder_config(
            entry["create_model_kwargs"],
            entry.get("bert_config_override"),
            features.input_ids.shape[1],
        )
    except golden.NotSupportedError as error:
        golden.not_compared("encoder", encoder_name, str(error))
    encoder = load_encoder(golden, config)
    with np.load(path) as arrays:
        token_weights = arrays["token_weights"] if "token_weights" in arrays.files else None
    output = encoder(features, return_intermediates=True, token_weights=token_weights)
    real = features.input_mask.numpy()[..., None]  # [B, S, 1]
    for padding_output in output.intermediates.values():
        assert np.isfinite(padding_output.numpy()).all()

    def compare(name, actual, expected):
        golden.compare("encoder", f"{encoder_name} {name}", actual, expected, TOLERANCE)

    with np.load(path) as arrays:
        for name in arrays.files:
            if name == "pooled":
                compare(name, output.pooled_output, arrays[name])
            elif re.fullmatch(r"layer_\d+", name):
                compare(name, output.intermediates[name] * real, arrays[name] * real)
    (path,) = golden.require(f"encoder/{entry['embedding']}")
    with np.load(path) as arrays:
        compare("embedding", output.intermediates["embedding"] * real, arrays["embedding"] * real)


def test_masks_equal_the_original(golden, mask_name):
    (path,) = golden.require("encoder/masks.npz")
    with np.load(path) as arrays:
        expected = arrays[mask_name]
    batch, kind = mask_name.split("__")
    features = read_features(golden, batch)
    if kind == "sat":
        actual = groups_masks(AttentionConfig("sat", "dense"), features)[0]
    elif match := re.fullmatch(r"headwise_b(\d+)_h(\d+|None)", kind):
        config = AttentionConfig("mate", "dense", 0.5, *sizes(*match.groups()), True)
        actual = np.stack(groups_masks(config, features), axis=1)
    elif match := re.fullmatch(r"bucketid_b(\d+)_h(\d+|None)_(\w+)", kind):
        bucket, header, feature = match.groups()
        rank = token_rank(token_order(features, feature))
        actual = bucket_ids(rank, *sizes(bucket, header))
    elif match := re.fullmatch(r"relation_ids_disabled(\d+)", kind):
        disabled = tuple(filter(None, [int(match.group(1))]))
        actual = pairwise_relation(features, features, disabled)
    else:
        golden.not_compared("masks", mask_name, "unknown kind of mask")
    golden.compare("masks", mask_name, actual, expected, tolerance=0)


def sizes(bucket: str, header: str) -> tuple[int, int]:
    return int(bucket), int(bucket if header == "None" else header)


def groups_masks(config: AttentionConfig, features: TokenFeatures) -> list[np.ndarray]:
    masks = []
    for group in head_groups(config, num_heads=2):
        mask = pattern_mask(group.pattern, features, features)
        if group.sort_by and config.bucket_size:
            rank = token_rank(token_order(features, group.sort_by))
            mask &= computed_pairs(rank, config.bucket_size, config.global_size, True)
        masks.append(mask.numpy())
    return masks


def pytest_generate_tests(metafunc):
    golden = metafunc.config.golden
    if "encoder_name" in metafunc.fixturenames:
        metafunc.parametrize("encoder_name", sorted(golden.load_index("encoder")))
    if "mask_name" in metafunc.fixturenames:
        path = golden.directory / "encoder/masks.npz"
        names: list[str] = []
        if path.exists():
            with np.load(path) as arrays:
                names = arrays.files
        metafunc.parametrize("mask_name", names)


@pytest.mark.parametrize("checkpoint", ["pretraining", "classifier_all"])
def test_checkpoint_variables_are_all_named(golden, checkpoint):
    golden.require(f"ckpt/{checkpoint}/model.ckpt.index", "bert_config.json")
    encoder = TableEncoder(golden.encoder_config({}))
    encoder.build()
    report = load_tf1_checkpoint(encoder, golden.directory / "ckpt" / checkpoint / "model.ckpt")
    assert not report.new
    assert not [
        name
        for name in report.ignored
        if name.startswith("bert/") and not re.search(r"relative_|proj_seq_length", name)
    ]
