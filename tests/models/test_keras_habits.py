"""What whoever knows Keras does with a model: a table of habits, for three kinds of model.

Each works, or raises an error that says why not. layers/test_habits.py has what layers do alike,
and `.keras` files of every kind of model.
"""

import itertools
import warnings
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

import mate_tf
from mate_tf.features.token_features import STRUCTURE, TAPAS_FEATURES
from mate_tf.layers.attention.kinds import MultiViewAttention, SelfAttention
from mate_tf.layers.encoder import TableEncoder
from mate_tf.models import MODELS, SequenceClassification
from tests import small
from tests.layers.small_layers import LENGTH, attentions, hidden_states, random_features

FEATURES = random_features(LENGTH)
X = {name: getattr(FEATURES, name).numpy() for name in TAPAS_FEATURES}
X["input_ids"] %= 14
CELLS = (X["row_ids"] == 1).astype(np.int32)
# The labels of all kinds of table questions.
LABELS = {
    "label_ids": CELLS,
    "aggregation_function_id": np.array([[0], [1]]),
    "answer": np.array([[np.nan], [3.0]]),
    "numeric_values": np.ones([2, LENGTH]),
    "numeric_values_scale": np.ones([2, LENGTH]),
}
CLASSES = np.array([0, 1])


def functional() -> keras.Model:
    given = {name: keras.Input([None], dtype="int32", name=name) for name in X}
    pooled = TableEncoder(small.ENCODER)(given).pooled_output
    return keras.Model(given, keras.layers.Dense(2, name="classes")(pooled))


KINDS = {
    "functional": (functional, CLASSES),
    "subclassed": (lambda: SequenceClassification(small.ENCODER), CLASSES),
    "default": (lambda: mate_tf.from_pretrained().model, LABELS),
}


def compiled(model: keras.Model, **options: Any) -> keras.Model:
    """Eagerly: a graph of each would take most of the test's time."""
    if isinstance(model, keras.models.Model) and type(model).__name__ == "Functional":
        options["loss"] = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile("adam", **({"run_eagerly": True} | options))
    return model


def outputs(model: keras.Model) -> list[np.ndarray]:
    return [np.asarray(output) for output in keras.tree.flatten(model(X))]


def assert_alike(found: keras.Model, expected: keras.Model, atol: float = 1e-6) -> None:
    small.assert_same(outputs(found), outputs(expected), rtol=1e-7, atol=atol)


def fits_then_exports_and_loads(model, y, path):
    history = compiled(model).fit(X, y, epochs=2, verbose=0).history
    assert np.isfinite(history["loss"]).all() and len(history["loss"]) == 2
    assert np.isfinite(model.evaluate(X, y, verbose=0))
    model.export(path / "exported", verbose=False)
    served = tf.saved_model.load(path / "exported")
    ids = {name: tf.constant(ids) for name, ids in X.items()}  # of integers
    small.assert_same(keras.tree.flatten(served.serve(ids)), outputs(model), atol=1e-4)
    model.save(path / "model.keras")
    again = keras.saving.load_model(path / "model.keras")
    assert_alike(again, model)
    again.fit(X, y, verbose=0)


def trains_on_datasets(model, y, path):
    dataset = tf.data.Dataset.from_tensor_slices((X, y)).batch(2)
    assert np.isfinite(compiled(model).fit(dataset, shuffle=False, verbose=0).history["loss"]).all()


def predicts(model, y, path):
    dataset = tf.data.Dataset.from_tensor_slices(X).batch(1)
    arrays, by_one = (
        keras.tree.flatten(compiled(model).predict(given, verbose=0)) for given in (X, dataset)
    )
    assert {len(one) for one in arrays} == {2}
    small.assert_same(by_one, arrays, atol=1e-4)


def keeps_weights(model, y, path):
    model.save_weights(path / "model.weights.h5")
    expected = outputs(model)
    model.set_weights([0.5 * weight for weight in model.get_weights()])
    model.load_weights(path / "model.weights.h5")
    small.assert_same(outputs(model), expected)


def is_summarised(model, y, path):
    lines: list[str] = []
    model.summary(print_fn=lines.append)
    assert f"{model.count_params():,}" in "".join(lines)
    assert model.name in repr(model) and "\n" not in repr(model)
    assert {"encoder", "layer_0", "attention", "query"} <= {
        part for weight in model.weights for part in weight.path.split("/")
    }


