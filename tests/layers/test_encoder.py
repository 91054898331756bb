import dataclasses

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

from mate_tf.answers.inference import inference_function
from mate_tf.config import AttentionConfig, EncoderConfig
from mate_tf.features.token_features import TokenFeatures
from mate_tf.layers.compilation import portable_graph
from mate_tf.layers.encoder import (
    TableEncoder,
    first_index_in_cell,
    original_first_index_in_cell,
    summed_rows,
)
from tests.layers.small_layers import (
    ENCODER,
    OF_TABLE_ETC,
    random_features,
    random_weights,
    token_features,
)


def with_attention(*architecture: str, **options) -> EncoderConfig:
    return dataclasses.replace(ENCODER, attention=AttentionConfig(*architecture, **options))


TABLE_ETC = with_attention("table_etc", **OF_TABLE_ETC)
PLAIN = dataclasses.replace(with_attention("tapas"), num_layers=1)


def test_ids_and_positions_beyond_their_tables_are_refused_also_in_a_graph():
    encoder, features = TableEncoder(PLAIN), random_features()
    run = in_plain_graph(encoder)
    for wrong in (-1, 10**6):
        beyond = features._replace(input_ids=tf.fill(features.input_ids.shape, wrong))
        message = rf"input_ids from 0 to \d+ \(vocab_size\), got {wrong}"
        with pytest.raises(ValueError, match=message):
            encoder(beyond)
        with pytest.raises(tf.errors.InvalidArgumentError, match=rf"vocab_size.*\n?.*{wrong}"):
            run(beyond)
    encoder = TableEncoder(dataclasses.replace(PLAIN, position="absolute"))
    run = in_plain_graph(encoder)
    run(random_features(32))
    with pytest.raises(ValueError, match=r"expected at most 32 tokens .*, got 33"):
        encoder(random_features(33))
    with pytest.raises(tf.errors.InvalidArgumentError, match="at most 32 tokens"):
        run(random_features(33))


def in_plain_graph(encoder: TableEncoder):
    """A graph of any length, without XLA, whose compilation takes seconds."""
    encoder.build()
    run = inference_function(encoder)
    with portable_graph():
        for length in (5, 6):  # the second is traced for all
            run(random_features(length))
    return run


def test_type_ids_beyond_their_table_share_its_last_row_or_add_nothing_in_the_original():
    encoder = TableEncoder(ENCODER)
    features = random_features()
    last, beyond = (
        features._replace(column_ranks=tf.fill(features.column_ranks.shape, rank))
        for rank in (ENCODER.type_vocab_sizes[4] - 1, 100_000)
    )
    np.testing.assert_array_equal(encoder(beyond).sequence_output, encoder(last).sequence_output)
    assert np.abs(encoder(last).sequence_output - encoder(features).sequence_output).max() > 1e-3
    original = dataclasses.replace(ENCODER, original_ids=True)
    encoder = TableEncoder(original)
    features = random_features()
    outside = features._replace(column_ranks=tf.fill(features.column_ranks.shape, 300))
    disabled = TableEncoder(dataclasses.replace(original, disabled_features=("column_ranks",)))
    encoder.build()
    disabled.build()
    ours = {weight.path.split("/", 1)[1]: weight for weight in encoder.weights}
    for weight in disabled.weights:
        weight.assign(ours[weight.path.split("/", 1)[1]])
    np.testing.assert_allclose(
        encoder(outside).sequence_output, disabled(features).sequence_output, atol=1e-6
    )


@pytest.mark.parametrize("config", [ENCODER, TABLE_ETC], ids=["mate", "table_etc"])
def test_intermediates_come_on_request(config):
    encoder = random_weights(TableEncoder(config), size=0.3)
    assert encoder(random_features()).intermediates == {}
    output = encoder(random_features(), return_intermediates=True)
    assert list(output.intermediates) == ["embedding", "layer_0", "layer_1"]
    for value in output.intermediates.values():
        assert value.shape == (2, 30, 16)
    np.testing.assert_array_equal(output.intermediates["layer_1"], output.sequence_output)
    np.testing.assert_array_equal(
        encoder.pooler(output.sequence_output[:, 0]), output.pooled_output
    )


