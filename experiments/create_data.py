"""Turns questions and tables into record files to train and evaluate on.

    python -m experiments.create_data --task=WTQ --input_dir=WikiTableQuestions \\
        --output_dir=out/wtq_data --vocab_file=vocab.txt --max_seq_length=512

The input is a data set in its official layout (mate_tf/tables/datasets has a reader for each task),
or, for JSONL, a folder of .jsonl files in the format of mate_tf/datasets/json_lines.py, each
of which is a split. Writes for each split {split}.tfrecord, the examples, and, of questions about
tables, {split}.jsonl, all of them with their tables; a copy of the vocabulary; and in
conversion.json how it was done.

A split whose name begins with "train" keeps the questions whose answers are found in the table.
Other splits keep every question that fits, with labels as far as the answers are found. The
summary at the end says how many were left out and why, with the first few of each reason;
--verbosity=1 logs them all.

--divide=train:train=90,calibration=10 keeps a tenth of the training tables, always the same, out of
training: experiments/calibrate.py learns from their questions how much a score is worth.
--divide=dev:train=72,calibration=8,dev=20 makes all splits of one.

--num_shards=8 writes dev-00000-of-00008.tfrecord to dev-00007-of-00008.tfrecord instead, in an
order that follows from --seed and the questions' ids. With --beam_options the conversion is an
Apache Beam pipeline (the extra "beam"), which writes the very same shards with any number of
workers on any of Beam's runners, from and to folders that all of its machines see at the same path
(reasons are then counted without examples, and progress is the runner's to show):

    --num_shards=8 --beam_options="--direct_num_workers=4 --direct_running_mode=multi_processing"
    --num_shards=64 --beam_options="--runner=FlinkRunner --flink_master=host:8081"

With --tagger the words of questions and sentences get their parts of speech, once and for all, for
the attention that grammar guides: textblob (the extra "textblob"), spacy or spacy:MODEL (the extra
"spacy" and a model of its), or MODULE:FUNCTION, a function of your own from a text to
mate_tf.tables.part_of_speech.TaggedWord.
"""

import functools
import os
import shlex
import time
from collections.abc import Sequence

from absl import flags
from tqdm import tqdm

from experiments import terminal
from mate_tf.datasets.tasks import TASKS, read_split, splits_there
from mate_tf.tables.part_of_speech import TaggedWord, Tagger

_TASK = flags.DEFINE_enum("task", "WTQ", list(TASKS), "what the input is")
_INPUT = flags.DEFINE_string("input_dir", None, "folder with the data set", required=True)
_OUTPUT = flags.DEFINE_string("output_dir", None, "folder to write to", required=True)
_VOCAB = flags.DEFINE_string("vocab_file", None, "BERT's or TAPAS's vocabulary", required=True)
_SPLITS = flags.DEFINE_list("splits", None, "which splits; without it, all that are there")
_LENGTH = flags.DEFINE_integer("max_seq_length", 512, "tokens of an example", lower_bound=4)
_DROP = flags.DEFINE_bool(
    "drop_rows_to_fit", False, "leave out rows at the end of a table that is too long"
)
_TRIM = flags.DEFINE_bool(
    "trim_cells", False, "shorten the cells of a table that is too long, as TAPAS does"
)
_TRIM_LENGTH = flags.DEFINE_integer(
    "cell_trim_length", None, "cut every cell after so many wordpieces", lower_bound=1
)
_PRUNE = flags.DEFINE_bool(
    "prune_columns", False, "leave out the columns least like the question where a table is long"
)
_STRIP = flags.DEFINE_bool("strip_column_names", False, "leave the header's cells empty")
_TITLE = flags.DEFINE_bool(
    "use_document_title",
    False,
    "let the title of the table's document follow the question, where the data set has one: "
    "WIKISQL, TABFACT, HYBRIDQA, JSONL",
)
_HEADING = flags.DEFINE_bool(
    "use_context_heading",
    False,
    "let the heading above the table follow the question, where the data set has one: WIKISQL, "
    "HYBRIDQA, JSONL",
)
_ANSWER_SPANS = flags.DEFINE_bool(
    "label_answer_spans",
    False,
    "label the answer's text where it first occurs in the table, for a reader of spans, instead of "
    "whole cells",
)
_HISTOGRAM = flags.DEFINE_bool(
    "histogram_row",
    False,
    "end each table in a row of its columns' most frequent values, as SAT does",
)
_ORIGINAL = flags.DEFINE_bool(
    "original_conversion",
    False,
    "convert as the authors' release does, with its defects: for its published checkpoints",
)
_TAGGER = flags.DEFINE_string(
    "tagger", None, "part-of-speech tagger: textblob, spacy, spacy:MODEL or MODULE:FUNCTION"
)
_DIVIDE = flags.DEFINE_string(
    "divide",
    None,
    "divide the questions of a split by their tables, SPLIT:PART=PERCENT,PART=PERCENT,...: "
    "train:train=90,calibration=10 keeps a tenth of the training tables for "
    "experiments/calibrate.py",
)
_SHARDS = flags.DEFINE_integer(
    "num_shards", None, "files to spread each split over; without it, one", lower_bound=1
)
_SEED = flags.DEFINE_integer("seed", 0, "of the order of questions in shards (--num_shards)")
_BEAM = flags.DEFINE_string(
    "beam_options",
    None,
    "convert with Apache Beam and these options of its, separated by blanks; "
    '"" for its own runner with one worker',
)


