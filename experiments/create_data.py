"""Turns questions and tables into record files to train and evaluate on.

    python -m experiments.create_data --task=WTQ --input_dir=WikiTableQuestions \
        --output_dir=out/wtq_data --vocab_file=vocab.txt --max_seq_length=512

WTQ reads the official release; JSONL reads each .jsonl file in the folder, in the format of
mate_tf/tables/datasets/json_lines.py, as a split; SST2 reads train.tsv and dev.tsv, sentences with
a class and no table. Writes for each split {split}.tfrecord, the examples, and, of questions about
tables, {split}.jsonl, all of them with their tables, and a copy of the vocabulary.

With --tagger the words of questions and sentences get their parts of speech, once and for all, for
the attention that grammar guides: textblob (the extra "textblob"), spacy or spacy:MODEL (the extra
"spacy" and a model of its), or MODULE:FUNCTION, a function of your own from a text to
mate_tf.tables.part_of_speech.TaggedWord.

A split whose name begins with "train" keeps the questions whose answers are found in the table.
Other splits keep every question that fits, with labels as far as the answers are found. The
summary at the end says how many were left out and why.
"""

import collections
import dataclasses
import os
import pathlib
import shutil
import time
from collections.abc import Iterator, Sequence

from absl import flags
from tqdm import tqdm

from experiments import terminal
from mate_tf.tables.part_of_speech import TaggedWord, Tagger
from mate_tf.tables.table import Question, Table

_TASK = flags.DEFINE_enum("task", "WTQ", ["WTQ", "JSONL", "SST2"], "what the input is")
_INPUT = flags.DEFINE_string("input_dir", None, "folder with the data set", required=True)
_OUTPUT = flags.DEFINE_string("output_dir", None, "folder to write to", required=True)
_VOCAB = flags.DEFINE_string("vocab_file", None, "BERT's or TAPAS's vocabulary", required=True)
_LENGTH = flags.DEFINE_integer("max_seq_length", 512, "tokens of an example", lower_bound=4)
_DROP = flags.DEFINE_bool(
    "drop_rows_to_fit", False, "leave out rows at the end of a table that is too long"
)
_TRIM = flags.DEFINE_bool(
    "trim_cells", False, "shorten the cells of a table that is too long, as TAPAS does"
)
_HISTOGRAM = flags.DEFINE_bool(
    "histogram_row",
    False,
    "end each table in a row of its columns' most frequent values, as SAT does; train with "
    "--config.histogram_row=true",
)
_TAGGER = flags.DEFINE_string(
    "tagger", None, "part-of-speech tagger: textblob, spacy, spacy:MODEL or MODULE:FUNCTION"
)

Pairs = list[tuple[Table, Question]]


@dataclasses.dataclass
class Summary:
    """What became of a split's questions."""

    num_questions: int = 0
    num_kept: int = 0
    unit: str = "questions"
    left_out: collections.Counter[str] = dataclasses.field(default_factory=collections.Counter)
    noted: collections.Counter[str] = dataclasses.field(default_factory=collections.Counter)

    def __str__(self) -> str:
        lines = [f"{self.num_kept} of {self.num_questions} {self.unit} kept"]
        lines += [f"  left out: {count} {reason}" for reason, count in self.left_out.most_common()]
        lines += [f"  kept with {what}: {count}" for what, count in self.noted.most_common()]
        return "\n".join(lines)


def read_splits(task: str, directory: str) -> Iterator[tuple[str, Pairs]]:
    """Yields the name and the questions of each split that is there."""
    from mate_tf.tables.datasets.json_lines import read_json_lines
    from mate_tf.tables.datasets.wtq import read_wtq

    if task == "WTQ":
        yield "train", list(read_wtq(directory, "train"))
        yield "dev", list(read_wtq(directory, "dev"))
        return
    files = sorted(pathlib.Path(directory).glob("*.jsonl"))
    if not files:
        raise FileNotFoundError(f"no .jsonl file in {directory}")
    for file in files:
        yield file.stem, list(read_json_lines(file))