def is_frozen(model, y, path):
    encoder = model.get_layer("encoder")
    encoder.trainable = False
    before = encoder.get_weights()
    compiled(model).fit(X, y, verbose=0)
    small.assert_same(encoder.get_weights(), before)
    assert len(model.trainable_variables) == len(model.weights) - len(before)


def is_cloned(model, y, path):
    again = keras.models.clone_model(model)
    again.set_weights(model.get_weights())
    assert_alike(again, model)
    assert type(model).from_config(model.get_config()).count_params() == model.count_params()


def learns_by_lora(model, y, path):
    encoder, before = model.get_layer("encoder"), outputs(model)
    query = encoder.blocks[0].attention.query
    encoder.enable_lora(2)
    names = {variable.path.split("/")[-1] for variable in encoder.trainable_variables}
    assert names == {"lora_kernel_a", "lora_kernel_b"}
    np.testing.assert_allclose(outputs(model)[0], before[0], atol=1e-5)
    kept = query._kernel.numpy()
    compiled(model, loss=None).fit(X, y, verbose=0)
    assert np.abs(query.lora_kernel_b.numpy()).max() > 0
    np.testing.assert_array_equal(query._kernel.numpy(), kept)
    assert np.abs(outputs(model)[0] - before[0]).max() > 0
    model.save(path / "merged.keras")
    # Keras keeps the optimizer's state of the changes, which the merged model has not.
    assert_alike(keras.saving.load_model(path / "merged.keras", compile=False), model, 1e-4)


def is_quantized(model, y, path):
    before = outputs(model)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Keras names the layers that stay as they are
        model.quantize("int8")
    encoder = model.get_layer("encoder")
    projections = [block.intermediate for block in encoder.blocks] + [encoder.pooler]
    assert {layer.kernel.dtype for layer in projections} == {"int8"}
    largest = max(np.abs(before[0]).max(), 1.0)
    assert 0 < np.abs(outputs(model)[0] - before[0]).max() < 0.2 * largest
    model.save(path / "int8.keras")
    again = keras.saving.load_model(path / "int8.keras")
    assert again.get_layer("encoder").pooler.kernel.dtype == "int8"
    assert_alike(again, model)


HABITS = {
    habit.__name__: habit
    for habit in (
        *(fits_then_exports_and_loads, trains_on_datasets, predicts, keeps_weights, is_summarised),
        *(is_frozen, is_cloned, learns_by_lora, is_quantized),
    )
}


_LONG = {("is_quantized", "default"), ("is_quantized", "subclassed")}


@pytest.mark.medium
@pytest.mark.parametrize(
    ("habit", "kind"),
    [
        pytest.param(*both, marks=[pytest.mark.slow] if both in _LONG else [])
        for both in itertools.product(HABITS, KINDS)
    ],
)
def test_a_model_does_what_keras_users_expect(habit, kind, tmp_path):
    keras.utils.set_random_seed(1)
    make, y = KINDS[kind]
    HABITS[habit](make(), y, tmp_path)


LABELS_OF = {
    "table_qa": LABELS,
    "classification": CLASSES,
    "span_reading": CELLS,
    "masked_lm": {
        "masked_lm_ids": np.array([[7, 8], [9, 7]]),
        "masked_lm_weights": np.ones([2, 2]),
        "is_random_table": np.array([[0], [1]]),
    },
}


@pytest.mark.parametrize("kind", MODELS)
def test_compute_loss_is_the_tasks_own_and_a_missing_label_is_named(kind):
    model, y, x = MODELS[kind](small.ENCODER), LABELS_OF[kind], dict(X)
    if kind == "masked_lm":
        x["masked_lm_positions"] = np.array([[1, 4], [2, 3]])
    labels = y if isinstance(y, dict) else {model.label: y}
    labels = {name: v.astype(np.float32) if v.dtype == float else v for name, v in labels.items()}
    expected = float(model.compute_task_loss(x | labels, model(x))["loss"])
    compiled(model)
    assert model.evaluate(x, y, verbose=0) == pytest.approx(expected, rel=1e-5)
    assert model.evaluate(x | labels, verbose=0) == pytest.approx(expected, rel=1e-5)
    with pytest.raises(ValueError, match="expected the label '"):
        model.evaluate(x, verbose=0)