def test_global_tokens_of_table_etc_carry_what_is_far_away():
    encoder = random_weights(TableEncoder(TABLE_ETC), size=0.3)
    features = random_features()
    ids = features.input_ids.numpy()
    ids[:, 20:] = (ids[:, 20:] + 1) % 40
    changed = encoder(features._replace(input_ids=tf.constant(ids)), return_intermediates=True)
    named = encoder(features, return_intermediates=True).intermediates
    # 16 tokens away are out of reach of two layers of radius 4; by global tokens two suffice.
    first, second = (
        np.abs(changed.intermediates[name] - named[name])[:, :5] for name in ("layer_0", "layer_1")
    )
    assert first.max() == 0.0
    assert second.max() > 1e-4


@pytest.mark.parametrize("zero_beyond", [False, True])
@pytest.mark.parametrize("is_portable", [False, True])
@pytest.mark.parametrize("dtype", [tf.float32, tf.bfloat16], ids=lambda dtype: dtype.name)
def test_sums_rows_and_has_sparse_gradients(zero_beyond, is_portable, dtype):
    random = np.random.default_rng(0)
    tables = [tf.Variable(tf.cast(random.normal(size=(rows, 4)), dtype)) for rows in (7, 3, 5)]
    ids = [tf.constant(random.integers(-1, 8, (2, 6)), tf.int32) for _ in tables]

    def defined(*tables):
        total = 0.0
        for table, one in zip(tables, ids, strict=True):
            rows = table.shape[0]
            inside = tf.cast((one >= 0) & (one < rows), tf.float32)[..., None]
            gathered = tf.cast(tf.gather(table, tf.clip_by_value(one, 0, rows - 1)), tf.float32)
            total += gathered * inside if zero_beyond else gathered
        return total

    def ours(*tables):
        if not is_portable:
            return summed_rows(tables, ids, zero_beyond)
        with portable_graph():
            return summed_rows(tables, ids, zero_beyond)

    results = []
    weights = tf.constant(random.normal(size=(2, 6, 4)), tf.float32)
    for function in (ours, defined):
        with tf.GradientTape() as tape:
            total = function(*map(tf.convert_to_tensor, tables))
            loss = tf.reduce_sum(total * weights)
        results.append((total, tape.gradient(loss, tables)))
    (total, gradients), (expected, wanted) = results
    assert total.dtype == tf.float32
    np.testing.assert_allclose(total, expected, atol=1e-6)
    for found, one in zip(gradients, wanted, strict=True):
        assert isinstance(found, tf.IndexedSlices)
        # Some rows are summed up a few times, in the table's dtype.
        np.testing.assert_allclose(
            tf.cast(tf.convert_to_tensor(found), tf.float32),
            tf.cast(tf.convert_to_tensor(one), tf.float32),
            atol=1e-6 if dtype == tf.float32 else 8 * 2.0**-7,
        )


def table(question: int, cells: list[int], columns: int, padding: int) -> TokenFeatures:
    """A question, then cells of the given numbers of tokens in row-major order, then padding."""
    cell = np.repeat(np.arange(len(cells)), cells)
    row, column = (
        np.pad(ids, (question, padding)) for ids in (cell // columns, cell % columns + 1)
    )
    return token_features(row_ids=row, column_ids=column)


def test_each_cell_begins_anew_padding_counts_on_and_rows_beyond_256_do_not_alias():
    begins = first_index_in_cell(table(question=2, cells=[1, 2, 3], columns=2, padding=2))
    np.testing.assert_array_equal(begins, [[0, 0, 2, 3, 3, 5, 5, 5, 0, 0]])
    tokens = table(question=1, cells=[1] * 2 * 300, columns=2, padding=0)
    own = np.arange(601)[None]
    np.testing.assert_array_equal(first_index_in_cell(tokens), own)
    assert (original_first_index_in_cell(tokens).numpy() < own).any()


@given(
    question=st.integers(1, 5),
    cells=st.lists(st.integers(1, 4), min_size=1, max_size=30),
    columns=st.integers(1, 6),
    padding=st.integers(0, 5),
)
def test_equals_the_original_below_256_rows(question, cells, columns, padding):
    tokens = table(question, cells, columns, padding)
    np.testing.assert_array_equal(first_index_in_cell(tokens), original_first_index_in_cell(tokens))
