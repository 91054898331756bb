"""Draws MATE's two attention views on a small table: docs/attention_views.png.

    python -m scripts.draw_attention

Each picture shows who (down) may attend to whom (across), computed from the same patterns that the
model uses, with the tokens in the order of the view and the buckets that are computed.
"""

import pathlib

import numpy as np
import tensorflow as tf

from mate_tf.attention.buckets import computed_pairs, token_order, token_rank
from mate_tf.attention.patterns import head_groups, pattern_mask
from mate_tf.config import AttentionConfig
from mate_tf.tables.token_features import TokenFeatures

QUESTION = ("[CLS]", "how", "high", "?", "[SEP]")
COLUMNS, ROWS = 3, 6
CONFIG = AttentionConfig(bucket_size=4, global_size=5)
PATH = pathlib.Path(__file__).resolve().parents[1] / "docs" / "attention_views.png"


def small_table() -> tuple[TokenFeatures, list[str]]:
    """A question and a table of one token a cell, with a label for each token."""
    row = [0] * len(QUESTION) + [r for r in range(ROWS + 1) for _ in range(COLUMNS)]
    column = [0] * len(QUESTION) + [c + 1 for _ in range(ROWS + 1) for c in range(COLUMNS)]
    labels = [*QUESTION]
    for r, c in zip(row[len(QUESTION) :], column[len(QUESTION) :], strict=True):
        labels.append(f"{'ABC'[c - 1]}{r}" if r else f"head {'ABC'[c - 1]}")
    row_ids, column_ids = tf.constant([row]), tf.constant([column])
    zeros, ones = tf.zeros_like(row_ids), tf.ones_like(row_ids)
    segments = tf.cast(column_ids > 0, tf.int32)
    features = TokenFeatures(ones, ones, segments, column_ids, row_ids, zeros, zeros, zeros, zeros)
    return features, labels


def main() -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    from matplotlib.colors import ListedColormap

    features, labels = small_table()
    figure, axes = plt.subplots(1, 2, figsize=(13, 6.8))
    titles = ("row heads: sorted by row", "column heads: sorted by column")
    for axis, group, title in zip(axes, head_groups(CONFIG, 2), titles, strict=True):
        assert group.sort_by is not None
        order = token_order(features, group.sort_by)
        allowed = pattern_mask(group.pattern, features, features)[0].numpy()
        computed = computed_pairs(token_rank(order), CONFIG.bucket_size, CONFIG.global_size, False)[
            0
        ].numpy()
        permutation = order[0].numpy()
        shade = np.where(allowed & computed, 2, np.where(computed, 1, 0))
        colors = ListedColormap(["#ffffff", "#dfe7f1", "#2b5c9e"])
        axis.imshow(shade[permutation][:, permutation], cmap=colors, vmin=0, vmax=2)
        names = [labels[index] for index in permutation]
        axis.set_xticks(range(len(names)), names, rotation=90, fontsize=7)
        axis.set_yticks(range(len(names)), names, fontsize=7)
        for edge in range(CONFIG.global_size, len(names), CONFIG.bucket_size):
            axis.axhline(edge - 0.5, color="#c8503c", linewidth=0.8)
            axis.axvline(edge - 0.5, color="#c8503c", linewidth=0.8)
        axis.set_title(title)
        axis.set_xlabel("attended to")
        axis.set_ylabel("attends")
    figure.suptitle(
        f"blue: attends; grey: computed and masked; white: never computed "
        f"(global part of {CONFIG.global_size}, buckets of {CONFIG.bucket_size})",
        fontsize=10,
    )
    figure.tight_layout()
    PATH.parent.mkdir(exist_ok=True)
    figure.savefig(PATH, dpi=110)


if __name__ == "__main__":
    main()
