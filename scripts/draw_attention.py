"""Draws two pictures of the README: attention_views.png and table_relations.png.

    python -m scripts.draw_attention --output_dir=docs

The first shows who (down) may attend to whom (across) in MATE's row heads and column heads. The
second shows TableFormer's relations. Both show a small table, and both take the patterns and
relations from the functions that the models use.

Shapes: S tokens of one example.
"""

import pathlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from absl import flags

from experiments import program
from mate_tf.config import RELATION_NAMES, AttentionConfig, MateConfig
from mate_tf.features.token_features import TokenFeatures
from mate_tf.layers.attention.patterns import (
    HeadGroup,
    group_mask,
    head_groups,
    token_order,
    window_pairs,
)
from mate_tf.layers.attention.relations import pairwise_relation

QUESTION = ("[CLS]", "how", "high", "?", "[SEP]")
COLUMNS = "ABC"
CONFIG = MateConfig(bucket_size=4, global_size=5)
_PATTERN_COLORS = ("#ffffff", "#dfe7f1", "#2b5c9e")
_BUCKET_EDGE = "#c8503c"
# Cells in blue, headers in green, the sentence in orange: a hue for what attends.
_RELATION_COLORS = (
    "#f2f2f2",
    "#9ecae1",
    "#4a90c4",
    "#0b4a8f",
    "#756bb1",
    "#bcbddc",
    "#41ab5d",
    "#c7e9c0",
    "#00682b",
    "#a1d99b",
    "#fdae6b",
    "#e6550d",
    "#fdd0a2",
)


def draw_head_group(
    axis: Any,
    features: TokenFeatures,
    labels: Sequence[str],
    group: HeadGroup,
    attention: AttentionConfig,
) -> None:
    """Draws who (down) attends to whom (across) in one head group, in its order of the tokens.

    Blue: attends; grey: computed and masked; white: never computed. Lines mark the global part
    and the buckets.

    Args:
        axis: matplotlib axes.
        features: int [1, S] each.
        labels: a text for each token.
        group: of `head_groups(attention, num_heads)`.
        attention: the architecture and its window.

    Raises:
        ValueError: if there is not one example, or not one label for each token.
    """
    _check(features, labels)
    allowed = np.broadcast_to(group_mask(group, features)[0].numpy(), [len(labels)] * 2)
    order = np.arange(len(labels))
    if group.sort_by is not None:
        order = token_order(features, group.sort_by)[0].numpy()
    computed = np.ones_like(allowed)
    in_window = window_pairs(features, group.sort_by, attention)
    if in_window is not None and isinstance(attention, MateConfig):
        computed = in_window[0].numpy()
        for edge in range(attention.global_size, len(labels), attention.bucket_size):
            axis.axhline(edge - 0.5, color=_BUCKET_EDGE, linewidth=0.8)
            axis.axvline(edge - 0.5, color=_BUCKET_EDGE, linewidth=0.8)
    shade = np.where(allowed & computed, 2, np.where(computed, 1, 0))
    _draw(axis, shade, order, labels, _PATTERN_COLORS)


def draw_relations(
    axis: Any,
    features: TokenFeatures,
    labels: Sequence[str],
    disabled: tuple[int, ...] = (),
) -> None:
    """Draws what each token (down) is to each other (across), as TableFormer's biases see it.

    Args:
        axis: matplotlib axes; gets a legend of the relations that occur.
        features: int [1, S] each.
        labels: a text for each token.
        disabled: relations that count as "other".

    Raises:
        ValueError: if there is not one example, or not one label for each token.
    """
    from matplotlib.patches import Patch

    _check(features, labels)
    relation = pairwise_relation(features, features, disabled)[0].numpy()
    _draw(axis, relation, np.arange(len(labels)), labels, _RELATION_COLORS)
    patches = [
        Patch(facecolor=_RELATION_COLORS[kind], label=f"{kind} {RELATION_NAMES[kind]}")
        for kind in np.unique(relation)
    ]
    axis.legend(handles=patches, loc="center left", bbox_to_anchor=(1.02, 0.5), fontsize=8)


def _check(features: TokenFeatures, labels: Sequence[str]) -> None:
    shape = tuple(features.input_ids.shape)
    if shape != (1, len(labels)):
        raise ValueError(
            f"expected one example with a label for each token, got features of shape {shape} and "
            f"{len(labels)} labels"
        )


def _draw(
    axis: Any, values: np.ndarray, order: np.ndarray, labels: Sequence[str], colors: Sequence[str]
) -> None:
    from matplotlib.colors import ListedColormap

    axis.imshow(
        values[order][:, order], cmap=ListedColormap(colors), vmin=-0.5, vmax=len(colors) - 0.5
    )
    names = [labels[index] for index in order]
    axis.set_xticks(range(len(names)), names, rotation=90, fontsize=7)
    axis.set_yticks(range(len(names)), names, fontsize=7)
    axis.set_xlabel("attended to")
    axis.set_ylabel("attends")


def table_tokens(
    question: Sequence[str], header: Sequence[str], rows: Sequence[Sequence[str]]
) -> tuple[TokenFeatures, list[str]]:
    """A question and a table of one token a cell, to draw patterns on.

    Args:
        question: its tokens, [CLS] and [SEP] included if they are to be shown.
        header: a label for each column.
        rows: a label for each cell.

    Returns:
        Features int [1, S] and the labels [S].
    """
    row = [0] * len(question) + [r for r in range(len(rows) + 1) for _ in header]
    column = [0] * len(question) + [c + 1 for _ in range(len(rows) + 1) for c in range(len(header))]
    labels = [*question, *header, *(cell for cells in rows for cell in cells)]
    row_ids, column_ids = tf.constant([row]), tf.constant([column])
    zeros, ones = tf.zeros_like(row_ids), tf.ones_like(row_ids)
    segments = tf.cast(column_ids > 0, tf.int32)
    features = TokenFeatures(ones, ones, segments, column_ids, row_ids, zeros, zeros, zeros, zeros)
    return features, labels


def small_table(num_rows: int):
    """Features and labels of a question and a table with one token a cell."""
    rows = [[f"{column}{row}" for column in COLUMNS] for row in range(1, num_rows + 1)]
    return table_tokens(QUESTION, [f"head {column}" for column in COLUMNS], rows)


def main(_) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    folder = pathlib.Path(flags.FLAGS.output_dir)
    folder.mkdir(parents=True, exist_ok=True)
    figure, axes = plt.subplots(1, 2, figsize=(13, 6.8))
    titles = ("row heads: sorted by row", "column heads: sorted by column")
    features, labels = small_table(num_rows=6)
    for axis, group, title in zip(axes, head_groups(CONFIG, 2), titles, strict=True):
        draw_head_group(axis, features, labels, group, CONFIG)
        axis.set_title(title)
    figure.suptitle(
        f"blue: attends; grey: computed and masked; white: never computed "
        f"(global part of {CONFIG.global_size}, buckets of {CONFIG.bucket_size})",
        fontsize=10,
    )
    figure.tight_layout()
    _save(figure, folder / "attention_views.png")

    figure, axis = plt.subplots(figsize=(8.4, 5.6))
    draw_relations(axis, *small_table(num_rows=3))
    axis.set_title("TableFormer's relations")
    figure.tight_layout()
    _save(figure, folder / "table_relations.png")


def _save(figure, path: pathlib.Path) -> None:
    figure.savefig(path, dpi=110, bbox_inches="tight")  # with labels that reach beyond it
    print(f"written to {path}")


if __name__ == "__main__":
    flags.DEFINE_string("output_dir", "docs", "folder of the pictures")
    program.run(main)
