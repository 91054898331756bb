"""A data set, or tables with texts, become a folder of records: the work of `mate-tf data`.

A folder of records has {split}.tfrecord, the examples, and for questions about tables also
{split}.jsonl, all questions with their tables; {split}.left_out.jsonl, which names the questions
that are no examples, if there are any; a copy of the vocabulary; and conversion.json, which says
how the records were made.
"""

import dataclasses
import functools
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from mate_tf.datasets.described_tables import corpus_splits, read_corpus
from mate_tf.datasets.interactions import interactions_of
from mate_tf.datasets.json_lines import read_json_lines
from mate_tf.datasets.tasks import TASKS, Division, folders, read_split, splits_there
from mate_tf.features.config import FeatureConfig, PretrainingConfig
from mate_tf.records import beam, pretraining
from mate_tf.records.conversion import Summary, convert_all
from mate_tf.records.conversion_file import conversion_of
from mate_tf.records.records import Path, record_writer
from mate_tf.records.splits import (
    LEFT_OUT,
    QUESTIONS,
    RECORDS,
    prepare_folder,
    remove_split,
    split_files,
    split_writer,
)
from mate_tf.tables.linked_table import plain_table

# From items, a name for them and what one is called to the same items, such as a progress bar.
Progress = Callable[[Iterable[Any], str, str], Iterable[Any]]
_QUESTIONS_DIVIDED = Division("train", (("train", 90), ("dev", 10)))
_TABLES_DIVIDED = Division("train", (("train", 95), ("dev", 5)))


@dataclasses.dataclass(frozen=True, kw_only=True)
class Creation:
    """What records are made from, and where they go.

    Attributes:
        task: a name in TASKS; for pre-training one of described_tables.LAYOUTS.
        input_dir, output_dir: the data set's folder, of JSON Lines also several between commas; and
            the folder to write.
        vocab_file: BERT's or TAPAS's vocabulary.
        splits: which splits; None for all that are there.
        division: how a split is divided by its tables. Without one, and without a dev split, some
            tables of one's own training split become one.
        num_shards, seed: files to spread each split over, None for one; and of their order.
        beam_options: of Apache Beam, which then makes the records; None for this process.
        write_interactions: whether to write the questions as interactions of TAPAS's release too.
        progress: wraps what takes long.
    """

    task: str
    input_dir: str
    output_dir: str
    vocab_file: str
    splits: Sequence[str] | None = None
    division: Division | None = None
    num_shards: int | None = None
    seed: int = 0
    beam_options: Sequence[str] | None = None
    write_interactions: bool = False
    progress: Progress = lambda items, name, unit: items

    def __post_init__(self) -> None:
        inputs = map(os.path.realpath, folders(self.input_dir))
        if os.path.realpath(self.output_dir) in inputs:
            raise ValueError(f"expected another folder than the input's, got {self.output_dir}")


def create_records(
    creation: Creation, features: FeatureConfig, tagger: str | None = None
) -> Iterator[str]:
    """Makes records of questions or sentences, and yields what it did, split by split.

    A split whose name begins with "train" keeps the questions whose answers are found in the table.
    Other splits keep every question that fits, with labels if the answer is found. `tagger` is what
    tags parts of speech (`load_tagger`). Errors are those of the data set's reader, and ValueError
    if the folder holds other records or a split has no examples.
    """
    task, original = TASKS[creation.task], features.original_conversion
    new_builder = functools.partial(beam.make_builder, creation.vocab_file, features, tagger)
    builder = new_builder()
    read = functools.partial(read_split, creation.task, creation.input_dir, original=original)
    names, absent = list(creation.splits or ()), list[str]()
    if not names:
        names, absent = splits_there(creation.task, creation.input_dir, original)
    division = creation.division
    if division is not None and not task.has_tables:
        raise ValueError(f"expected questions about tables to divide, got {creation.task}")

    def table_ids(split: str) -> Iterator[str]:
        return (plain_table(item).table_id for item, _ in read(split=split))

    is_own = not task.splits and not creation.splits
    if division is None and is_own and "dev" not in names and "train" in names:
        ids = table_ids("train")
        first = next(ids, None)
        if any(table_id != first for table_id in ids):
            division = _QUESTIONS_DIVIDED
            yield _divided(division)
        else:
            yield "no dev split: there is one table alone, which cannot be divided"
    if division is not None:
        names = division.divided(names)
        division = division.filled(table_ids(division.split))
    conversion = conversion_of(creation.task, features, creation.vocab_file, tagger, division)
    prepare_folder(creation.output_dir, conversion, names, creation.vocab_file)

    def create(name: str) -> Summary:
        unit = "question" if task.has_tables else "sentence"
        is_sharded = creation.num_shards is not None or creation.beam_options is not None
        left_out = name + "-*" * is_sharded + LEFT_OUT
        of_split = functools.partial(read, split=name, division=division)
        where = (creation.output_dir, name)
        if creation.beam_options is not None:
            seed, options = creation.seed, creation.beam_options
            counts = beam.convert_split(
                task, of_split, new_builder, *where, creation.num_shards or 1, seed, options
            )
            return Summary(f"{unit}s", counts, left_out)
        summary = Summary(f"{unit}s", left_out_file=left_out)
        writer = split_writer(*where, creation.num_shards, creation.seed, task.has_tables)
        outcomes = convert_all(task, builder, of_split(), is_training=name.startswith("train"))
        with writer as write:
            for outcome in creation.progress(outcomes, name, unit):
                summary.add(outcome)
                write(outcome)
        return summary

    yield from _create_all(names, create, lambda name: remove_split(creation.output_dir, name))
    if creation.write_interactions:
        for name in names:
            write_interactions(creation.output_dir, name)
    yield from (f"not there, {reason}" for reason in absent)