def test_sample_weights_weigh_examples_and_another_loss_can_be_compiled():
    model = compiled(SequenceClassification(small.ENCODER))
    logits = tf.cast(model(X)["class_logits"], tf.float64)
    expected = -np.mean(tf.nn.log_softmax(logits).numpy()[[0, 1], CLASSES])
    assert model.evaluate(X, CLASSES, verbose=0) == pytest.approx(expected, rel=1e-5)
    each = [model.evaluate(X, CLASSES, verbose=0, sample_weight=w) for w in np.eye(2)]
    assert sum(each) == pytest.approx(model.evaluate(X, CLASSES, verbose=0))
    model.compile("adam", {"class_logits": "mse"}, run_eagerly=True)
    target = {"class_logits": np.zeros([2, 2], np.float32)}
    expected = float(np.mean(np.square(model(X)["class_logits"])))
    assert model.evaluate(X, target, verbose=0) == pytest.approx(expected)


@pytest.mark.slow
@pytest.mark.parametrize("jit_compile", [False, True])
def test_a_graph_and_xla_train_it(jit_compile):
    model = compiled(functional(), run_eagerly=False, jit_compile=jit_compile)
    losses = model.fit(X, CLASSES, epochs=8, verbose=0).history["loss"]
    assert losses[-1] < losses[0]


@pytest.mark.parametrize("policy", ["mixed_bfloat16"], indirect=True)
def test_it_computes_by_keras_policy_of_mixed_precision(policy):
    model = SequenceClassification(small.ENCODER)
    assert model.encoder(X).pooled_output.dtype == tf.bfloat16
    model.compile("adam", run_eagerly=True)
    assert np.isfinite(model.fit(X, CLASSES, verbose=0).history["loss"]).all()


@pytest.mark.parametrize("name", attentions())
def test_attention_scores_are_those_of_the_context_or_an_error_says_why_not(name):
    layer, hidden = SelfAttention(2, 4, attentions()[name], dropout=0.3), hidden_states(2, LENGTH)
    if name.startswith(("linformer", "table_etc")):
        with pytest.raises(ValueError, match="expected an attention among pairs of tokens"):
            symbolic = keras.KerasTensor(hidden.shape), FEATURES
            layer(*symbolic, return_attention_scores=True)
        return
    output, scores = layer(hidden, FEATURES, return_attention_scores=True)
    assert scores.shape == (2, 2, LENGTH, LENGTH)
    real = X["input_mask"][..., None]  # of other queries the probabilities mean nothing
    sums = np.einsum("BHFT->BFH", scores)
    np.testing.assert_allclose(sums * real, np.ones_like(sums) * real, atol=1e-5)
    context = tf.einsum("BHFT,BTHE->BFHE", scores, layer.heads(hidden).value)
    again = layer.output_projection(tf.reshape(context, [2, LENGTH, 8]))
    np.testing.assert_allclose(again * real, output * real, atol=1e-6)


def test_a_mask_of_an_embedding_hides_its_tokens_and_is_passed_on():
    ids = keras.Input([None], dtype="int32")
    given = {name: keras.Input([None], dtype="int32", name=name) for name in STRUCTURE}
    embedded = keras.layers.Embedding(20, 8, mask_zero=True)(ids)
    layer = MultiViewAttention(2, 4, bucket_size=4, global_size=4)
    attended, scores = layer(embedded, given, return_attention_scores=True)
    pooled = keras.layers.GlobalAveragePooling1D()(attended)
    model = keras.Model([ids, given], [pooled, attended, scores])
    input_ids = np.where(np.arange(LENGTH) < LENGTH - 3, 1 + X["input_ids"], 0)
    features = {name: X[name] for name in STRUCTURE} | {"input_mask": np.ones_like(input_ids)}
    pooled, attended, scores = (output.numpy() for output in model([input_ids, features]))
    assert scores[..., -3:].max() == 0.0 < scores[..., :-3].max()
    np.testing.assert_allclose(pooled, attended[:, :-3].mean(axis=1), atol=1e-6)
