"""Generates tables with passages and questions about both, in the layout of HybridQA's release.

    python -m experiments.create_linked_corpus --output_dir=out/linked_corpus

It shows whether experiments/pointr.py learns, without HybridQA itself. A table is about drivers or
ships. The cells of its first two columns link to passages that tell more about them. A question
says whom it asks about by two things ("the driver who raced in 1961 and comes from Alderton"). Each
is true of other rows too, and at least one is in the table. Half of the answers are in a cell and
half in a passage. The test split has names, things and wordings that training does not have.

Writes released_data/{train,dev,test}.json with their {split}_reference.json, and the tables and
passages under WikiTables-WithLinks. Everything follows from --seed.
"""

import pathlib

from absl import flags

from experiments import program
from experiments.demo_data.linked_corpus import write_corpus
from mate_tf.command_line.arguments import with_progress

_OUTPUT = flags.DEFINE_string("output_dir", None, "folder to write to", required=True)
_TABLES = flags.DEFINE_integer("num_tables", 2000, "tables in all", lower_bound=20)
_QUESTIONS = flags.DEFINE_integer(
    "questions_per_table", 6, "the most questions about a table", lower_bound=1
)
_SEED = flags.DEFINE_integer("seed", 0, "everything that is drawn follows from it")


def main(_) -> None:
    for summary in write_corpus(
        pathlib.Path(_OUTPUT.value),
        _TABLES.value,
        _QUESTIONS.value,
        _SEED.value,
        lambda numbers, split: with_progress(numbers, split, "table"),
    ):
        print(summary, flush=True)


if __name__ == "__main__":
    program.run(main)