def create_pretraining_records(creation: Creation, config: PretrainingConfig) -> Iterator[str]:
    """Makes records of masked words and cells, and yields what it did, split by split.

    The files are {split}_{length}.tfrecord for each length. Other splits leave out the tables that
    the training split has too. The seed is that of the config. Errors are those of
    `create_records`.
    """
    there, absent = corpus_splits(creation.task, creation.input_dir)
    names = list(creation.splits or there)
    division = creation.division
    if division is None and "dev" not in there and "train" in names:
        division, absent = _TABLES_DIVIDED, []
        yield _divided(division)
    corpus = functools.partial(read_corpus, creation.task, creation.input_dir)
    if division is not None:
        names = division.divided(names)
        division = division.filled(described.table.table_id for described in corpus(division.split))
    features = FeatureConfig(max_seq_length=config.lengths[-1])
    conversion = conversion_of(creation.task, features, creation.vocab_file, None, division)
    conversion = dataclasses.replace(conversion, pretraining=config)
    of_length = pretraining.split_of_length
    of_lengths = [of_length(name, length) for name in names for length in config.lengths]
    prepare_folder(creation.output_dir, conversion, of_lengths, creation.vocab_file)
    # Parts of the training split have no table in common.
    parts = division.names if division is not None and division.split == "train" else ()
    held_out = [name for name in names if name != "train" and name not in parts]
    trained = frozenset[str]()
    if held_out and "train" in there:
        trained = frozenset(described.table.table_id for described in corpus("train"))
    in_this_process = creation.beam_options is None
    builders = pretraining.make_builders(config, creation.vocab_file) if in_this_process else []

    def create(name: str) -> Summary:
        without = trained if name in held_out else frozenset()
        read = functools.partial(corpus, name, division, without)
        where = (creation.output_dir, name)
        if creation.beam_options is not None:
            num_shards, options = creation.num_shards or 1, creation.beam_options
            counts = beam.draw_split(read, creation.vocab_file, config, *where, num_shards, options)
            return Summary("examples", counts)
        counts = Counter[str]()
        drawn = pretraining.write_split(read(), builders, config, *where, creation.num_shards)
        for of_example in creation.progress(drawn, name, "example"):
            counts.update(of_example)
        return Summary("examples", counts)

    remove = functools.partial(pretraining.remove_lengths, config, creation.output_dir)
    yield from _create_all(names, create, remove)
    yield from (f"not there, {reason}" for reason in absent)


def write_interactions(directory: Path, split: str) -> None:
    """Writes a split's questions to interactions/{split}.tfrecord too, as TAPAS's release does.

    There are as many shards as of {split}.jsonl; errors as `split_files` and `read_json_lines`.
    """
    folder = os.path.join(directory, "interactions")
    remove_split(folder, split)
    for file in split_files(directory, split, QUESTIONS):
        name = os.path.basename(file).removesuffix(QUESTIONS)
        with record_writer(os.path.join(folder, name + RECORDS), compression="") as writer:
            for interaction in interactions_of(read_json_lines(file)):
                writer.write(interaction.SerializeToString())


def _divided(division: Division) -> str:
    """What is said where a division was not asked for."""
    percentages = ", ".join(f"{percent} % {name}" for name, percent in division.parts)
    return (
        f"no dev split: the training tables are divided ({percentages}); a choice of splits or a "
        "division changes that"
    )


def _create_all(
    names: Sequence[str], create: Callable[[str], Summary], remove: Callable[[str], None]
) -> Iterator[str]:
    """Creates splits and yields their summaries; of one without examples no file is left."""
    empty = []
    for name in names:
        summary = create(name)
        yield f"{name}: {summary}"
        if not summary.num_kept:
            remove(name)
            empty.append(name)
    if empty:
        raise ValueError(
            f"expected examples in each split, got none in {', '.join(empty)}; the summary above "
            "says why"
        )
