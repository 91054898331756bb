"""What the tests of weights share: small models and checkpoints of them."""

import functools
import json
import pathlib
from collections.abc import Mapping

import keras
import numpy as np
import tensorflow as tf
from safetensors.numpy import save_file

from mate_tf.config import EncoderConfig
from mate_tf.models import make_model
from mate_tf.models.classification import SequenceClassification
from mate_tf.models.table_qa import TableQuestionAnswering
from mate_tf.task_configs import ClassificationConfig, TableQAConfig
from mate_tf.weights.initial import variables_by_name

BERT_CONFIG = {
    "model_type": "bert",
    "vocab_size": 11,
    "hidden_size": 8,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 12,
    "hidden_act": "gelu",
    "max_position_embeddings": 16,
    "type_vocab_size": 2,
}


def encoder_config(**overrides) -> EncoderConfig:
    return EncoderConfig.from_bert_config(BERT_CONFIG, **overrides)


def table_qa(seed: int = 0, task: dict | None = None, **overrides) -> TableQuestionAnswering:
    keras.utils.set_random_seed(seed)
    return make_model(encoder_config(**overrides), TableQAConfig(**(task or {})))


def classifier(seed: int = 0, num_classes: int = 2, **overrides) -> SequenceClassification:
    keras.utils.set_random_seed(seed)
    return make_model(encoder_config(**overrides), ClassificationConfig(num_classes=num_classes))


def values_of(model: keras.layers.Layer) -> dict[str, np.ndarray]:
    return {name: variable.numpy() for name, variable in variables_by_name(model).items()}


@functools.cache
def table_qa_values() -> dict[str, np.ndarray]:
    return values_of(table_qa())


@functools.cache
def classifier_values() -> dict[str, np.ndarray]:
    return values_of(classifier())


def assert_values(model: keras.layers.Layer, expected: Mapping[str, np.ndarray]) -> None:
    """Whether a model's variables have these values, of which there may be more."""
    for name, value in values_of(model).items():
        np.testing.assert_array_equal(value, expected[name], err_msg=name)


def write_tf1(prefix: pathlib.Path, values: dict[str, np.ndarray]) -> None:
    """A name-based checkpoint, whose names have slashes as the releases' have."""
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        variables = {
            name: tf.compat.v1.get_variable(name.replace("/", "_"), initializer=value)
            for name, value in values.items()
        }
        session.run(tf.compat.v1.global_variables_initializer())
        saver = tf.compat.v1.train.Saver(variables)
        saver.save(session, str(prefix), write_state=False)


def write_hugging_face(
    folder: pathlib.Path, values: dict[str, np.ndarray], **config: object
) -> None:
    """A folder as transformers writes it, of the encoder's and a TAPAS head's variables."""
    heads = {
        "output_weights_agg": "aggregation_classifier.weight",
        "output_bias_agg": "aggregation_classifier.bias",
        "output_weights_cls": "classifier.weight",
        "output_bias_cls": "classifier.bias",
    }
    tensors = {}
    for name, value in values.items():
        stored = heads.get(name, name.replace("bert/", "tapas.").replace("layer_", "layer."))
        stored = stored.replace("/", ".")
        if stored.endswith(".kernel"):
            stored, value = stored.replace(".kernel", ".weight"), value.T
        stored = stored.replace(".gamma", ".weight").replace(".beta", ".bias")
        if "_embeddings" in stored:
            stored += ".weight"
        tensors[stored] = np.array(value, order="C")
    folder.mkdir(exist_ok=True)
    tapas = {"model_type": "tapas", "type_vocab_sizes": [3, 256, 256, 2, 256, 256, 10]}
    (folder / "config.json").write_text(json.dumps(BERT_CONFIG | tapas | config))
    save_file(tensors, folder / "model.safetensors")
