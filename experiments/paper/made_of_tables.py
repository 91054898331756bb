"""The flags that create_questions and create_statements share."""

from typing import TYPE_CHECKING

from absl import flags

from experiments import program
from experiments.synthesis import LAYOUTS
from mate_tf.command_line import data
from mate_tf.command_line.arguments import with_progress

if TYPE_CHECKING:
    from experiments.synthesis.creation import Files

_TASK = flags.DEFINE_enum("task", "TABLES", LAYOUTS, "layout of the input")
_INPUT = flags.DEFINE_string("input_dir", None, "folder with the tables; MADE has none")
_NUMBER = flags.DEFINE_integer("num_tables", 0, "how many tables MADE makes")
_OUTPUT = flags.DEFINE_string("output_dir", None, "folder to write to", required=True)
_VOCAB = flags.DEFINE_string("vocab_file", None, "BERT's or TAPAS's vocabulary", required=True)
_SPLITS = flags.DEFINE_list("splits", "train", "splits to read; TABLES has none")
_PARTS = flags.DEFINE_string(
    "parts", "train=90,dev=10", "the files to write, with their percentages of the tables"
)
_INTERACTIONS = flags.DEFINE_bool(
    "write_interactions", False, "write interactions of TAPAS's release too, to interactions/"
)
_SHARDS = program.define_flags(data.add_shards)


def files() -> "Files":
    """The files that these flags name."""
    from experiments.synthesis.creation import Files

    shards = _SHARDS()
    return Files(
        task=_TASK.value,
        input_dir=_INPUT.value or "",
        output_dir=_OUTPUT.value,
        vocab_file=_VOCAB.value,
        splits=_SPLITS.value,
        parts=_PARTS.value,
        progress=with_progress,
        num_tables=_NUMBER.value,
        write_interactions=_INTERACTIONS.value,
        num_shards=shards.num_shards,
        seed=shards.seed,
        beam_options=data.beam_options_of(shards),
    )
