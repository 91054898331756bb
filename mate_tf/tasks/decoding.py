"""Answers of a batch of questions, by the kind of the model that was asked.

Shapes: B batch, S sequence.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import tensorflow as tf

from mate_tf.tables.table import Table
from mate_tf.tables.token_features import TokenFeatures
from mate_tf.tables.wordpiece import Wordpiece
from mate_tf.tasks.answers import Answer
from mate_tf.tasks.kinds import KINDS, Asked, Kind, TaskConfig, answering_kind


def decode_batch(
    config: TaskConfig,
    tables: Sequence[Table | None],
    features: TokenFeatures,
    outputs: Mapping[str, tf.Tensor],
    wordpiece: Wordpiece,
    histogram_row: bool = False,
    num_alternatives: int = 0,
) -> list[Answer]:
    """Reads the answers off a model's outputs for a batch.

    Args:
        config: the model's task config, which says what kind it is.
        tables: the tables asked, B of them; None for a sentence alone, which can be classified.
        features: int32 [B, S].
        outputs: what the model returned (`kinds.KINDS`).
        wordpiece: what the features were made with, to find a span's text in its cell.
        histogram_row: whether the features end in a histogram row, which is never an answer.
        num_alternatives: the most alternatives that an answer gets.

    Raises:
        ValueError: if an output is not finite, an id is beyond its table's size, or a question that
            needs a table has none.
    """
    kind = KINDS[answering_kind(config)]
    _check_finite(kind, outputs)
    with_tables = [table for table in tables if table is not None]
    if kind.needs_tables and len(with_tables) < len(tables):
        raise ValueError(
            f"expected a table for each of {len(tables)} questions, got {len(with_tables)}; only a "
            "classifier takes a sentence alone"
        )
    asked = Asked(with_tables, features, wordpiece, histogram_row)
    return kind.decode(config, asked, outputs, num_alternatives)


def _check_finite(kind: Kind, outputs: Mapping[str, tf.Tensor]) -> None:
    """ValueError where a number that answers are read from is none."""
    for name in kind.outputs:
        if name not in outputs:
            continue
        values = np.asarray(outputs[name])  # [B, ...]
        broken = np.flatnonzero(~np.isfinite(values.reshape(len(values), -1)).all(axis=1))  # [b]
        if len(broken):
            raise ValueError(
                f"expected finite {name} of the model, got NaN or infinity for {len(broken)} of "
                f"{len(values)} questions; see whether its weights are finite, and take a "
                "checkpoint of which they are"
            )
