"""A data set, or tables with texts, become a folder of records: the work of `mate-tf data`.

A folder of records has the files of each split (splits.py), a copy of the vocabulary, and
conversion.json, which says how the records were made. Examples to pre-train on are drawn of tables
and their texts, shard by shard; their content depends only on a seed and their table's name.

Apache Beam, of the extra "beam", makes them on any of its runners. The shards are byte for byte
those that one process writes: an example's place follows from its id.
"""

import dataclasses
import functools
import itertools
import json
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from absl import logging

from mate_tf.datasets.interactions import interactions_of
from mate_tf.datasets.json_lines import read_json_lines
from mate_tf.datasets.tasks import (
    TASKS,
    DescribedTable,
    Division,
    corpus_splits,
    folders,
    read_corpus,
    read_split,
    splits_there,
)
from mate_tf.features.builder import QUESTIONS_AT_ONCE, FeatureBuilder
from mate_tf.features.config import ConversionError, FeatureConfig, PretrainingConfig
from mate_tf.features.masked_lm import MaskedLmBuilder, example_rng
from mate_tf.features.wordpiece import Wordpiece
from mate_tf.paths import Path
from mate_tf.private_apis import import_extra
from mate_tf.records.conversion import (
    Outcome,
    Summary,
    convert_all,
    kept_counts,
    outcome_counts,
)
from mate_tf.records.conversion_file import conversion_of
from mate_tf.records.records import record_writer, serialize_example
from mate_tf.records.splits import (
    LEFT_OUT,
    QUESTIONS,
    RECORDS,
    SUFFIXES,
    Encoded,
    Spool,
    encode,
    place,
    prepare_folder,
    remove_split,
    split_file,
    split_files,
    split_writer,
    write_shard,
)
from mate_tf.tables.linked_table import plain_table
from mate_tf.tables.part_of_speech import load_tagger
from mate_tf.tables.table import Question, Table

# From items, a name for them and what one is called to the same items, such as a progress bar.
Progress = Callable[[Iterable[Any], str, str], Iterable[Any]]
_QUESTIONS_DIVIDED = Division("train", (("train", 90), ("dev", 10)))
_FEW_TABLES_DIVIDED = Division("train", (("train", 80), ("dev", 20)))
_FEW_TABLES = 10  # fewer would give a dev split of one table, or of none
_TABLES_DIVIDED = Division("train", (("train", 95), ("dev", 5)))