def create_split(builder, name: str, division):
    """Converts a split in this process, a question at a time, and gives its summary."""
    from mate_tf.records.conversion import Summary, convert_all
    from mate_tf.records.splits import split_writer

    task = TASKS[_TASK.value]
    unit = "question" if task.has_tables else "sentence"
    summary = Summary(f"{unit}s")
    pairs = read_split(_TASK.value, _INPUT.value, name, _ORIGINAL.value, division)
    writer = split_writer(_OUTPUT.value, name, _SHARDS.value, _SEED.value, task.has_tables)
    outcomes = convert_all(task, builder, pairs, is_training=name.startswith("train"))
    with writer as write:
        for outcome in tqdm(outcomes, desc=name, unit=unit):
            summary.add(outcome)
            write(outcome)
    return summary


def create_split_with_beam(config, name: str, division):
    """The same in a pipeline."""
    from mate_tf.records.beam import convert_split, make_builder
    from mate_tf.records.conversion import Summary

    task = TASKS[_TASK.value]
    counts = convert_split(
        task,
        functools.partial(read_split, _TASK.value, _INPUT.value, name, _ORIGINAL.value, division),
        functools.partial(make_builder, _VOCAB.value, config, _TAGGER.value),
        _OUTPUT.value,
        name,
        _SHARDS.value or 1,
        _SEED.value,
        shlex.split(_BEAM.value),
    )
    return Summary("questions" if task.has_tables else "sentences", counts)


class TimedTagger:
    """A tagger, and the seconds that it took in all."""

    def __init__(self, tagger: Tagger):
        self.seconds = 0.0
        self._tagger = tagger

    def __call__(self, text: str) -> Sequence[TaggedWord]:
        started = time.perf_counter()
        words = self._tagger(text)
        self.seconds += time.perf_counter() - started
        return words


def main(_) -> None:
    import tensorflow as tf

    from mate_tf.datasets.tasks import Division
    from mate_tf.features.builder import FeatureBuilder
    from mate_tf.features.config import FeatureConfig
    from mate_tf.features.wordpiece import Wordpiece
    from mate_tf.records.conversion_file import conversion_of
    from mate_tf.records.records import complete_file
    from mate_tf.records.splits import prepare_folder
    from mate_tf.tables.part_of_speech import load_tagger

    config = FeatureConfig(
        max_seq_length=_LENGTH.value,
        trim_cells=_TRIM.value,
        drop_rows_to_fit=_DROP.value,
        cell_trim_length=_TRIM_LENGTH.value,
        prune_columns=_PRUNE.value,
        strip_column_names=_STRIP.value,
        use_document_title=_TITLE.value,
        use_context_heading=_HEADING.value,
        label_answer_spans=_ANSWER_SPANS.value,
        histogram_row=_HISTOGRAM.value,
        original_conversion=_ORIGINAL.value,
    )
    if os.path.realpath(_INPUT.value) == os.path.realpath(_OUTPUT.value):
        raise ValueError(f"expected another folder than the input's, got {_OUTPUT.value}")
    tagger = TimedTagger(load_tagger(_TAGGER.value)) if _TAGGER.value else None
    builder = FeatureBuilder(Wordpiece(_VOCAB.value), config, tagger)
    names, absent = _SPLITS.value or [], list[str]()
    if not names:
        names, absent = splits_there(_TASK.value, _INPUT.value, _ORIGINAL.value)
    division = Division.from_text(_DIVIDE.value) if _DIVIDE.value else None
    if division is not None:
        if not TASKS[_TASK.value].has_tables:
            raise ValueError(f"expected questions about tables to --divide, got {_TASK.value}")
        names = division.divided(names)
    conversion = conversion_of(_TASK.value, config, _VOCAB.value, _TAGGER.value, division)
    prepare_folder(_OUTPUT.value, conversion, names)
    vocab_copy = os.path.join(_OUTPUT.value, "vocab.txt")
    if os.path.abspath(_VOCAB.value) != os.path.abspath(vocab_copy):
        with complete_file(vocab_copy) as unfinished:
            tf.io.gfile.copy(_VOCAB.value, unfinished)
    empty = []
    for name in names:
        if _BEAM.value is None:
            summary = create_split(builder, name, division)
        else:
            summary = create_split_with_beam(config, name, division)
        print(f"{name}: {summary}", flush=True)
        empty += [] if summary.num_kept else [name]
    for reason in absent:
        print(f"not there, {reason}")
    if tagger is not None and _BEAM.value is None:
        print(f"tagging took {tagger.seconds:.1f} s")
    if empty:
        raise ValueError(
            f"expected examples in each split, got none in {', '.join(empty)}; the summary above "
            "says why"
        )


if __name__ == "__main__":
    terminal.run(main)
