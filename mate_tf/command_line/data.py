"""mate-tf data: questions about tables become records to train on."""

import argparse
import dataclasses
import shlex
from typing import Any

from mate_tf.command_line import arguments
from mate_tf.command_line.arguments import say

HELP = "turn questions and tables into records to train on"
DESCRIPTION = """\
Turns questions and tables into records to train on and to evaluate with.

The input of --task=JSONL is a folder with train.jsonl and, if you have one, dev.jsonl. Each line is
an object with a question, its table (or the path of the table's file) and its answers:

  {"question": "who won?", "table": "race.csv", "answers": ["Ann"]}

Without dev.jsonl a tenth of the training tables becomes the dev split, or of fewer than ten tables
a fifth of the questions. Other tasks read published
data sets in their official layouts; --splits says which splits, by default all that are there.

Each split becomes {split}.tfrecord, the examples, and, for questions about tables, {split}.jsonl,
all of them with their tables. The folder gets a copy of the vocabulary too, and conversion.json,
which says how the records were made.

A split whose name begins with "train" keeps the questions whose answers are found in the table.
Other splits keep every question that fits, with labels if the answer is found. The summary at the
end says how many were left out and why, with the first few of each reason; {split}.left_out.jsonl
names them all, with remedies.
"""
EPILOG = """\
examples:
  mate-tf data --input-dir=my_questions --output-dir=my_data
  mate-tf data --task=WTQ --input-dir=WikiTableQuestions --output-dir=wtq --trim-cells
  mate-tf data --task=WTQ --input-dir=WikiTableQuestions --output-dir=wtq \\
    --divide=train:train=90,calibration=10       (for mate-tf calibrate)
  mate-tf data --masked-words --task=TABLES --input-dir=my_tables --output-dir=my_words
  mate-tf data --input-dir=my_questions --output-dir=my_data --num-shards=8 \\
    --beam-options="--direct_num_workers=4 --direct_running_mode=multi_processing"
"""
LAYOUTS = ("TEXTS", "TABLES")  # beside the data sets of mate_tf.datasets.tasks


def task_name(text: str) -> str:
    """The type of an option that names what the input is."""
    from mate_tf.datasets.tasks import TASKS

    known = (*TASKS, *LAYOUTS)
    if text not in known:
        raise argparse.ArgumentTypeError(f"expected one of {', '.join(known)}, got {text}")
    return text


def add_folders(parser: Any, default: str) -> None:
    """Adds from where, and where to."""
    arguments.add(
        parser,
        f"""
        --task=NAME  what the input is: a data set, such as WTQ, SQA, WIKISQL, TABFACT or HYBRIDQA,
            JSONL for your own questions, or TEXTS or TABLES to pre-train on; by default {default}
        --input-dir=FOLDER  folder with the data set; of JSONL also several, with commas between,
            whose splits of one name are joined
        --output-dir=FOLDER  folder to write to
        --vocab-file=FILE  BERT's or TAPAS's vocabulary; by default that of the model that comes
            with the package
        --splits=SPLIT,...  which splits; by default all that are there
        --divide=SPLIT:PART=PERCENT,...  divide a split by its tables: train:train=90,calibration=10
            keeps a tenth of the training tables, always the same, for mate-tf calibrate
        """,
        types=dict(task=task_name, splits=arguments.names),
        defaults=dict(task=default),
        required=["input_dir", "output_dir"],
    )


def add_shards(parser: Any, seed: int = 0) -> None:
    """Adds how many files are written, by whom, and in which order."""
    arguments.add(
        parser,
        """
        --num-shards=N  files to spread each split over, dev-00000-of-00008.tfrecord and so on; by
            default one, dev.tfrecord
        --seed=N  of the order of questions in shards, and of all that is drawn
        --beam-options=OPTIONS  make the records with Apache Beam (pip install 'mate_tf[beam]') and
            these options of its, separated by blanks, such as --runner=FlinkRunner; "" for its own
            runner with one worker; the files are the same bytes with any number of workers on any
            of Beam's runners, which all see the folders at the same path
        """,
        types=dict(num_shards=arguments.number(1), seed=int),
        defaults=dict(seed=seed),
    )