@dataclasses.dataclass(frozen=True, kw_only=True)
class Creation:
    """The sources of records, and where these go.

    Attributes:
        task: a name in TASKS; for pre-training one of tasks.LAYOUTS.
        input_dir, output_dir: the data set's folder, of JSON Lines also several between commas; and
            the folder to write.
        vocab_file: BERT's or TAPAS's vocabulary.
        splits: which splits; None for all that are there.
        division: how a split is divided by its tables. Without one, and without a dev split, a
            tenth of one's own training tables, or a fifth of the questions about fewer than ten,
            become one.
        num_shards, seed: files to spread each split over, None for one; and of their order.
        beam_options: of Apache Beam, such as "--runner=FlinkRunner"; None for this process.
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

    Splits whose names begin with "train" leave out questions whose answer is not found (`tagger`:
    see `load_tagger`). Errors are those of the data set's reader, and ValueError if the folder
    holds other records or a split has no examples.
    """
    task, original = TASKS[creation.task], features.original_conversion
    new_builder = functools.partial(_make_builder, creation.vocab_file, features, tagger)
    builder = new_builder()
    read = functools.partial(read_split, creation.task, creation.input_dir, original=original)
    names, absent = list(creation.splits or ()), list[str]()
    if not names:
        names, absent = splits_there(creation.task, creation.input_dir, original)
    division = creation.division
    if division is not None and not task.has_tables:
        raise ValueError(f"expected questions about tables to divide, got {creation.task}")
    is_own = not task.splits and not creation.splits
    if division is None and is_own and "dev" not in names and "train" in names:
        question_ids = _about_few_tables(read(split="train"))
        if question_ids is None:
            division = _QUESTIONS_DIVIDED
            yield _divided(division)
        elif len(question_ids) < 3:
            yield f"no dev split: {len(question_ids)} questions are too few to keep some for it"
        else:
            division = _FEW_TABLES_DIVIDED.divide_questions(question_ids)
            kept = sum(name == "dev" for _, name in division.moved)
            yield (
                f"no dev split: {kept} of {len(question_ids)} questions are kept for dev; a "
                "dev.jsonl or --divide changes that"
            )
    if division is not None:
        names = division.divided(names)
        if not division.by_questions:
            pairs = read(split=division.split)
            division = division.filled(plain_table(item).table_id for item, _ in pairs)
    conversion = conversion_of(creation.task, features, creation.vocab_file, tagger, division)
    prepare_folder(creation.output_dir, conversion, names, creation.vocab_file)
    unit = "question" if task.has_tables else "sentence"
    suffixes = SUFFIXES if task.has_tables else (RECORDS, LEFT_OUT)
    is_sharded = creation.num_shards is not None or creation.beam_options is not None

    def create(name: str) -> Summary:
        summary = Summary(f"{unit}s", left_out_file=name + "-*" * is_sharded + LEFT_OUT)
        read_part = functools.partial(read, split=name, division=division)
        is_training = name.startswith("train")
        if creation.beam_options is not None:
            convert = functools.partial(_converted_and_counted, creation.task, is_training)
            made = (read_part, new_builder, convert)
            summary.counts = write_with_beam(creation, name, suffixes, *made)
            return summary
        outcomes = convert_all(task, builder, read_part(), is_training)
        files = (creation.output_dir, name, creation.num_shards, creation.seed, suffixes)
        with split_writer(*files) as write:
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
    """Makes records of masked words and cells, and yields what it did; errors as `create_records`.

    The files are {split}_{length}.tfrecord. Other splits leave out the tables that the training
    split has too. The seed is that of the config.
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
    length = config.masked_lm.max_seq_length
    features = FeatureConfig(max_seq_length=length)
    conversion = conversion_of(creation.task, features, creation.vocab_file, None, division)
    conversion = dataclasses.replace(conversion, pretraining=config)
    stored_names = [split_of_length(name, length) for name in names]
    prepare_folder(creation.output_dir, conversion, stored_names, creation.vocab_file)
    # Parts of the training split have no table in common.
    parts = division.names if division is not None and division.split == "train" else ()
    held_out = {*names} - {"train", *parts}
    is_shared = bool(held_out) and "train" in there
    trained = {described.table.table_id for described in corpus("train")} if is_shared else set()
    new_builder = functools.partial(make_builder, config, creation.vocab_file)
    builder = new_builder() if creation.beam_options is None else None

    def create(name: str) -> Summary:
        read = functools.partial(corpus, name, division, trained if name in held_out else ())
        if builder is None:
            counts = _draw_with_beam(creation, name, read, config, new_builder)
            return Summary("examples", counts)
        files = (creation.output_dir, name, creation.num_shards)
        drawn = write_split(read(), builder, config, *files)
        return Summary("examples", sum(creation.progress(drawn, name, "example"), Counter[str]()))

    yield from _create_all(
        names, create, lambda name: remove_split(creation.output_dir, split_of_length(name, length))
    )
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


class Member(NamedTuple):
    """An example before it is drawn: its order in the shard, and its number among its table's."""

    order: int
    copy: int
    described: DescribedTable


def make_builder(config: PretrainingConfig, vocab_file: str) -> MaskedLmBuilder:
    """The builder of the examples; each worker makes its own."""
    return MaskedLmBuilder(Wordpiece(vocab_file), config.masked_lm)


def placed_members(
    described: DescribedTable, config: PretrainingConfig, num_shards: int
) -> Iterator[tuple[int, Member]]:
    """Yields each example of a table with its shard."""
    for copy in range(config.dupe_factor):
        shard, order = place(f"{described.name}_{copy}", config.seed, num_shards)
        yield shard, Member(order, copy, described)


def draw_examples(
    builder: MaskedLmBuilder, config: PretrainingConfig, members: Iterable[Member]
) -> Iterator[Mapping[str, np.ndarray] | ConversionError]:
    """Draws the examples of a shard in order, one for each member, or says why none.

    MaskedLmBuilder.build may replace a table with the next different one in the shard. A table
    without texts is never replaced, because nothing would tell the right one.
    """
    for (_, copy, described), negative in _with_negatives(members):
        texts = described.texts_with_titles
        rng = example_rng(f"{described.name}_{copy}", config.seed, builder.config.max_seq_length)
        try:
            yield builder.build(described.table, texts, rng, negative if texts else None)
        except ConversionError as error:
            logging.debug("left out: %s", error)
            yield error


