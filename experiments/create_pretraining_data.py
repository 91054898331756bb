"""Turns tables and what is written about them into record files to pre-train on.

    python -m experiments.create_pretraining_data --task=TEXTS --input_dir=my_tables \\
        --output_dir=out/mlm_data --vocab_file=vocab.txt

The input is a folder of .jsonl files, each a split, of tables with their texts (--task=TEXTS), a
folder of CSV and TSV files (TABLES), or a data set of experiments/create_data.py in its own layout,
whose questions are then the texts of their tables. docs/pretraining.md describes the first two. A
table without texts is read without: the titles that it may have are texts too.

An example is an excerpt of the texts and of the table's upper left corner in which some words of
the text and whole cells are masked; in half of them, where there are texts, another table of the
split stands in the table's place, which the model is to find out. Everything is drawn at random and
follows from --seed and the tables' names. Where there is no dev split, a twentieth of the training
tables, always the same, becomes one, unless --divide says otherwise. Other splits leave out tables
that the training split has too.

Writes {split}_{length}.tfrecord, such as train_128.tfrecord, a copy of the vocabulary, and in
conversion.json how it was done. With --max_seq_lengths=128,512,2048 examples are drawn for each
length, and each goes to the file of the shortest that holds it: experiments/pretrain.py takes
batches of all lengths in turn (--config.length_buckets=128,512 --config.max_seq_length=2048).

--num_shards and --beam_options are those of experiments/create_data.py: the same bytes with any
number of workers. A shard's tables are held in memory, without Beam those of the split.
"""

import dataclasses
import functools
import os
import shlex
from collections import Counter

from absl import flags
from tqdm import tqdm

from experiments import terminal
from mate_tf.datasets.described_tables import LAYOUTS, TEXTS, corpus_splits, read_corpus

_TASK = flags.DEFINE_enum("task", TEXTS, LAYOUTS, "what the input is")
_INPUT = flags.DEFINE_string("input_dir", None, "folder with the tables", required=True)
_OUTPUT = flags.DEFINE_string("output_dir", None, "folder to write to", required=True)
_VOCAB = flags.DEFINE_string("vocab_file", None, "BERT's or TAPAS's vocabulary", required=True)
_SPLITS = flags.DEFINE_list("splits", None, "which splits; without it, all that are there")
_LENGTHS = flags.DEFINE_list("max_seq_lengths", ["128"], "tokens of an example, one or more")
_PREDICTIONS = flags.DEFINE_integer(
    "max_predictions_per_seq",
    None,
    "most tokens masked in an example of the shortest length, in longer ones in proportion; "
    "without it, 20 for each 128 tokens",
    lower_bound=1,
)
_PROBABILITY = flags.DEFINE_float("masked_lm_prob", 0.15, "share of the tokens that are masked")
_DUPES = flags.DEFINE_integer("dupe_factor", 10, "examples of a table, of each length")
_SHORTEST = flags.DEFINE_integer(
    "min_question_length", 8, "wordpieces of a text's excerpt at least"
)
_LONGEST = flags.DEFINE_integer("max_question_length", 32, "the same at most")
_CELLS = flags.DEFINE_bool(
    "always_continue_cells", True, "mask a cell's wordpieces together, not a word's"
)
_DIVIDE = flags.DEFINE_string(
    "divide", None, "divide a split by its tables, as in create_data: train:train=95,dev=5"
)
_SHARDS = flags.DEFINE_integer(
    "num_shards", None, "files to spread each split over; without it, one", lower_bound=1
)
_SEED = flags.DEFINE_integer("seed", 12345, "of all that is drawn")
_BEAM = flags.DEFINE_string(
    "beam_options", None, "draw with Apache Beam and these options of its, separated by blanks"
)


def make_config():
    """What is drawn, as the flags say."""
    from mate_tf.features.config import MaskedLmConfig, PretrainingConfig

    try:
        shortest, *longer = map(int, _LENGTHS.value)
    except ValueError:
        raise ValueError(
            f"expected lengths such as 128,512 for --max_seq_lengths, got {_LENGTHS.value}"
        ) from None
    masked_lm = MaskedLmConfig(
        max_seq_length=shortest,
        max_predictions=_PREDICTIONS.value or -(-20 * shortest // 128),
        masking_probability=_PROBABILITY.value,
        min_text_length=_SHORTEST.value,
        max_text_length=_LONGEST.value,
        require_text=False,
        whole_cells=_CELLS.value,
    )
    return PretrainingConfig(masked_lm, tuple(longer), _DUPES.value, _SEED.value)


def choose_splits():
    """The splits to make and those that are there, how one is divided, why others are absent."""
    from mate_tf.datasets.tasks import Division

    there, absent = corpus_splits(_TASK.value, _INPUT.value)
    names = _SPLITS.value or there
    division = Division.from_text(_DIVIDE.value) if _DIVIDE.value else None
    if division is None and "dev" not in there and "train" in names:
        division, absent = Division("train", (("train", 95), ("dev", 5))), []
    return (names if division is None else division.divided(names)), there, division, absent


def draw_with_beam(read, config, name: str) -> Counter[str]:
    """Draws a split in a pipeline."""
    from mate_tf.records.beam import draw_split

    options = shlex.split(_BEAM.value)
    return draw_split(read, _VOCAB.value, config, _OUTPUT.value, name, _SHARDS.value or 1, options)


def main(_) -> None:
    import tensorflow as tf

    from mate_tf.features.config import FeatureConfig
    from mate_tf.records.conversion import Summary
    from mate_tf.records.conversion_file import conversion_of
    from mate_tf.records.pretraining import make_builders, split_of_length, write_split
    from mate_tf.records.splits import prepare_folder

    config = make_config()
    names, there, division, absent = choose_splits()
    features = FeatureConfig(max_seq_length=config.lengths[-1])
    conversion = conversion_of(_TASK.value, features, _VOCAB.value, None, division)
    conversion = dataclasses.replace(conversion, pretraining=config)
    of_lengths = [split_of_length(name, length) for name in names for length in config.lengths]
    prepare_folder(_OUTPUT.value, conversion, of_lengths)
    vocab_copy = os.path.join(_OUTPUT.value, "vocab.txt")
    if os.path.abspath(_VOCAB.value) != os.path.abspath(vocab_copy):
        tf.io.gfile.copy(_VOCAB.value, vocab_copy, overwrite=True)
    builders = make_builders(config, _VOCAB.value) if _BEAM.value is None else []
    empty = []
    # Parts of the training split have no table in common.
    parts = division.names if division is not None and division.split == "train" else ()
    held_out = [name for name in names if name != "train" and name not in parts]
    trained = frozenset[str]()
    if held_out and "train" in there:
        corpus = read_corpus(_TASK.value, _INPUT.value, "train")
        trained = frozenset(described.table.table_id for described in corpus)
    for name in names:
        without = trained if name in held_out else ()
        read = functools.partial(read_corpus, _TASK.value, _INPUT.value, name, division, without)
        if _BEAM.value is None:
            counts = Counter[str]()
            drawn = write_split(read(), builders, config, _OUTPUT.value, name, _SHARDS.value)
            for of_example in tqdm(drawn, desc=name, unit="example"):
                counts.update(of_example)
        else:
            counts = draw_with_beam(read, config, name)
        print(f"{name}: {Summary('examples', counts)}", flush=True)
        empty += [] if counts["kept"] else [name]
    for reason in absent:
        print(f"not there, {reason}")
    if empty:
        raise ValueError(f"expected examples in each split, got none in {', '.join(empty)}")


if __name__ == "__main__":
    terminal.run(main)
