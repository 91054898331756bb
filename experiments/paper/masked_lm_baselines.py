"""Scores simple rules on the masked tokens that experiments/pretrain.py predicts.

    python -m experiments.paper.masked_lm_baselines --data_dir=out/mlm_data --num_examples=2000

Pre-training has learned something where it is better than these rules. The first rule always
predicts the token that is masked most often in training. The second copies from the column: it
predicts the most frequent token at the same place in the column's other cells. Where there is none,
it predicts what the first rule does. The records are those of
experiments/create_pretraining_data.py.

Shapes: S sequence, P predictions.
"""

import itertools
from collections import Counter
from collections.abc import Iterable, Mapping

import numpy as np
from absl import flags
from tqdm import tqdm

from experiments import program

Example = Mapping[str, np.ndarray]


def most_frequent_token(examples: Iterable[Example]) -> int:
    """The token that is masked most often; of several the one that was first.

    Args:
        examples: records of pre-training, with masked_lm_ids and masked_lm_weights [P].

    Raises:
        ValueError: if nothing is masked in any.
    """
    counts = Counter[int]()
    for example in examples:
        counts.update(example["masked_lm_ids"][example["masked_lm_weights"] > 0].tolist())
    if not counts:
        raise ValueError("expected examples with masked tokens, got none")
    ((token, _),) = counts.most_common(1)
    return token


def copy_from_column(example: Example, otherwise: int) -> np.ndarray:
    """What other cells of the column have at the masked token's place in its cell: int [P].

    Of the column's body cells without a masked token it is the most frequent token at that place;
    of several as frequent, that of the nearest row, above rather than below.

    Args:
        example: a record of pre-training.
        otherwise: the token where no such cell has that place, in the header and in the text.
    """
    columns, rows = example["column_ids"], example["row_ids"]  # [S]
    predicted = example["masked_lm_weights"] > 0  # [P]
    positions = example["masked_lm_positions"]
    tokens = np.full(len(positions), otherwise)
    masked = set(positions[predicted].tolist())
    cells: dict[tuple[int, int], list[int]] = {}
    for position in np.flatnonzero(columns * rows).tolist():
        cells.setdefault((int(columns[position]), int(rows[position])), []).append(position)
    places = {position: place for cell in cells.values() for place, position in enumerate(cell)}
    for index in np.flatnonzero(predicted).tolist():
        position = int(positions[index])
        if position not in places:
            continue
        column, row = int(columns[position]), int(rows[position])
        place = places[position]
        visible = {
            of_row: int(example["input_ids"][cell[place]])
            for (of_column, of_row), cell in cells.items()
            if of_column == column and len(cell) > place and masked.isdisjoint(cell)
        }
        if visible:
            counts = Counter(visible.values())
            nearest = min(
                visible, key=lambda other: (-counts[visible[other]], abs(other - row), other)
            )
            tokens[index] = visible[nearest]
    return tokens


_DATA_DIR = flags.DEFINE_string(
    "data_dir", None, "folder that experiments/create_pretraining_data.py wrote", required=True
)
_SPLIT = flags.DEFINE_string("split", "dev", "what is predicted")
_LENGTH = flags.DEFINE_integer("max_seq_length", 128, "the length of its records")
_NUMBER = flags.DEFINE_integer(
    "num_examples",
    None,
    "examples from the split's start, as eval_examples of a config; without it, all",
    lower_bound=1,
)


def main(_) -> None:
    from mate_tf.records.batches import read_records
    from mate_tf.records.splits import split_files

    def read(split: str):
        examples = read_records(split_files(_DATA_DIR.value, f"{split}_{_LENGTH.value}"))
        return tqdm(examples.as_numpy_iterator(), desc=split, unit="example", disable=None)

    frequent = most_frequent_token(read("train"))
    right, total = np.zeros([2, 2]), np.zeros(2)
    for example in itertools.islice(read(_SPLIT.value), _NUMBER.value):
        is_label = example["masked_lm_weights"] > 0  # [P]
        labels = example["masked_lm_ids"][is_label]
        in_cell = (example["column_ids"][example["masked_lm_positions"]] > 0)[is_label]
        copied = copy_from_column(example, frequent)[is_label]
        for rule, tokens in enumerate((np.full_like(labels, frequent), copied)):
            right[rule] += np.bincount(in_cell[tokens == labels], minlength=2)
        total += np.bincount(in_cell, minlength=2)
    print(f"{int(total.sum())} masked tokens, {int(total[1])} of them in cells")
    for name, (in_text, in_cells) in zip(
        ("the most frequent token", "a copy from the column"), right, strict=True
    ):
        print(
            f"{name}: accuracy {(in_text + in_cells) / max(total.sum(), 1):.1%}, in texts "
            f"{in_text / max(total[0], 1):.1%}, in cells {in_cells / max(total[1], 1):.1%}"
        )


if __name__ == "__main__":
    program.run(main)