def draw_shard(
    builder: MaskedLmBuilder,
    config: PretrainingConfig,
    members: Iterable[Member],
    directory: str,
    split: str,
    shard: int | None = None,
    num_shards: int | None = None,
) -> Iterator[Counter[str]]:
    """Writes a shard's examples to its file, which appears at the end, and yields their counts.

    ValueError if two tables have the same name.
    """

    def distinct() -> Iterator[Member]:
        before = None
        for member in members:
            if member.order == before:
                raise ValueError(
                    f"expected a different name for each table of the split {split!r}, got "
                    f"{member.described.name!r} twice"
                )
            before = member.order
            yield member

    name = split_of_length(split, config.masked_lm.max_seq_length)
    with record_writer(split_file(directory, name, RECORDS, shard, num_shards)) as writer:
        for example in draw_examples(builder, config, distinct()):
            if isinstance(example, ConversionError):
                yield Counter({"read": 1, f"left out: {example.reason}": 1})
                continue
            writer.write(serialize_example(example))
            counts = kept_counts(int(example["input_mask"].sum()), len(example["input_ids"]))
            if example["is_random_table"][0]:
                counts["kept with another table in its table's place"] = 1
            yield counts


def write_split(
    corpus: Iterable[DescribedTable],
    builder: MaskedLmBuilder,
    config: PretrainingConfig,
    directory: str,
    split: str,
    num_shards: int | None = None,
) -> Iterator[Counter[str]]:
    """Writes all shards of a split, or one file, and yields the counts of `draw_shard`.

    A temporary file holds the split's tables.
    """
    with Spool(num_shards or 1) as spool:
        for described in corpus:
            name, table, texts = described
            fields = {
                f.name: getattr(table, f.name) for f in dataclasses.fields(table) if f.compare
            }
            placed = placed_members(described, config, num_shards or 1)
            content = json.dumps([name, fields, texts]).encode()
            spool.add((content, None, None), ((shard, member.order) for shard, member in placed))
        remove_split(directory, split_of_length(split, config.masked_lm.max_seq_length))
        for number in range(num_shards or 1):
            members = itertools.starmap(_restored, spool.read_shard(number))
            shard = None if num_shards is None else number
            yield from draw_shard(builder, config, members, directory, split, shard, num_shards)


def _restored(order: int, copy: int, stored: Encoded) -> Member:
    name, fields, texts = json.loads(stored[0] or b"")
    return Member(order, copy, DescribedTable(name, Table(**fields), tuple(texts)))


def split_of_length(split: str, length: int) -> str:
    """The name of the records of a length, such as "train_128"."""
    return f"{split}_{length}"


def _table_id(member: Member) -> str:
    return member.described.table.table_id


def _with_negatives(members: Iterable[Member]) -> Iterator[tuple[Member, Table | None]]:
    """Each member with the next different table, in a circle; None if all are the same."""
    runs = (list(run) for _, run in itertools.groupby(members, _table_id))  # of the same table
    waiting = first = next(runs, [])
    other = None  # the first table that is different
    for run in runs:
        table = run[0].described.table
        other = other or table
        yield from ((before, table) for before in waiting)
        waiting = run
    is_first = not waiting or _table_id(first[0]) == _table_id(waiting[0])
    negative = other if is_first else first[0].described.table
    yield from ((before, negative) for before in waiting)


def _about_few_tables(pairs: Iterable[tuple[Any, Question]]) -> list[str] | None:
    """The ids of questions about few tables; None of those about as many as can be divided."""
    table_ids, question_ids = set[str](), list[str]()
    for item, question in pairs:
        table_ids.add(plain_table(item).table_id)
        question_ids.append(question.question_id)
        if len(table_ids) == _FEW_TABLES:
            return None
    return question_ids


def _divided(division: Division) -> str:
    """The sentence on a division that was not asked for."""
    percentages = ", ".join(f"{percent} % {name}" for name, percent in division.parts)
    return f"no dev split: the training tables are divided ({percentages}); --divide changes that"


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


def _make_builder(vocab_file: str, config: FeatureConfig, tagger: str | None) -> FeatureBuilder:
    """The builder that a worker makes for itself from what can be sent to it."""
    return FeatureBuilder(Wordpiece(vocab_file), config, load_tagger(tagger) if tagger else None)


def _converted_and_counted(
    task: str, is_training: bool, builder: FeatureBuilder, pairs: Iterable[tuple[Any, Question]]
) -> Iterator[Outcome]:
    """The outcomes of questions, which a worker adds to the counters."""
    for outcome in convert_all(TASKS[task], builder, pairs, is_training):
        count_in_beam(outcome_counts(outcome))
        yield outcome


