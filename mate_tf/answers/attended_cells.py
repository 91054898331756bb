"""Which cells an answer's tokens attended to, by group of heads, in memory linear in the length.

A context is a sum of values weighted by attention. So the gradient of a sum of contexts with
respect to the values is a sum of attention, however an architecture computes it.

Shapes: B batch, S sequence, H heads, E head size, D hidden, F from, T to; R rows and C columns of
the table's body.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from mate_tf.answers.answer import Answer
from mate_tf.features.token_features import TokenFeatures
from mate_tf.layers.attention.kinds import SelfAttention
from mate_tf.layers.attention.patterns import head_groups
from mate_tf.layers.encoder import TableEncoder
from mate_tf.tables.table import Table


def received_attention(
    layer: SelfAttention, hidden_states: tf.Tensor, plan: object, senders: tf.Tensor
) -> tf.Tensor:
    """The attention that tokens receive from weighted senders, in each head of a layer.

    The layer's input is float [B, S, D], its plan that of training, the senders' weights float
    [B, S]. It is not TableETC's, whose tokens attend through global tokens.

    Returns:
        float32 [B, H, T]: for each token the sum over senders of weight times attention to it. The
        sum over T is the sum of the weights. A Linformer's attention reaches tokens through its
        projection and may be negative.
    """
    projected = layer.heads(hidden_states)  # [B, S, H, E] each
    value = tf.zeros_like(projected.value)
    projected = projected._replace(value=value)
    with tf.GradientTape() as tape:
        tape.watch(value)
        # Differentiable: as in training, but without dropout.
        context = layer.attend(projected, plan, None, training=True)  # [B, F, H, E]
        # All components of a value are weighted alike: one is enough.
        sent = tf.reduce_sum(tf.cast(context[..., 0], tf.float32) * senders[:, :, tf.newaxis])
    received = tape.gradient(sent, value)[..., 0]  # [B, T, H]
    return tf.transpose(tf.cast(received, tf.float32), [0, 2, 1])


class AttendedCells(NamedTuple):
    """An answer, and where the attention of its cells' tokens went.

    By group of heads: "row heads" and "column heads", or "all heads".
    """

    answer: Answer
    groups: dict[str, np.ndarray]  # each cell's share, float [R+1, C] with the header as row 0
    question: dict[str, float]  # the share of the question and the special tokens


def attended_cells(
    encoder: TableEncoder,
    table: Table,
    features: TokenFeatures,
    answer: Answer,
    histogram_row: bool = False,
    rows_asked: Sequence[int] | None = None,
) -> AttendedCells:
    """The attention of the tokens of an answer's cells.

    Without an answer the first alternative's cells are taken; without cells, as for a class, [CLS].
    The features are int [1, S], of the rows that were asked, by default all; a histogram row at
    their end counts as text. ValueError for the encoder of a TableETC, whose tokens attend through
    global tokens.
    """
    rows, columns = (np.asarray(ids)[0] for ids in (features.row_ids, features.column_ids))  # [S]
    if histogram_row:
        rows, columns = np.where(rows < rows.max(), (rows, columns), 0)
    if rows_asked is not None:
        rows = np.array([0, *(row + 1 for row in rows_asked)])[rows]
    shown = answer if answer.cells or not answer.alternatives else answer.alternatives[0]
    senders = np.zeros(len(rows), np.float32)
    for cell in shown.cells:
        senders += (rows == cell.row + 1) & (columns == cell.column + 1)
    if not senders.any():
        senders[0] = 1.0
    received = attention_by_group(encoder, features, senders[np.newaxis] / senders.sum())
    shape = (table.num_rows + 1, table.num_columns + 1)
    groups, question_attention = {}, {}
    for name, token_attention in received.items():
        grid = np.zeros(shape, np.float64)
        np.add.at(grid, (rows, columns), token_attention[0])
        groups[name], question_attention[name] = grid[:, 1:], float(grid[:, 0].sum())
    return AttendedCells(answer, groups, question_attention)


def attention_by_group(
    encoder: TableEncoder, features: TokenFeatures, senders: np.ndarray
) -> dict[str, np.ndarray]:
    """As `received_attention`, by group of heads: float32 [B, S], the mean over layers and heads.

    The features are int [B, S]; ValueError for a TableETC.
    """
    groups = head_groups(encoder.config.attention, encoder.config.num_heads)
    features = TokenFeatures.of(features)
    plan = encoder.blocks[0].attention.plan(features, training=True)
    weights = tf.convert_to_tensor(senders, tf.float32)
    outputs = encoder(features, return_intermediates=True).intermediates
    inputs = ["embedding", *(f"layer_{i}" for i in range(len(encoder.blocks) - 1))]
    received = [
        received_attention(block.attention, outputs[name], plan, weights)  # of [B, S, D]
        for block, name in zip(encoder.blocks, inputs, strict=True)
    ]
    by_head = tf.reduce_mean(tf.stack(received), axis=0).numpy()  # [B, H, S]
    ends = np.cumsum([group.num_heads for group in groups])
    parts = np.split(by_head, ends[:-1], axis=1)
    return {group.name: part.mean(axis=1) for group, part in zip(groups, parts, strict=True)}
