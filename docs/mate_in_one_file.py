"""MATE's encoder on one page, to understand it or to port it: NumPy, one example, no training.

It computes what mate_tf's `TableEncoder` computes with the published window, and a test holds the
two equal (tests/layers/test_mate_in_one_file.py). The library does the same for batches, all heads
at once, in few passes over memory. The paper is Eisenschlos et al., 2021, "MATE: Multi-view
Attention for Table Transformer Efficiency".

Weights are a dictionary of arrays with the names of the TAPAS release's checkpoints.

Shapes: S tokens, D hidden, H heads, E = D / H head size, G global tokens, R tokens of a bucket,
N buckets, W = 3 * R window, F queries, T keys.
"""

import numpy as np

TYPES = (  # the seven type embeddings, in the order of the checkpoints
    "segment_ids",
    "column_ids",
    "row_ids",
    "prev_label_ids",
    "column_ranks",
    "inv_column_ranks",
    "numeric_relations",
)


def encode(weights, features, num_layers, num_heads, row_heads, bucket_size, global_size):
    """The vector of each token.

    Args:
        weights: float arrays by name.
        features: int [S] each: input_ids, input_mask (1 real, 0 padding), and those of TYPES.
        num_layers: how many blocks there are.
        num_heads: H.
        row_heads: how many heads attend within rows; the others attend within columns.
        bucket_size: R.
        global_size: G.

    Returns:
        float [S, D]; what it holds for padding has no meaning.
    """
    hidden = embed(weights, features)
    for layer in range(num_layers):
        name = f"bert/encoder/layer_{layer}"
        heads = (num_heads, row_heads, bucket_size, global_size)
        context = multi_head_attention(weights, f"{name}/attention/self", hidden, features, *heads)
        hidden = transform(weights, name, hidden, context)
    return hidden


# --- Embeddings (TAPAS paper, section 3) ---


def embed(weights, features):
    """The normalised sum of word, position and type embeddings. float [S, D]."""
    prefix = "bert/embeddings"
    total = weights[f"{prefix}/word_embeddings"][features["input_ids"]]
    positions = weights[f"{prefix}/position_embeddings"]
    total = total + positions[np.minimum(position_in_cell(features), len(positions) - 1)]
    for index, feature in enumerate(TYPES):
        table = weights[f"{prefix}/token_type_embeddings_{index}"]
        total = total + table[np.minimum(features[feature], len(table) - 1)]
    return layer_norm(weights, f"{prefix}/LayerNorm", total)


def position_in_cell(features):
    """Positions that restart in each cell, so that a table may have any length. int [S]."""
    row, column = features["row_ids"], features["column_ids"]
    index = np.arange(len(row))
    begins = np.ones(len(row), bool)
    begins[1:] = (row[1:] != row[:-1]) | (column[1:] != column[:-1])
    first = np.maximum.accumulate(np.where(begins, index, 0))
    outside_table = (row == 0) & (column == 0)
    return np.where(outside_table, index, index - first)


# --- Multi-view attention (MATE paper, section 3, figures 2 and 7) ---


def multi_head_attention(
    weights, name, hidden, features, num_heads, row_heads, bucket_size, global_size
):
    """The contexts of all heads, side by side. float [S, D]."""
    query, key, value = (
        np.split(linear(weights, f"{name}/{one}", hidden), num_heads, axis=1)
        for one in ("query", "key", "value")
    )  # H times [S, E] each
    contexts = []
    for head in range(num_heads):
        ids = features["row_ids"] if head < row_heads else features["column_ids"]
        contexts.append(
            multi_view_attention(
                query[head], key[head], value[head], ids, features, bucket_size, global_size
            )
        )
    return np.concatenate(contexts, axis=1)