def write_with_beam(
    creation: Creation,
    split: str,
    suffixes: Sequence[str],
    read: Callable[[], Iterable[Any]],
    new: Callable[[], Any],
    make: Callable[[Any, Any], Iterable[Outcome]],
) -> Counter[str]:
    """Writes the shards of a split in a pipeline; returns the sums of its counters.

    One worker calls `read`, which gives the items, and the others `make` outcomes of some of them
    with what each has got from `new`, once. All workers can write to the folder, and each sorts a
    shard in memory.
    """
    beam = import_extra("apache_beam", "beam", "to convert with Beam")
    directory, num_shards, seed = creation.output_dir, creation.num_shards or 1, creation.seed

    def placed(made: Any, batch: Any) -> Iterator[Any]:
        for outcome in make(made, batch):
            shard, order = place(outcome.question.question_id, seed, num_shards)
            yield shard, (order, encode(outcome))

    def write(_: None, shard: int, parts: Iterable[Any]) -> None:
        write_shard(directory, split, parts, shard, num_shards, suffixes)

    def all_placed(items: Any) -> Any:
        batches = items | beam.BatchElements(max_batch_size=QUESTIONS_AT_ONCE)
        return batches | "Make" >> _step(new, placed)

    return _run_pipeline(creation, split, suffixes, read, all_placed, lambda: None, write)


def _draw_with_beam(
    creation: Creation,
    split: str,
    read: Callable[[], Iterable[DescribedTable]],
    config: PretrainingConfig,
    new_builder: Callable[[], MaskedLmBuilder],
) -> Counter[str]:
    """Draws a split's pre-training examples in the same way; returns sums of `draw_shard`'s counts.

    All workers can read the vocabulary. A worker holds the tables of one shard in memory.
    """
    beam = import_extra("apache_beam", "beam", "to convert with Beam")
    directory, num_shards = creation.output_dir, creation.num_shards or 1

    def write(builder: MaskedLmBuilder, shard: int, members: Iterable[Member]) -> None:
        where = (directory, split, shard, num_shards)
        for counts in draw_shard(builder, config, members, *where):
            count_in_beam(counts)

    def placed(tables: Any) -> Any:
        return tables | beam.FlatMap(lambda table: placed_members(table, config, num_shards))

    stored_name = split_of_length(split, config.masked_lm.max_seq_length)
    return _run_pipeline(creation, stored_name, SUFFIXES, read, placed, new_builder, write)


def _step(new: Callable[[], Any], process: Callable[[Any, Any], Iterator[Any]]) -> Any:
    """A step that processes each element with what a worker makes for itself, once."""
    import apache_beam as beam

    class Step(beam.DoFn):
        def setup(self) -> None:
            self._made = new()

        def process(self, element: Any, *_: Any, **__: Any) -> Iterator[Any]:
            return process(self._made, element)

    return beam.ParDo(Step())


def count_in_beam(counts: Counter[str]) -> None:
    """Adds to the counters of the pipeline."""
    from apache_beam.metrics import Metrics

    for name, count in counts.items():
        Metrics.counter("mate_tf", name).inc(count)


def _run_pipeline(
    creation: Creation,
    split: str,
    suffixes: Sequence[str],
    read: Callable[[], Iterable[Any]],
    placed: Callable[[Any], Any],
    new: Callable[[], Any],
    write: Callable[[Any, int, Iterable[Any]], None],
) -> Counter[str]:
    """Reads, places in shards, and writes each shard; returns the sums of the counters.

    One worker calls `read`, which gives the items. `placed` makes of a collection of them one of
    pairs, a shard and a member, whose first item is its order there. `write`, with what a worker
    has got from `new`, writes a shard with its members in order. The split's old files are removed
    once the pipeline is made.
    """
    import apache_beam as beam
    from apache_beam.metrics import MetricsFilter
    from apache_beam.options.pipeline_options import PipelineOptions

    pipeline = beam.Pipeline(options=PipelineOptions(list(creation.beam_options or ())))
    inputs = (
        pipeline
        | "Start" >> beam.Create([None])
        | "Read" >> beam.FlatMap(lambda _: read())
        | "Spread" >> beam.Reshuffle()
    )
    # A shard without examples is written too.
    empty = [(shard, None) for shard in range(creation.num_shards or 1)]
    shards = pipeline | "Shards" >> beam.Create(empty)

    def write_in_order(made: Any, element: Any) -> Iterator[int]:
        shard, group = element
        members = (member for member in group if member is not None)
        write(made, shard, sorted(members, key=lambda member: member[0]))
        yield shard

    grouped = (placed(inputs), shards) | beam.Flatten() | beam.GroupByKey()
    _ = grouped | "Write" >> _step(new, write_in_order)
    # Old files go before new ones appear, so that they are never together.
    remove_split(creation.output_dir, split, suffixes)
    result = pipeline.run()
    result.wait_until_finish()
    counters = result.metrics().query(MetricsFilter().with_namespace("mate_tf"))["counters"]
    return Counter({counter.key.metric.name: counter.result for counter in counters})