def add_arguments(parser: Any) -> None:
    """Adds what the command takes."""
    add_folders(parser, "JSONL")
    arguments.add(
        parser,
        """
        --max-seq-length=N  tokens of an example; by default 512, with --masked-words 128
        """,
        types=dict(max_seq_length=arguments.number(4)),
    )
    arguments.add(
        parser.add_argument_group("what is in an example"),
        """
        --drop-rows-to-fit  leave out the last rows of a table that is too long
        --trim-cells  shorten the cells of a table that is too long, as TAPAS does
        --cell-trim-length=N  cut every cell after so many wordpieces
        --prune-columns  leave out the columns least like the question if a table is long
        --strip-column-names  leave the header's cells empty
        --use-document-title  let the title of the table's document follow the question, if the data
            set has one (WIKISQL, TABFACT, HYBRIDQA, JSONL)
        --use-context-heading  let the heading above the table follow the question, if the data set
            has one (WIKISQL, HYBRIDQA, JSONL)
        --label-answer-spans  label the answer's text where it first occurs in the table, for a
            reader of spans, instead of whole cells
        --histogram-row  end each table in a row of its columns' most frequent values, as SAT does
        --original-conversion  convert as the authors' release does, with its defects: for its
            published checkpoints
        --tagger=TAGGER  tag parts of speech, for attention that grammar guides: textblob (pip
            install 'mate_tf[textblob]'), spacy, spacy:MODEL ('mate_tf[spacy]') or MODULE:FUNCTION,
            a function of your own from a text to mate_tf.tables.part_of_speech.TaggedWord
        """,
        types=dict(cell_trim_length=arguments.number(1)),
    )
    add_shards(parser)
    arguments.add(
        parser,
        """
        --write-interactions  write the questions with their tables also as interactions of TAPAS's
            release, to the folder interactions
        """,
    )
    arguments.add(
        parser.add_argument_group("pre-training"),
        """
        --masked-words  make examples of masked words and cells, to pre-train on: with --task=TEXTS
            of tables with texts (.jsonl), with TABLES of a folder of CSV and TSV files, else of the
            tables of a data set and its questions
        --dupe-factor=N  with --masked-words: examples of each table
        """,
        types=dict(dupe_factor=arguments.number(1)),
        defaults=dict(dupe_factor=10),
    )


def run(options: argparse.Namespace) -> None:
    """Makes the records, and says how many."""
    from mate_tf.features.config import FeatureConfig, MaskedLmConfig, PretrainingConfig
    from mate_tf.records import creation

    if options.masked_words:
        if options.write_interactions:
            raise ValueError("expected no --write-interactions with --masked-words")
        length = options.max_seq_length or 128
        most = -(-20 * length // 128)
        masked_lm = MaskedLmConfig(max_seq_length=length, max_predictions=most, require_text=False)
        config = PretrainingConfig(masked_lm, options.dupe_factor, options.seed)
        lines = creation.create_pretraining_records(creation_of(options), config)
    elif options.task in LAYOUTS:
        raise ValueError(f"expected --masked-words with --task={options.task}")
    else:
        names = {field.name for field in dataclasses.fields(FeatureConfig)} & vars(options).keys()
        given = {name: getattr(options, name) for name in names}
        features = FeatureConfig(**given | {"max_seq_length": options.max_seq_length or 512})
        lines = creation.create_records(creation_of(options), features, options.tagger)
    for line in lines:
        say(line)


def creation_of(options: argparse.Namespace) -> Any:
    """The source and the folder that the options name; says which vocabulary if none is given."""
    from mate_tf.datasets.tasks import Division
    from mate_tf.records.creation import Creation
    from mate_tf.weights.folder import DEFAULT_MODEL

    if not options.vocab_file:
        say("vocabulary: that of the model that comes with the package (--vocab-file changes it)")
    return Creation(
        task=options.task,
        input_dir=options.input_dir,
        output_dir=options.output_dir,
        vocab_file=options.vocab_file or str(DEFAULT_MODEL / "vocab.txt"),
        splits=options.splits or None,
        division=Division.from_text(options.divide) if options.divide else None,
        num_shards=options.num_shards,
        seed=options.seed,
        beam_options=beam_options_of(options),
        write_interactions=getattr(options, "write_interactions", False),
        progress=arguments.with_progress,
    )


def beam_options_of(options: argparse.Namespace) -> list[str] | None:
    """Beam's options of those of `add_shards`; None without Beam."""
    given = options.beam_options
    return None if given is None else shlex.split(given)
