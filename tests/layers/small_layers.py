"""What tests of layers share: token features, and layers with random weights."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from hypothesis import strategies as st

from mate_tf.config import ARCHITECTURES, AttentionConfig, EncoderConfig
from mate_tf.features.token_features import TAPAS_FEATURES, TokenFeatures
from mate_tf.layers.attention.kinds import SelfAttention
from mate_tf.layers.attention.patterns import Projected, heads_first

ENCODER = EncoderConfig(
    vocab_size=40,
    hidden_size=16,
    num_layers=2,
    num_heads=4,
    intermediate_size=24,
    max_position_embeddings=32,
    type_vocab_sizes=(3, 8, 8, 2, 8, 8, 10),
    attention=AttentionConfig(bucket_size=4, global_size=8, dense_up_to=0),
)
LENGTH = 20  # of a Linformer's sequences
OF_TABLE_ETC: dict[str, Any] = dict(num_global_tokens=16, local_radius=4, max_relative_distance=3)
HIDDEN = 8
# Sums of some 60 products of unit size in float32, in another order.
TOLERANCE = 1e-5


def attentions(length: int = LENGTH) -> dict[str, AttentionConfig]:
    """All kinds of attention at small sizes, by name."""
    of_mate = ("mate", "mate_tableformer", "mate_neighbours")
    views: dict[str, Any] = dict(bucket_size=4, global_size=6)
    options: dict[str, dict[str, Any]] = {
        "linformer": dict(sequence_length=length, projected_length=5),
        "table_etc": OF_TABLE_ETC,
        **dict.fromkeys(of_mate, views),
    }
    found = {name: AttentionConfig(name, **options.get(name, {})) for name in ARCHITECTURES}
    for name in of_mate:
        found[f"{name}, views"] = AttentionConfig(name, "multi_view", **views)
        tiles: dict[str, Any] = dict(bucket_size=8, coverage=1.0)
        found[f"{name}, tiles"] = AttentionConfig(name, "multi_view", **tiles)
    return found | {
        "mate, by length": AttentionConfig(**views, dense_up_to=10),
        "mate, all pairs": AttentionConfig("mate", "dense", **views),
        "table_etc, all pairs": AttentionConfig("table_etc", "dense", **OF_TABLE_ETC),
        "tableformer, embedding": AttentionConfig("tableformer", relation_kind="embedding"),
    }


Token = tuple[int, int, int]  # segment, column, row
QUESTION: Token = (0, 0, 0)


def cells(rows: int, columns: int, size: int = 1) -> list[Token]:
    """The tokens of a table row by row, the header first; each cell has `size` of them."""
    return [(1, c + 1, r) for r in range(rows) for c in range(columns) for _ in range(size)]


def token_features(**fields: Any) -> TokenFeatures:
    """Features [B, S] of these values, [S] or [B, S]; what is not given is zero."""
    arrays = {name: np.atleast_2d(np.asarray(value, np.int32)) for name, value in fields.items()}
    zeros = np.zeros_like(next(iter(arrays.values())))
    names = [*TAPAS_FEATURES, *arrays.keys() - set(TAPAS_FEATURES)]
    return TokenFeatures(**{name: tf.constant(arrays.get(name, zeros)) for name in names})


def features_of(examples: Sequence[Sequence[Token]], length: int) -> TokenFeatures:
    """Features of examples, each cut or padded to a length."""
    ids = np.zeros((4, len(examples), length), np.int32)
    for index, tokens in enumerate(examples):
        for place, token in enumerate(tokens[:length]):
            ids[:, index, place] = 1, *token
    names = ("input_mask", "segment_ids", "column_ids", "row_ids")
    return token_features(**dict(zip(names, ids, strict=True)))


def serialized(
    rows: Sequence[int], columns: Sequence[int], question: int = 3, seed: int = 0, length: int = 0
) -> tuple[TokenFeatures, list[int]]:
    """A table's tokens in an order of its rows and columns, and their places in its first order.

    Cells have one to three tokens, whose ids and ranks follow from the cell alone.
    """
    random = np.random.default_rng(seed)
    tokens: list[tuple[Any, ...]] = [
        ((0, 0, place), random.integers(0, 40), 0, 0, 0, 0) for place in range(question)
    ]
    content = {
        (row, column): (random.integers(0, 40, random.integers(1, 4)), random.integers(0, 8))
        for row in range(len(rows) + 1)
        for column in range(1, len(columns) + 1)
    }
    for row_id, row in enumerate((0, *rows)):
        for column_id, column in enumerate(columns, start=1):
            ids, rank = content[row, column]
            for place, id_ in enumerate(ids):
                tokens.append(((row, column, place), id_, 1, column_id, row_id, rank))
    keys, *values = zip(*tokens, strict=True)
    names = ("input_ids", "segment_ids", "column_ids", "row_ids", "column_ranks")
    features: dict[str, Any] = dict(zip(names, values, strict=True))
    features["inv_column_ranks"] = features["column_ranks"]
    features |= {"input_mask": [1] * len(keys), "part_of_speech_ids": [0] * len(keys)}
    missing = max(0, length - len(keys))
    padded = {name: np.pad(ids, (0, missing)) for name, ids in features.items()}
    return token_features(**padded), sorted(range(len(keys)), key=keys.__getitem__)


def in_first_order(encoder: Any, table: tuple[TokenFeatures, list[int]]) -> np.ndarray:
    """The encoder's output [S, D] for what `serialized` gives."""
    features, places = table
    return encoder(features).sequence_output.numpy()[0][places]