def multi_view_attention(query, key, value, ids, features, bucket_size, global_size):
    """One head's context, in time and memory linear in S.

    Sorted by row or by column, tokens that may attend to each other are neighbours. The first G
    tokens of this order, the global ones, attend to all tokens and all attend to them. The others
    are cut into buckets of R tokens, and attend to their own bucket and to both neighbours.

    Args:
        query: float [S, E].
        key: float [S, E].
        value: float [S, E].
        ids: int [S], the rows or the columns of the tokens.
        features: int [S] each.
        bucket_size: R.
        global_size: G.

    Returns:
        float [S, E].
    """
    length, real = len(ids), features["input_mask"] > 0
    order = np.argsort(np.where(real, ids, ids.max() + 1), kind="stable")  # padding comes last
    buckets = max(1, -(-(length - global_size) // bucket_size))  # N
    # What fills the last bucket is padding: an index of some token, which no query may attend to.
    missing = global_size + buckets * bucket_size - length
    order_is_real = np.pad(real[order], (0, missing))
    padded = np.pad(order, (0, missing))
    global_, long = padded[:global_size], padded[global_size:].reshape(buckets, bucket_size)
    global_is_real = order_is_real[:global_size]
    long_is_real = order_is_real[global_size:].reshape(buckets, bucket_size)

    # The global tokens attend to the whole sequence, in its own order.
    everything = np.arange(length)
    to_all = allowed(global_, everything, ids, features) & real
    global_context = attend(query[global_], key, value, to_all)  # [G, E]

    # Each bucket attends to the global tokens, to itself, and to the next and the previous bucket.
    window = np.concatenate([long, np.roll(long, -1, axis=0), np.roll(long, 1, axis=0)], axis=1)
    exists = np.ones((3, buckets), bool)
    exists[1, -1] = exists[2, 0] = False  # the roll joins the ends, which do not meet
    window_is_real = np.concatenate(
        [long_is_real, np.roll(long_is_real, -1, axis=0), np.roll(long_is_real, 1, axis=0)], axis=1
    ) & np.repeat(exists.T, bucket_size, axis=1)  # [N, W]
    keys = np.concatenate([np.tile(global_, (buckets, 1)), window], axis=1)  # [N, G + W]
    key_is_real = np.concatenate([np.tile(global_is_real, (buckets, 1)), window_is_real], axis=1)
    mask = allowed(long, keys, ids, features) & key_is_real[:, None]  # [N, R, G + W]
    long_context = attend(query[long], key[keys], value[keys], mask)  # [N, R, E]

    context = np.empty_like(query)
    in_order = np.concatenate([global_context, long_context.reshape(-1, query.shape[1])])
    context[order] = in_order[:length]
    return context


def allowed(queries, keys, ids, features):
    """Whether tokens share a row or column, or one is outside the table: indices to [..., F, T]."""
    query, key = queries[..., :, None], keys[..., None, :]
    outside = features["segment_ids"] == 0
    return (ids[query] == ids[key]) | outside[query] | outside[key]


def attend(query, key, value, mask):
    """Scaled dot-product attention: [..., F, E], [..., T, E] and a mask to [..., F, E]."""
    scores = query @ np.swapaxes(key, -1, -2) / query.shape[-1] ** 0.5
    scores = np.where(mask, scores, -1e9)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True) @ value


# --- The rest of a block (Vaswani et al., 2017, in BERT's form) ---


def transform(weights, name, hidden, context):
    """Projection and feed-forward, each with a residual sum and a normalisation. float [S, D]."""
    attended = linear(weights, f"{name}/attention/output/dense", context)
    hidden = layer_norm(weights, f"{name}/attention/output/LayerNorm", hidden + attended)
    wide = gelu(linear(weights, f"{name}/intermediate/dense", hidden))
    transformed = linear(weights, f"{name}/output/dense", wide)
    return layer_norm(weights, f"{name}/output/LayerNorm", hidden + transformed)


def linear(weights, name, inputs):
    """An affine map of the last axis."""
    return inputs @ weights[f"{name}/kernel"] + weights[f"{name}/bias"]


def layer_norm(weights, name, inputs):
    """Mean 0 and variance 1 along the last axis, then scaled and shifted."""
    centred = inputs - inputs.mean(axis=-1, keepdims=True)
    normal = centred / np.sqrt((centred**2).mean(axis=-1, keepdims=True) + 1e-12)
    return normal * weights[f"{name}/gamma"] + weights[f"{name}/beta"]


def gelu(inputs):
    """A Gaussian error linear unit, in the approximation of the checkpoints."""
    inner = np.sqrt(2 / np.pi) * (inputs + 0.044715 * inputs**3)
    return 0.5 * inputs * (1 + np.tanh(inner))
