"""Generates tables with passages and questions about both, in the layout of HybridQA's release.

    python -m experiments.create_linked_corpus --output_dir=out/linked_corpus

To see whether experiments/pointr.py learns, where HybridQA itself is not at hand. A table is about
drivers, singers, ships and so on; the cells of its first two columns link to passages that tell
more of them. A question says whom it asks about by two things, each of which is true of other
rows too ("the driver who raced in 1961 and comes from Alderton"), at least one of them of the
table; half of the answers are in a cell, half in a passage. The test split has other names and
things, and other wordings, than training.

Writes released_data/{train,dev,test}.json with their {split}_reference.json, and the tables and
passages under WikiTables-WithLinks. Everything follows from --seed.
"""

import pathlib
import random

from absl import flags
from tqdm import tqdm

from experiments import terminal
from experiments.demo_data.linked_corpus.drawing import draw_questions, draw_table
from experiments.demo_data.linked_corpus.release import write_questions, write_table
from experiments.demo_data.linked_corpus.words import words_of

_OUTPUT = flags.DEFINE_string("output_dir", None, "folder to write to", required=True)
_TABLES = flags.DEFINE_integer("num_tables", 2000, "tables in all", lower_bound=20)
_QUESTIONS = flags.DEFINE_integer("questions_per_table", 6, "most of each", lower_bound=1)
_SEED = flags.DEFINE_integer("seed", 0, "of what is drawn")

# Of twenty tables.
_SHARES = {"train": 16, "dev": 1, "test": 3}


def main(_) -> None:
    output_dir = pathlib.Path(_OUTPUT.value)
    for split, share in _SHARES.items():
        random_ = random.Random(f"{split} {_SEED.value}")
        words = words_of(split)
        asked = []
        num_tables = _TABLES.value * share // sum(_SHARES.values())
        for number in tqdm(range(num_tables), desc=split, unit="table"):
            drawn = draw_table(random_, words, split, f"{split}_{number}")
            write_table(output_dir, drawn.linked)
            questions = draw_questions(random_, drawn, _QUESTIONS.value)
            asked += [(drawn.linked.table, question) for question in questions]
        write_questions(output_dir, split, asked)
        in_table = sum(question.in_table for _, question in asked)
        templates = {question.template for _, question in asked}
        print(
            f"{split}: {num_tables} tables, {len(asked)} questions of {len(templates)} templates, "
            f"{in_table} with the answer in a cell, {len(asked) - in_table} in a passage"
        )


if __name__ == "__main__":
    terminal.run(main)
