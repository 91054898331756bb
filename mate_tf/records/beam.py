"""Conversion and pre-training records as Apache Beam pipelines, on any of its runners.

The shards are byte for byte those that `split_writer` and `pretraining.write_split` write in one
process, whatever the runner and the number of workers: an example's place follows from its id.
Apache Beam comes with the extra "beam".
"""

import functools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from mate_tf.datasets.described_tables import DescribedTable
from mate_tf.datasets.tasks import Task
from mate_tf.features.builder import QUESTIONS_AT_ONCE, FeatureBuilder
from mate_tf.features.config import FeatureConfig, PretrainingConfig
from mate_tf.features.wordpiece import Wordpiece
from mate_tf.private_apis import import_extra
from mate_tf.records.conversion import convert_all, outcome_counts
from mate_tf.records.pretraining import draw_shard, make_builders, placed_members, remove_lengths
from mate_tf.records.splits import encode, place, remove_split, write_shard
from mate_tf.tables.part_of_speech import load_tagger
from mate_tf.tables.table import Question

_NAMESPACE = "mate_tf"


def make_builder(vocab_file: str, config: FeatureConfig, tagger: str | None) -> FeatureBuilder:
    """The builder that a worker makes for itself from what can be sent to it."""
    return FeatureBuilder(Wordpiece(vocab_file), config, load_tagger(tagger) if tagger else None)


def convert_split(
    task: Task,
    read: Callable[[], Iterable[tuple[Any, Question]]],
    new_builder: Callable[[], FeatureBuilder],
    directory: str,
    split: str,
    num_shards: int,
    seed: int = 0,
    options: Sequence[str] = (),
) -> Counter[str]:
    """Converts a split and writes its shards, in a pipeline that runs to its end.

    One worker calls `read`, which gives the questions, and the others convert; each calls
    `new_builder` once. `directory`, `split`, `num_shards` and `seed` are as of `split_writer`. All
    workers can write to the folder, and each sorts a shard in memory. The options are Beam's own,
    such as "--runner=FlinkRunner" or "--direct_num_workers=4".

    Returns:
        The sums of `outcome_counts`, which are also counters of the pipeline.
    """
    beam = import_extra("apache_beam", "beam", "to convert with Beam")
    is_training = split.startswith("train")

    def convert(builder: FeatureBuilder, batch: Any) -> Iterator[Any]:
        for outcome in convert_all(task, builder, batch, is_training):
            _count(outcome_counts(outcome))
            shard, order = place(outcome.question.question_id, seed, num_shards)
            yield shard, (order, encode(outcome))

    def write(element: Any) -> None:
        shard, parts = element
        placed = sorted((part for part in parts if part is not None), key=lambda part: part[0])
        write_shard(directory, split, placed, shard, num_shards, task.has_tables)

    def converted(questions: Any) -> Any:
        batches = questions | beam.BatchElements(max_batch_size=QUESTIONS_AT_ONCE)
        return batches | "Convert" >> _step(new_builder, convert)

    remove_old = functools.partial(remove_split, directory, split)
    return _run(read, converted, beam.Map(write), remove_old, num_shards, options)


def draw_split(
    read: Callable[[], Iterable[DescribedTable]],
    vocab_file: str,
    config: PretrainingConfig,
    directory: str,
    split: str,
    num_shards: int,
    options: Sequence[str] = (),
) -> Counter[str]:
    """Draws the pre-training examples of a split and writes its shards, as `convert_split` does.

    All workers can read the vocabulary. A worker holds the tables of one shard in memory. It
    returns the counts of `pretraining.write_split`.
    """
    beam = import_extra("apache_beam", "beam", "to convert with Beam")

    def write(builders: Any, element: Any) -> Iterator[Any]:
        shard, found = element
        members = [member for member in found if member is not None]
        members.sort(key=lambda member: member.order)
        drawn = draw_shard(builders, config, members, directory, split, shard, num_shards)
        for counts in drawn:
            _count(counts)
        yield shard

    def placed(tables: Any) -> Any:
        return tables | beam.FlatMap(lambda table: placed_members(table, config, num_shards))

    remove_old = functools.partial(remove_lengths, config, directory, split)
    new_builders = functools.partial(make_builders, config, vocab_file)
    return _run(read, placed, _step(new_builders, write), remove_old, num_shards, options)


def _step(new: Callable[[], Any], process: Callable[[Any, Any], Iterator[Any]]) -> Any:
    """A step that processes each element with what a worker makes for itself, once."""
    import apache_beam as beam

    class Step(beam.DoFn):
        def setup(self) -> None:
            self._made = new()

        def process(self, element: Any, *_: Any, **__: Any) -> Iterator[Any]:
            return process(self._made, element)

    return beam.ParDo(Step())


def _count(counts: Counter[str]) -> None:
    from apache_beam.metrics import Metrics

    for name, count in counts.items():
        Metrics.counter(_NAMESPACE, name).inc(count)


def _run(
    read: Callable[[], Iterable[Any]],
    placed: Callable[[Any], Any],
    write: Any,
    remove_old: Callable[[], None],
    num_shards: int,
    options: Sequence[str],
) -> Counter[str]:
    """Reads, places in shards, and writes each shard; returns the sums of the counters."""
    import apache_beam as beam
    from apache_beam.metrics import MetricsFilter
    from apache_beam.options.pipeline_options import PipelineOptions

    pipeline = beam.Pipeline(options=PipelineOptions(list(options)))
    inputs = (
        pipeline
        | "Start" >> beam.Create([None])
        | "Read" >> beam.FlatMap(lambda _: read())
        | "Spread" >> beam.Reshuffle()
    )
    # A shard without examples is written too.
    shards = pipeline | "Shards" >> beam.Create([(shard, None) for shard in range(num_shards)])
    _ = (placed(inputs), shards) | beam.Flatten() | beam.GroupByKey() | "Write" >> write
    # Old files go before new ones appear, so that they are never together.
    remove_old()
    result = pipeline.run()
    result.wait_until_finish()
    found = result.metrics().query(MetricsFilter().with_namespace(_NAMESPACE))["counters"]
    return Counter({counter.key.metric.name: counter.result for counter in found})
