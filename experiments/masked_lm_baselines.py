"""What simple rules get of the masked tokens that experiments/pretrain.py predicts.

    python -m experiments.masked_lm_baselines --data_dir=out/mlm_data --num_examples=2000

prints, for records of experiments/create_pretraining_data.py, the accuracy of always predicting the
token that is most often masked in training, and of copying from the column: the most frequent token
at the same place of the column's other cells, and the former where there is none.
"""

import itertools

from absl import flags
from tqdm import tqdm

from experiments import terminal

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
    import numpy as np

    from mate_tf.evaluation.masked_lm import copy_from_column, most_frequent_token
    from mate_tf.tables.records import read_records
    from mate_tf.tables.splits import split_files

    def read(split: str):
        examples = read_records(split_files(_DATA_DIR.value, f"{split}_{_LENGTH.value}"))
        return tqdm(examples.as_numpy_iterator(), desc=split, unit="example")

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
    terminal.run(main)
