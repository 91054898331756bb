import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from mate_tf.layers.attention import softmax
from mate_tf.layers.attention.softmax import (
    Attended,
    masked_softmax,
    scores_are_small,
    weighted_sum,
)
from mate_tf.layers.compilation import portable_graph

# A rounding of the weights and one of the result, of numbers up to 4.
TOLERANCE = {tf.float32: 1e-5, tf.bfloat16: 2 * 4 * 2.0**-8, tf.float16: 2 * 4 * 2.0**-11}


def parts(dtype, size: float, seed: int = 0, masked: bool = True) -> list[Attended]:
    """Two parts of 3 and 4 keys, the first shared by all queries, and random masks."""
    random = np.random.default_rng(seed)

    def tensor(*shape):
        return tf.cast(tf.constant(random.uniform(-1, 1, size=shape), tf.float32), dtype)

    def mask(keys):
        return tf.constant(random.random((2, 1, 5, keys)) < 0.6) if masked else None

    return [
        Attended(size * tensor(2, 3, 5, 3), mask(3), tensor(2, 3, 3, 4), "BHFT,BHTE->BHFE"),
        Attended(size * tensor(2, 3, 5, 4), mask(4), tensor(2, 3, 5, 4, 4), "BHFT,BHFTE->BHFE"),
    ]


def in_float64(attended: list[Attended]) -> tuple[np.ndarray, np.ndarray]:
    """The sums, and which queries have a key."""
    scores = np.concatenate([tf.cast(part.scores, tf.float64) for part in attended], axis=-1)
    if attended[0].mask is not None:
        allowed = np.concatenate([part.mask for part in attended], axis=-1)
        allowed = np.broadcast_to(allowed, scores.shape)
    else:
        allowed = np.ones(scores.shape, bool)
    weights = np.where(allowed, np.exp(scores - scores.max(-1, keepdims=True)), 0.0)
    has_key = np.asarray(allowed.any(-1))
    weights[has_key] /= weights[has_key].sum(-1, keepdims=True)
    split = np.split(weights, [3], axis=-1)
    values = [tf.cast(part.values, tf.float64).numpy() for part in attended]
    return (
        np.einsum("bhft,bhte->bhfe", split[0], values[0])
        + np.einsum("bhft,bhfte->bhfe", split[1], values[1]),
        has_key,
    )


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("dtype", list(TOLERANCE), ids=lambda dtype: dtype.name)
@pytest.mark.parametrize("small", [None, False, True])
@pytest.mark.parametrize("size", [1.0, 60.0])
def test_weighted_sums_are_those_of_the_definition(masked, dtype, small, size):
    if dtype == tf.float16 and small:
        size = 1.0  # of larger scores nobody says that they are small, see below
    for seed in range(4):
        attended = parts(dtype, size, seed, masked)
        flag = None if small is None else tf.constant(small)
        found = weighted_sum(attended, scores_are_small=flag)
        assert found.dtype == dtype
        expected, has_key = in_float64(attended)
        found = tf.cast(found, tf.float64).numpy()
        assert np.isfinite(found).all()
        np.testing.assert_allclose(found[has_key], expected[has_key], atol=TOLERANCE[dtype])


def said_in_graph(query, key, scale, *biases) -> bool | None:
    """What is said of scores within a graph; op by op nothing is compiled, so nobody asks."""
    answers = []

    @tf.function(autograph=False)
    def asked(query, key):
        answers.append(scores_are_small(query, key, scale, *biases))
        return answers[0] if answers[0] is not None else tf.constant(False)

    found = asked(query, key)
    return None if answers[0] is None else bool(found)


@settings(max_examples=30)
@given(
    factor=st.floats(0.1, 12.0),
    scale=st.floats(0.05, 1.0),
    bias=st.none() | st.floats(-80.0, 80.0, width=32),
)
def test_small_scores_are_said_to_be_so_and_no_others(factor, scale, bias):
    random = np.random.default_rng(0)
    query, key = (
        tf.constant(factor * random.normal(size=(2, 6, 3, 8)), tf.float32) for _ in range(2)
    )
    lengths = [np.linalg.norm(vectors, axis=-1).max() for vectors in (query, key)]
    biases = [] if bias is None else [tf.constant([[bias, 0.0]])]
    found = said_in_graph(query, key, scale, *biases)
    largest = scale * np.prod(lengths) + abs(bias or 0.0)
    if abs(largest - 60.0) > 1e-3:
        assert found == (largest < 60.0)
    scores = scale * np.einsum("bfhe,bthe->bhft", query, key) + (bias or 0.0)
    assert not found or np.isfinite(np.exp(scores.astype(np.float32))).all()


@pytest.mark.parametrize("score", [-60.0, 60.0])
@pytest.mark.parametrize("value", [1e-6, 1e6])
def test_exponentials_hold_many_keys_and_values_of_any_size(score, value):
    keys = 16384
    scores, values = tf.fill([1, 1, 1, keys], score), tf.fill([1, 1, keys, 1], value)
    attended = Attended(scores, None, values, "BHFT,BHTE->BHFE")
    found = weighted_sum([attended], scores_are_small=tf.constant(True))
    # Two sums of so many numbers, each of which may add half a unit in the last place.
    np.testing.assert_allclose(found[0, 0, 0, 0], value, rtol=2 * keys * 2.0**-24)


def test_no_numbers_are_not_small_and_nobody_asks_without_compilation_nor_of_float16():
    nan = tf.fill([1, 2, 1, 4], float("nan"))
    assert said_in_graph(nan, tf.ones([1, 2, 1, 4]), 1.0) is False
    tensor = tf.ones([1, 2, 1, 4])
    assert said_in_graph(tf.cast(tensor, tf.float16), tensor, 1.0) is None
    with portable_graph():
        assert said_in_graph(tensor, tensor, 1.0) is None
    assert said_in_graph(tensor, tensor, 1.0) is True
    assert scores_are_small(tensor, tensor, 1.0) is None


@pytest.mark.parametrize("exact", [False, True])
def test_a_softmax_of_few_bits_is_one_in_float32(exact, monkeypatch):
    """Where the machine's own is not, by way of float32."""
    if not exact:
        monkeypatch.setattr(softmax, "_is_exact_here", lambda: False)
    elif not softmax._is_exact_here():
        pytest.skip("this machine's softmax of bfloat16 is not computed in float32")
    scores = tf.cast(tf.random.stateless_normal([4, 700], seed=[1, 2]), tf.bfloat16)
    upstream = tf.cast(tf.random.stateless_normal([4, 700], seed=[3, 4]), tf.bfloat16)

    @tf.function
    def with_gradient(scores):
        with tf.GradientTape() as tape:
            tape.watch(scores)
            found = masked_softmax([scores], [None])
        return found, tape.gradient(found, scores, upstream)

    found, gradient = with_gradient(scores)
    wide = tf.nn.softmax(tf.cast(scores, tf.float64))
    mean = tf.reduce_sum(wide * tf.cast(upstream, tf.float64), -1, keepdims=True)
    expected = wide * (tf.cast(upstream, tf.float64) - mean)
    np.testing.assert_allclose(tf.cast(found, tf.float64), wide, rtol=2.0**-8)
    # The probabilities' roundings once more, times what they are multiplied with.
    limit = 2.0**-7 * float(tf.reduce_max(tf.abs(expected)))
    np.testing.assert_allclose(tf.cast(gradient, tf.float64), expected, atol=limit)