def random_features(length: int = 30) -> TokenFeatures:
    """Two examples with values in all features, whose first ends after 16 tokens."""
    random = np.random.default_rng(0)
    shape = 2, length
    row, column = np.sort(random.integers(0, 6, shape)), random.integers(1, 5, shape)
    row[:, :5] = column[:, :5] = 0
    mask = np.ones(shape)
    mask[0, 16:] = 0
    values = [random.integers(0, 40, shape), mask, column > 0, column, row]
    values += [random.integers(0, 2, shape) for _ in range(4)]
    values += [np.where(column > 0, 0, random.integers(1, 8, shape))]
    return token_features(**dict(zip(TokenFeatures._fields, values, strict=True)))


# Tokens of the question and of cells in any order.
ANY_TOKENS = st.lists(
    st.just(QUESTION) | st.tuples(st.just(1), st.integers(0, 6), st.integers(0, 5)), max_size=24
)
TABLES = st.builds(
    lambda question, *size: [QUESTION] * question + cells(*size),
    st.integers(0, 14),
    st.integers(1, 6),
    st.integers(1, 6),
    st.integers(1, 3),
)


def random_weights(*layers: keras.layers.Layer, size: float = 0.5) -> Any:
    """Builds layers of the same weights and gives them the same random values; returns them."""
    for layer in layers:
        layer.build((None, None, HIDDEN))
    random = np.random.default_rng(0)
    for weights in zip(*(layer.weights for layer in layers), strict=True):
        assert len({weight.path.partition("/")[2] for weight in weights}) == 1
        value = random.normal(0, size, weights[0].shape)
        for weight in weights:
            weight.assign(value)
    return layers if len(layers) > 1 else layers[0]


def random_heads(seed: int, *shape: int, dtype: Any = tf.float32) -> Projected:
    """Random queries, keys and values [B, H, S, E]."""
    random = np.random.default_rng(seed)
    return Projected(*(tf.constant(random.normal(size=shape), dtype) for _ in range(3)))


def context_of(layer: SelfAttention, heads: Projected, features: TokenFeatures) -> np.ndarray:
    """What a layer makes of heads, without dropout: float64 [B, H, S, E]."""
    context = layer.attend(Projected(*map(heads_first, heads)), layer.plan(features), None)
    assert context.dtype == heads.query.dtype
    return heads_first(context).numpy().astype(np.float64)


def hidden_states(batch: int, length: int) -> tf.Tensor:
    random = np.random.default_rng(1)
    return tf.constant(random.normal(size=(batch, length, HIDDEN)), tf.float32)


def of_any_length(function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    """A function of hidden states and features as a graph that knows neither's length."""
    signature = [tf.TensorSpec([None, None, HIDDEN])] + [tf.TensorSpec([None, None], tf.int32)] * 9

    @tf.function(input_signature=signature, autograph=False, **options)
    def run(hidden, *features):
        return function(hidden, TokenFeatures(*features))

    return lambda hidden, features: run(hidden, *features[:9])


def assert_same_where(counts: Any, actual: Any, expected: Any) -> None:
    """Compares [B, S, D] where tokens count [B, S]; nothing is infinite or no number anywhere."""
    assert np.isfinite(actual).all()
    where = np.asarray(counts)[..., None]
    np.testing.assert_allclose(actual * where, expected * where, atol=TOLERANCE)


def gradients(layer: Any, inputs: Any, features: Any, counts: Any, **options: Any) -> list:
    """Of a loss over the tokens that count [B, S], by the inputs and by the weights."""
    where = tf.cast(counts, tf.float32)[..., None]
    with tf.GradientTape() as tape:
        tape.watch(inputs)
        loss = tf.reduce_sum(tf.sin(layer(inputs, features, **options)) * where)
    sources = [inputs, *(weight.value for weight in layer.trainable_weights)]
    # A bias of columns has none where all heads are of rows.
    return tape.gradient(loss, sources, unconnected_gradients="zero")


def assert_same_gradients(actual: Iterable, expected: Iterable) -> None:
    for ours, theirs in zip(actual, expected, strict=True):
        scale = max(1.0, float(tf.reduce_max(tf.abs(theirs))))
        np.testing.assert_allclose(ours, theirs, atol=TOLERANCE * scale)


def attention_in_float64(query: Any, key: Any, value: Any, added: Any = 0.0) -> np.ndarray:
    """The definition, for [..., F, E] and [..., T, E]; `added` [..., F, T] to the scaled scores."""
    query, key, value = (np.asarray(heads).astype(np.float64) for heads in (query, key, value))
    scores = query @ np.swapaxes(key, -1, -2) / query.shape[-1] ** 0.5 + added
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True) @ value
