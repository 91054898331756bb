"""Makes questions about tables, with the cells that answer them, to train on before real ones.

    python -m experiments.create_questions --task=WTQ --input_dir=WikiTableQuestions \\
        --output_dir=out/questions --vocab_file=minilm/vocab.txt
    python -m experiments.create_data --task=JSONL --input_dir=out/questions \\
        --output_dir=out/questions_192 --vocab_file=minilm/vocab.txt --max_seq_length=192

The tables are those of --input_dir, in one of the layouts of docs/pretraining.md: with
--task=TABLES its CSV and TSV files, in folders below too; with TEXTS those of {split}.jsonl for
each of --splits; with WTQ and TABFACT those of the data set's --splits.

A question is about a random excerpt of a table, a run of rows and some columns that fit
--max_seq_length (with --whole_tables about the table as it is), and its answer is computed from
the excerpt: a cell beside another, the largest and the smallest, the first, the next and the last,
one of two, how many, their sum, their average. Each operation is put in words in several ways;
--held_out_forms asks for a cell beside another in other words than any other call does, for a test
on questions that training has not seen.

Writes {part}.jsonl for each of --parts, in the format of docs/own_data.md, with answers, cells and
aggregation. All questions about a table are in one part, which follows from its name;
--splits=dev --parts=test=100 in a second call keeps a data set's own division. A file appears once
it is complete; the same flags give the same files.
"""

import os
import pathlib

from absl import flags
from tqdm import tqdm

from experiments import terminal
from mate_tf.statements.sources import LAYOUTS, read_sources
from mate_tf.tables.datasets.described_tables import TABLES

_TASK = flags.DEFINE_enum("task", TABLES, LAYOUTS, "layout of the input")
_INPUT = flags.DEFINE_string("input_dir", None, "folder with the tables", required=True)
_OUTPUT = flags.DEFINE_string("output_dir", None, "folder to write to", required=True)
_VOCAB = flags.DEFINE_string("vocab_file", None, "BERT's or TAPAS's vocabulary", required=True)
_SPLITS = flags.DEFINE_list("splits", "train", "that are read; TABLES has none")
_PARTS = flags.DEFINE_string(
    "parts", "train=90,dev=10", "the files and their percentages of the tables"
)
_LENGTH = flags.DEFINE_integer("max_seq_length", 192, "tokens of a question with its excerpt")
_PER_TABLE = flags.DEFINE_integer("questions_per_table", 64, "at most")
_WHOLE = flags.DEFINE_bool("whole_tables", False, "ask about whole tables, not about excerpts")
_OPERATIONS = flags.DEFINE_list("operations", None, "those to ask for; without it, all")
_HELD_OUT = flags.DEFINE_bool("held_out_forms", False, "words that are used nowhere else")
_SEED = flags.DEFINE_integer("seed", 0, "of what is drawn")


def main(_) -> None:
    from mate_tf.questions.synthetic import OPERATIONS, QuestionsConfig, synthetic_questions
    from mate_tf.statements.creation import CreationSummary, create_part
    from mate_tf.tables.datasets.json_lines import write_json_lines
    from mate_tf.tables.division import Division
    from mate_tf.tables.wordpiece import Wordpiece

    config = QuestionsConfig(
        questions_per_table=_PER_TABLE.value,
        whole_tables=_WHOLE.value,
        max_seq_length=_LENGTH.value,
        operations=tuple(_OPERATIONS.value or OPERATIONS),
        held_out_forms=_HELD_OUT.value,
        seed=_SEED.value,
    )
    if os.path.realpath(_INPUT.value) == os.path.realpath(_OUTPUT.value):
        raise ValueError(f"expected another folder than the input's, got {_OUTPUT.value}")
    division = Division.from_text(f"tables:{_PARTS.value}")
    wordpiece = Wordpiece(_VOCAB.value)
    makers = [lambda source: synthetic_questions(source.table, wordpiece, config)]
    output = pathlib.Path(_OUTPUT.value)
    empty = []
    for part in division.names:
        sources = read_sources(_TASK.value, _INPUT.value, _SPLITS.value)
        output.mkdir(parents=True, exist_ok=True)
        summary = CreationSummary("questions")
        made = create_part(tqdm(sources, part, unit="table"), part, division, makers, summary)
        count = write_json_lines(output / f"{part}.jsonl", made)
        print(f"{part}: {summary}", flush=True)
        empty += [] if count else [part]
    if empty:
        raise ValueError(
            f"expected questions in each part, got none in {', '.join(empty)}; the summary above "
            "says why"
        )


if __name__ == "__main__":
    terminal.run(main)
