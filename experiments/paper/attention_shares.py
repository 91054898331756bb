"""Where the attention of a table's tokens flows: to [CLS], the question, headers and cells.

MATE paper, section 7, "Observed Attention Sparsity", and table 7. A context is a sum of values,
weighted by the attention: with values that say what a token is, contexts are the attention that
goes there, whatever the way in which an architecture computes it, in memory linear in the length.

Shapes: B batch, S sequence, H heads, E head size, D hidden, K kinds of tokens.
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from mate_tf.answers.attended_cells import GROUP_NAMES, layer_inputs
from mate_tf.features.token_features import TokenFeatures
from mate_tf.layers.attention.patterns import head_groups
from mate_tf.layers.attention.projections import HeadProjections
from mate_tf.layers.encoder import TableEncoder

# What the attention of a token of the table's body goes to, in the order of the paper's table 7.
KINDS = (
    "[CLS]",
    "question",
    "header, other column",
    "header, same column",
    "cell, other row and column",
    "cell, same row",
    "cell, same column",
    "same cell",
)
# Of these each layer learns what queries of zero see; of the others it is the same in all layers.
_LEARNED = ("tableformer", "mate_tableformer", "linformer")
UNASKED = ", unasked"  # after a group's name, of queries of zero
_CLS, _QUESTION, _HEADER, _CELL = 0, 1, 2, 4


class AttentionFlow(NamedTuple):
    """Sums over the tokens of tables' bodies, of which flows of several batches can be added.

    Attributes:
        tokens: how many tokens there are.
        attention: by group of heads ("row heads" and "column heads", or "all heads") what goes to
            each of KINDS, float64 [K], the mean over layers and the group's heads.
        unasked: the same of queries of zero: equal for all tokens that the group's heads may see,
            but for TableFormer's biases and Linformer's projections.
        heads: how many heads each group has.
        uniform: the same of attention that is equal for all tokens but padding, float64 [K].
    """

    tokens: int
    attention: Mapping[str, np.ndarray]
    unasked: Mapping[str, np.ndarray]
    heads: Mapping[str, int]
    uniform: np.ndarray

    def plus(self, other: "AttentionFlow") -> "AttentionFlow":
        """Both together, of the same model."""
        return AttentionFlow(
            self.tokens + other.tokens,
            {name: sums + other.attention[name] for name, sums in self.attention.items()},
            {name: sums + other.unasked[name] for name, sums in self.unasked.items()},
            self.heads,
            self.uniform + other.uniform,
        )

    def shares(self) -> dict[str, np.ndarray]:
        """Of one token: float64 [K], sum 1.

        Returns:
            By group and for all heads together, each under its name and, of queries of zero, under
            NAME + UNASKED; and "uniform".
        """
        attention, unasked = self._shares(self.attention), self._shares(self.unasked)
        shares: dict[str, np.ndarray] = {}
        for name, share in attention.items():
            shares |= {name: share, name + UNASKED: unasked[name]}
        return shares | {"uniform": self.uniform / self.tokens}

    def _shares(self, sums: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        shares = {name: of_group / self.tokens for name, of_group in sums.items()}
        if len(shares) > 1:
            weights = np.array([self.heads[name] for name in shares], np.float64)
            shares["all heads"] = np.average(list(shares.values()), axis=0, weights=weights)
        return shares


def attention_flow(encoder: TableEncoder, features: TokenFeatures) -> AttentionFlow:
    """The attention of the body's tokens in a batch, by what it goes to.

    Args:
        encoder: built.
        features: int [B, S].

    Raises:
        ValueError: if the encoder has global tokens of its own (TableETC), through which its tokens
            attend, or no token is one of a table's body.
    """
    rows, columns = (np.asarray(ids) for ids in (features.row_ids, features.column_ids))  # [B, S]
    real = np.asarray(features.input_mask) > 0
    senders = real & (rows > 0) & (columns > 0)
    if not senders.any():
        raise ValueError("expected tables with cells, got features without any")
    groups = _named_heads(encoder)
    plan = encoder.blocks[0].attention.plan(features, training=False)
    sums, unasked = ({name: np.zeros(len(KINDS)) for name in groups} for _ in range(2))
    uniform = np.zeros(len(KINDS))
    attentions = [block.attention for block in encoder.blocks]
    inputs = layer_inputs(encoder, features)
    heads = [layer.heads(hidden) for layer, hidden in zip(attentions, inputs, strict=True)]
    is_learned = encoder.config.attention.architecture in _LEARNED
    unasked_layers = len(attentions) if is_learned else 1
    size = encoder.config.hidden_size // encoder.config.num_heads
    for value, kinds in _indicators(rows, columns, real, size):
        of_all = value.sum(axis=1) / real.sum(axis=1, keepdims=True)  # [B, E]
        uniform += _by_kind(np.broadcast_to(of_all[:, np.newaxis], value.shape), kinds, senders)
        for index, (layer, (query, key, _)) in enumerate(zip(attentions, heads, strict=True)):
            asked = _context(layer, query, key, value, plan)  # [B, S, H, E]
            _add(sums, asked / len(attentions), groups, kinds, senders)
            if index < unasked_layers:
                of_zero = _context(layer, tf.zeros_like(query), key, value, plan)
                _add(unasked, of_zero / unasked_layers, groups, kinds, senders)
    counts = {name: of_group.stop - of_group.start for name, of_group in groups.items()}
    return AttentionFlow(int(senders.sum()), sums, unasked, counts, uniform)


def _named_heads(encoder: TableEncoder) -> dict[str, slice]:
    """The heads of each group, by its name."""
    named, first = {}, 0
    for group in head_groups(encoder.config.attention, encoder.config.num_heads):
        named[GROUP_NAMES[group.sort_by]] = slice(first, first + group.num_heads)
        first += group.num_heads
    return named


def _indicators(rows: np.ndarray, columns: np.ndarray, real: np.ndarray, size: int):
    """Yields values that say what tokens are, and the kind of each for each sender.

    Yields:
        float32 [B, S, E], 1 where a token is what the component stands for, and int [B, S, E], the
        index in KINDS of that for the sender of each place.
    """
    of_text = real & (columns == 0)
    first = np.arange(rows.shape[1]) == 0
    value = np.zeros((*rows.shape, size), np.float32)
    value[:, :, 0], value[:, :, 1] = of_text & first, of_text & ~first
    kinds = np.broadcast_to(np.arange(size) + _CLS, value.shape).clip(max=_QUESTION)
    yield value, kinds
    last_row = int(rows.max())
    for column in range(1, int(columns.max()) + 1):
        in_column = real & (columns == column)
        is_same_column = (columns == column)[:, :, np.newaxis]
        for start in range(0, last_row + 1, size):
            row = np.arange(start, start + size)
            value = (in_column[:, :, np.newaxis] & (rows[:, :, np.newaxis] == row)).astype(
                np.float32
            )
            is_same_row = rows[:, :, np.newaxis] == row
            of_cells = _CELL + is_same_row + 2 * is_same_column
            yield value, np.where(row == 0, _HEADER + is_same_column, of_cells)


def _context(
    layer: HeadProjections, query: tf.Tensor, key: tf.Tensor, value: np.ndarray, plan: object
) -> np.ndarray:
    """What each token's attention brings of values that all heads share: [B, S, H, E]."""
    num_heads = query.shape[2]
    values = tf.repeat(tf.constant(value)[:, :, tf.newaxis], num_heads, axis=2)
    values = tf.cast(values, query.dtype)
    context = layer.attend(query, key, values, plan, None, training=False)
    return tf.cast(context, tf.float32).numpy()


def _add(
    sums: dict[str, np.ndarray],
    context: np.ndarray,
    groups: Mapping[str, slice],
    kinds: np.ndarray,
    senders: np.ndarray,
) -> None:
    """Adds to each group's sums [K] the mean of its heads' contexts [B, S, H, E] by kind."""
    for name, of_group in groups.items():
        sums[name] += _by_kind(context[:, :, of_group].mean(axis=2), kinds, senders)


def _by_kind(parts: np.ndarray, kinds: np.ndarray, senders: np.ndarray) -> np.ndarray:
    """The parts [B, S, E] of the senders [B, S], added up by kind: float64 [K]."""
    return np.bincount(kinds[senders].ravel(), parts[senders].ravel(), minlength=len(KINDS))
