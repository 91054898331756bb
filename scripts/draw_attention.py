"""Draws two pictures of the README: attention_views.png and table_relations.png.

    python -m scripts.draw_attention --output_dir=docs

The first shows who (down) may attend to whom (across) in MATE's row heads and column heads, the
second TableFormer's relations; both on a small table, from the definitions that the models use.
"""

import pathlib

from absl import flags

from experiments import program
from mate_tf.config import AttentionConfig
from mate_tf.layers.attention.drawing import draw_head_group, draw_relations, table_tokens
from mate_tf.layers.attention.patterns import head_groups

QUESTION = ("[CLS]", "how", "high", "?", "[SEP]")
COLUMNS = "ABC"
CONFIG = AttentionConfig(bucket_size=4, global_size=5)

_OUTPUT = flags.DEFINE_string("output_dir", "docs", "folder of the pictures")


def small_table(num_rows: int):
    """Features and labels of a question and a table with one token a cell."""
    rows = [[f"{column}{row}" for column in COLUMNS] for row in range(1, num_rows + 1)]
    return table_tokens(QUESTION, [f"head {column}" for column in COLUMNS], rows)


def main(_) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    folder = pathlib.Path(_OUTPUT.value)
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
    figure.savefig(path, dpi=110)
    print(f"written to {path}")


if __name__ == "__main__":
    program.run(main)
