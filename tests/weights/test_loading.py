"""Checkpoints into a model: TF1 and Hugging Face, fitting and not."""

import json

import numpy as np
import pytest
import tensorflow as tf
from safetensors.numpy import save_file

from mate_tf.config import AttentionConfig, EncoderConfig
from mate_tf.features.token_features import TokenFeatures
from mate_tf.layers.encoder import TableEncoder
from mate_tf.weights.initial import hugging_face_config, load_hugging_face, load_tf1_checkpoint
from mate_tf.weights.loading import assign_variables, variables_by_name
from tests.weights.small_models import BERT_CONFIG as CONFIG
from tests.weights.small_models import classifier, values_of

LAYER = "encoder.layer.0."
POOLER = "bert/pooler/dense/"


def built_encoder(**overrides) -> TableEncoder:
    encoder = TableEncoder(EncoderConfig.from_bert_config(CONFIG, **overrides))
    encoder.build()
    return encoder


def hugging_face_tensors(prefix: str = "") -> dict[str, np.ndarray]:
    """A BERT model's tensors as Hugging Face stores them: kernels are [out, in]."""
    shapes = {
        "embeddings.word_embeddings.weight": (11, 8),
        "embeddings.position_embeddings.weight": (16, 8),
        "embeddings.token_type_embeddings.weight": (2, 8),
        "pooler.dense.weight": (8, 8),
        "pooler.dense.bias": (8,),
        LAYER + "intermediate.dense.weight": (12, 8),
        LAYER + "intermediate.dense.bias": (12,),
        LAYER + "output.dense.weight": (8, 12),
        LAYER + "output.dense.bias": (8,),
    }
    for part in ("self.query", "self.key", "self.value", "output.dense"):
        shapes[f"{LAYER}attention.{part}.weight"] = (8, 8)
        shapes[f"{LAYER}attention.{part}.bias"] = (8,)
    for norm in ("embeddings", LAYER + "attention.output", LAYER + "output"):
        shapes[f"{norm}.LayerNorm.weight"] = shapes[f"{norm}.LayerNorm.bias"] = (8,)
    random = np.random.default_rng(0)
    return {
        prefix + name: random.normal(size=shape).astype(np.float32)
        for name, shape in shapes.items()
    }


def write_folder(directory, tensors, config=CONFIG) -> None:
    (directory / "config.json").write_text(json.dumps(config))
    save_file(tensors, directory / "model.safetensors")


@pytest.mark.parametrize("prefix", ["", "bert."])
def test_hugging_face_bert_fills_all_but_the_table_features(tmp_path, prefix):
    tensors = hugging_face_tensors(prefix)
    write_folder(tmp_path, tensors | {prefix + "embeddings.position_ids": np.arange(16)})
    encoder = TableEncoder(hugging_face_config(tmp_path))
    encoder.build()
    assert encoder.config.activation == "gelu"
    report = load_hugging_face(encoder, tmp_path)
    assert report.ignored == ()
    assert report.new == tuple(f"bert/embeddings/token_type_embeddings_{i}" for i in range(1, 7))
    kernel = encoder.blocks[0].intermediate.kernel
    np.testing.assert_array_equal(kernel, tensors[prefix + LAYER + "intermediate.dense.weight"].T)
    segments = encoder.embedding.type_embeddings["segment_ids"].numpy()
    np.testing.assert_array_equal(
        segments[:2], tensors[prefix + "embeddings.token_type_embeddings.weight"]
    )


def test_the_first_position_goes_to_cls_where_positions_restart(tmp_path):
    write_folder(tmp_path, hugging_face_tensors())
    cls, length = 3, 6
    plain, restarting = built_encoder(position="absolute"), built_encoder(position="per_cell")
    assert not load_hugging_face(plain, tmp_path, cls_id=cls).moved_first_position
    assert not load_hugging_face(restarting, tmp_path).moved_first_position
    report = load_hugging_face(restarting, tmp_path, cls_id=cls)
    assert report.moved_first_position
    assert "of the first position, where [CLS] stands, went to [CLS]" in str(report)
    positions = restarting.embedding.position_embeddings.numpy()
    np.testing.assert_array_equal(positions[0], positions[1])
    # A question alone is one cell, in which both count alike: nothing has changed.
    ones, zeros = tf.ones([1, length], tf.int32), tf.zeros([1, length], tf.int32)
    features = TokenFeatures(*[zeros] * 9)._replace(
        input_ids=tf.constant([[cls, 5, 6, 7, 8, 4]]), input_mask=ones
    )
    for name in range(1, 7):
        table = f"bert/embeddings/token_type_embeddings_{name}"
        variables_by_name(restarting)[table].assign(variables_by_name(plain)[table])
    np.testing.assert_allclose(
        restarting(features).sequence_output, plain(features).sequence_output, atol=1e-5
    )


def assign(model, values, **options):
    readers = {name: (lambda value=value: value) for name, value in values.items()}
    return assign_variables(model, readers, "some.ckpt", **options)


def test_what_an_architecture_adds_starts_from_a_checkpoint_without():
    values = values_of(built_encoder())
    attention = AttentionConfig("table_etc", num_global_tokens=4, max_relative_distance=2)
    report = assign(built_encoder(attention=attention), values)
    assert sorted(report.new) == [
        "bert/embeddings/global_embeddings",
        "bert/encoder/layer_0/attention/self/relative_label_embeddings",
    ]
    assert set(report.loaded) == set(values)


def test_a_longer_position_table_is_cut_extra_variables_are_listed_and_missing_ones_named():
    encoder = built_encoder()
    longer = np.arange(20 * 8, dtype=np.float32).reshape(20, 8)
    more = {"bert/embeddings/position_embeddings": longer, "cls/extra": np.zeros(1)}
    report = assign(encoder, values_of(encoder) | more)
    np.testing.assert_array_equal(encoder.embedding.position_embeddings, longer[:16])
    assert report.ignored == ("cls/extra",)
    assert "cls/extra" in str(report)
    few = values_of(encoder)
    del few[POOLER + "bias"]
    with pytest.raises(ValueError, match=f"variable '{POOLER}bias' in some.ckpt"):
        assign(encoder, few)
    with pytest.raises(ValueError, match=r"expected a built model"):
        variables_by_name(TableEncoder(EncoderConfig.from_bert_config(CONFIG)))


def test_absent_and_wrong_files_are_named(tmp_path):
    encoder = built_encoder()
    with pytest.raises(FileNotFoundError, match=r"TF1 checkpoint at .*nowhere"):
        load_tf1_checkpoint(encoder, tmp_path / "nowhere")
    with pytest.raises(FileNotFoundError, match=r"config\.json in"):
        hugging_face_config(tmp_path)
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    with pytest.raises(FileNotFoundError, match=r"model\.safetensors in"):
        load_hugging_face(encoder, tmp_path)


def test_without_a_pooler_only_what_reads_it_is_incomplete():
    model = classifier()
    values = {
        name: value for name, value in values_of(model).items() if not name.startswith(POOLER)
    }
    assert assign(model, values).new == (POOLER + "kernel", POOLER + "bias")
    with pytest.raises(ValueError, match=f"some.ckpt, which has none for {POOLER}kernel, "):
        assign(model, values, require_all=True)
    assign(model.encoder, values, require_all=True)
