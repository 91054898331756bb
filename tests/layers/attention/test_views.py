"""Views by gathered rows against their definition: sort, cut, roll."""

import numpy as np
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from mate_tf.layers.attention.views import in_sequence, places, views_of

HEADS, SIZE = 3, 2


def defined_views(embedding: tf.Tensor, order: tf.Tensor, bucket: int, size: int, neighbours: int):
    """The global part, the buckets and the windows of [B, S, h, E], by plain operations."""
    sequence = tf.gather(embedding, order, axis=1, batch_dims=1)
    length = sequence.shape[1]
    buckets = max(1, -(-(length - size) // bucket))
    missing = size + buckets * bucket - length
    padding = tf.repeat(embedding[:, :1], missing, axis=1)
    sequence = tf.transpose(tf.concat([sequence, padding], axis=1), [0, 2, 1, 3])
    long = tf.reshape(sequence[:, :, size:], [-1, sequence.shape[1], buckets, bucket, SIZE])
    shifts = [0] + [s for distance in range(1, neighbours + 1) for s in (-distance, distance)]
    window = tf.concat([tf.roll(long, shift, axis=2) for shift in shifts], axis=3)
    return sequence[:, :, :size], long, window


@st.composite
def sequences(draw):
    batch, length = draw(st.integers(1, 2)), draw(st.integers(1, 17))
    orders = [[draw(st.permutations(range(length))) for _ in range(batch)] for _ in range(2)]
    embedding = np.random.default_rng(0).normal(size=(batch, length, HEADS, SIZE))
    return tf.constant(embedding, tf.float32), [tf.constant(order, tf.int32) for order in orders]


@settings(max_examples=30)
@given(
    inputs=sequences(),
    bucket=st.integers(1, 5),
    size=st.integers(1, 6),
    neighbours=st.integers(1, 2),
)
def test_views_and_their_gradients_are_those_of_the_definition(inputs, bucket, size, neighbours):
    embedding, orders = inputs
    where = places(orders, [1, 2], bucket, size, neighbours)
    names = ("full", "global_", "long", "window")
    results = []
    for by_rows in (True, False):
        with tf.GradientTape() as tape:
            tape.watch(embedding)
            if by_rows:
                views = [
                    tuple(getattr(view, name) for name in names)
                    for view in views_of(embedding, where, names)
                ]
            else:
                groups = zip(tf.split(embedding, [1, 2], axis=2), orders, strict=True)
                views = [
                    (
                        tf.transpose(part, [0, 2, 1, 3]),
                        *defined_views(part, order, bucket, size, neighbours),
                    )
                    for part, order in groups
                ]
            missing = views[0][1].shape[2] + np.prod(views[0][2].shape[2:4]) - embedding.shape[1]
            loss = 0.0
            for number, view in enumerate(tf.nest.flatten(views)):
                weights = np.random.default_rng(number).normal(size=view.shape)
                loss += tf.reduce_sum(view * tf.constant(weights, tf.float32))
        results.append((views, tape.gradient(loss, embedding)))
    for ours, theirs in zip(*(tf.nest.flatten(views) for views, _ in results), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    if not missing:  # padding has no gradient with us, as it is masked
        np.testing.assert_allclose(results[0][1], results[1][1], atol=1e-5)


@settings(max_examples=30)
@given(inputs=sequences(), bucket=st.integers(1, 5), size=st.integers(1, 6))
def test_the_way_back_undoes_the_order_and_has_the_gradient_of_a_permutation(inputs, bucket, size):
    embedding, orders = inputs
    where = places(orders, [1, 2], bucket, size)
    views = views_of(embedding, where, ("global_", "long"))
    parts = [(view.global_, view.long) for view in views]
    weights = tf.constant(np.random.default_rng(1).normal(size=embedding.shape), tf.float32)
    with tf.GradientTape() as tape:
        tape.watch(parts)
        back = in_sequence(parts, where)
        loss = tf.reduce_sum(back * weights)
    np.testing.assert_array_equal(back, embedding)
    gradients = tape.gradient(loss, parts)
    # What came from a token gets the token's weight; padding gets nothing.
    np.testing.assert_array_equal(in_sequence(gradients, where), weights)
    total = sum(float(tf.reduce_sum(tf.abs(part))) for part in tf.nest.flatten(gradients))
    np.testing.assert_allclose(total, tf.reduce_sum(tf.abs(weights)), rtol=1e-5)