def create_split(builder, name: str, pairs: Pairs, output_dir: str) -> Summary:
    """Writes the records and the questions of a split."""
    from mate_tf.tables.datasets.json_lines import write_json_lines
    from mate_tf.tables.features import ConversionError
    from mate_tf.tables.records import write_records
    from mate_tf.tables.supervision import SupervisionError, supervise

    is_training = name.startswith("train")
    summary = Summary(len(pairs))
    supervised: Pairs = []

    def convert(table: Table, question: Question):
        try:
            question = supervise(table, question, strict=is_training)
        except SupervisionError as error:
            if is_training:
                raise
            summary.noted[f"no labels ({error.reason})"] += 1
        finally:
            supervised.append((table, question))
        return builder.build(table, question, require_answers=is_training)

    def examples():
        for table, question in tqdm(pairs, desc=name, unit="question"):
            try:
                features, report = convert(table, question)
            except (SupervisionError, ConversionError) as error:
                summary.left_out[error.reason] += 1
                continue
            summary.noted["rows dropped"] += report.rows_dropped > 0
            summary.noted["cells trimmed"] += report.tokens_trimmed > 0
            summary.noted["answers cut off"] += report.answers_dropped > 0
            yield features

    summary.num_kept = write_records(os.path.join(output_dir, f"{name}.tfrecord"), examples())
    write_json_lines(os.path.join(output_dir, f"{name}.jsonl"), supervised)
    summary.noted += collections.Counter()  # leaves out what is zero
    return summary


def create_sentences(builder, name: str, sentences: list[Question], output_dir: str) -> Summary:
    """Writes the records of a split of sentences without tables."""
    from mate_tf.tables.features import ConversionError
    from mate_tf.tables.records import write_records

    summary = Summary(len(sentences), unit="sentences")

    def examples():
        for sentence in tqdm(sentences, desc=name, unit="sentence"):
            try:
                yield builder.build(None, sentence).features
            except ConversionError as error:
                summary.left_out[error.reason] += 1

    summary.num_kept = write_records(os.path.join(output_dir, f"{name}.tfrecord"), examples())
    return summary


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
    from mate_tf.tables.datasets.sst2 import SPLITS, read_sst2
    from mate_tf.tables.features import FeatureBuilder, FeatureConfig
    from mate_tf.tables.taggers import load_tagger
    from mate_tf.tables.wordpiece import Wordpiece

    config = FeatureConfig(
        max_seq_length=_LENGTH.value,
        trim_cells=_TRIM.value,
        drop_rows_to_fit=_DROP.value,
        histogram_row=_HISTOGRAM.value,
    )
    if os.path.realpath(_INPUT.value) == os.path.realpath(_OUTPUT.value):
        raise ValueError(f"expected another folder than the input's, got {_OUTPUT.value}")
    tagger = TimedTagger(load_tagger(_TAGGER.value)) if _TAGGER.value else None
    builder = FeatureBuilder(Wordpiece(_VOCAB.value), config, tagger)
    os.makedirs(_OUTPUT.value, exist_ok=True)
    vocab_copy = os.path.join(_OUTPUT.value, "vocab.txt")
    if os.path.abspath(_VOCAB.value) != os.path.abspath(vocab_copy):
        shutil.copyfile(_VOCAB.value, vocab_copy)
    if _TASK.value == "SST2":
        splits = {name: list(read_sst2(_INPUT.value, name)) for name in SPLITS}
        summaries = {
            name: create_sentences(builder, name, sentences, _OUTPUT.value)
            for name, sentences in splits.items()
        }
    else:
        summaries = {
            name: create_split(builder, name, pairs, _OUTPUT.value)
            for name, pairs in read_splits(_TASK.value, _INPUT.value)
        }
    for name, summary in summaries.items():
        print(f"{name}: {summary}")
    if tagger is not None:
        print(f"tagging took {tagger.seconds:.1f} s")


if __name__ == "__main__":
    terminal.run(main)
