"""Turns tables and what is written about them into record files to pre-train on.

    python -m experiments.create_pretraining_data --task=TEXTS --input_dir=my_tables \\
        --output_dir=out/mlm_data --vocab_file=vocab.txt

The input is a folder of .jsonl files, each a split, of tables with their texts (--task=TEXTS), a
folder of CSV and TSV files (TABLES), TAPAS's own corpus (INTERACTIONS), or a data set of
experiments/create_data.py in its own layout, whose questions are then the texts of their tables.
docs/training.md describes the first three. The titles of a table are texts too; a table without
texts is read without.

An example is an excerpt of the texts and of the table's upper left corner. Some words of the text
and whole cells are masked. In half of the examples with texts another table of the split stands in
the table's place, which the model is to find out. Without a dev split, a twentieth of the training
tables, always the same, becomes one, unless --divide says otherwise.

Writes {split}_{length}.tfrecord, such as train_128.tfrecord, a copy of the vocabulary, and
conversion.json, which says how. Without Beam the tables of a split are in a temporary file (in
TMPDIR) meanwhile; with it, a worker holds those of a shard in memory.
"""

from absl import flags

from experiments import program
from mate_tf.command_line import data
from mate_tf.command_line.arguments import say


def add_folders(parser) -> None:
    data.add_folders(parser, "TEXTS")
    data.add_shards(parser, seed=12345)


_OPTIONS = program.define_flags(add_folders)
_LENGTH = flags.DEFINE_integer("max_seq_length", 128, "tokens of an example")
_PREDICTIONS = flags.DEFINE_integer(
    "max_predictions_per_seq",
    None,
    "most tokens masked in an example; without it, 20 for each 128 tokens",
    lower_bound=1,
)
_PROBABILITY = flags.DEFINE_float("masked_lm_prob", 0.15, "share of the tokens that are masked")
_DUPES = flags.DEFINE_integer("dupe_factor", 10, "examples of a table")
_SHORTEST = flags.DEFINE_integer("min_question_length", 8, "least wordpieces of a text's excerpt")
_LONGEST = flags.DEFINE_integer("max_question_length", 32, "the same at most")
_CELLS = flags.DEFINE_bool(
    "always_continue_cells", True, "mask a cell's wordpieces together, not a word's"
)


def main(_) -> None:
    from mate_tf.features.config import MaskedLmConfig, PretrainingConfig
    from mate_tf.records.creation import create_pretraining_records

    length = _LENGTH.value
    masked_lm = MaskedLmConfig(
        max_seq_length=length,
        max_predictions=_PREDICTIONS.value or -(-20 * length // 128),
        masking_probability=_PROBABILITY.value,
        min_text_length=_SHORTEST.value,
        max_text_length=_LONGEST.value,
        require_text=False,
        whole_cells=_CELLS.value,
    )
    options = _OPTIONS()
    config = PretrainingConfig(masked_lm, _DUPES.value, options.seed)
    for line in create_pretraining_records(data.creation_of(options), config):
        say(line)


if __name__ == "__main__":
    program.run(main)
