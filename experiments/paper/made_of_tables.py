"""What the binaries share that make statements or questions of tables: flags, parts, files."""

import os
import pathlib
from collections.abc import Callable, Sequence
from typing import Any

from absl import flags
from tqdm import tqdm

from mate_tf.datasets.described_tables import TABLES
from mate_tf.synthesis.pairs import LAYOUTS, read_sources

_TASK = flags.DEFINE_enum("task", TABLES, LAYOUTS, "layout of the input")
_INPUT = flags.DEFINE_string("input_dir", None, "folder with the tables", required=True)
_OUTPUT = flags.DEFINE_string("output_dir", None, "folder to write to", required=True)
_VOCAB = flags.DEFINE_string("vocab_file", None, "BERT's or TAPAS's vocabulary", required=True)
_SPLITS = flags.DEFINE_list("splits", "train", "that are read; TABLES has none")
_PARTS = flags.DEFINE_string(
    "parts", "train=90,dev=10", "the files and their percentages of the tables"
)
SEED = flags.DEFINE_integer("seed", 0, "of what is drawn")


def write_parts(what: str, makers_with: Callable[[Any], Sequence[Any]]) -> None:
    """Writes {part}.jsonl for each of --parts, and prints what is in it and what was left out.

    Args:
        what: "statements" or "questions".
        makers_with: what makes them of a table (`mate_tf.synthesis.statements.Make`), with the
            vocabulary's `Wordpiece`.

    Raises:
        FileNotFoundError, ValueError: as `read_sources`; and if the output is the input's folder,
            the parts are not as they should be, or one is empty.
    """
    from mate_tf.datasets.json_lines import write_json_lines
    from mate_tf.datasets.tasks import Division
    from mate_tf.features.wordpiece import Wordpiece
    from mate_tf.synthesis.statements import CreationSummary, create_part

    if os.path.realpath(_INPUT.value) == os.path.realpath(_OUTPUT.value):
        raise ValueError(f"expected another folder than the input's, got {_OUTPUT.value}")
    division = Division.from_text(f"tables:{_PARTS.value}")
    makers = makers_with(Wordpiece(_VOCAB.value))
    output = pathlib.Path(_OUTPUT.value)
    empty = []
    for part in division.names:
        sources = read_sources(_TASK.value, _INPUT.value, _SPLITS.value)
        output.mkdir(parents=True, exist_ok=True)
        summary = CreationSummary(what)
        made = create_part(tqdm(sources, part, unit="table"), part, division, makers, summary)
        count = write_json_lines(output / f"{part}.jsonl", made)
        print(f"{part}: {summary}", flush=True)
        empty += [] if count else [part]
    if empty:
        raise ValueError(
            f"expected {what} in each part, got none in {', '.join(empty)}; the summary above "
            "says why"
        )
