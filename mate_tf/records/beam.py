"""Conversion and pre-training records as Apache Beam pipelines, on any of its runners.

The shards are byte for byte those that `split_writer` and `pretraining.write_split` write in one
process, whatever the runner and the number of workers: an example's place follows from its id.
Apache Beam comes with the extra "beam".
"""

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

    Args:
        task: the data set.
        read: gives its questions; one worker calls it, and the others convert.
        new_builder: gives a worker its builder, once.
        directory, split, num_shards, seed: as `split_writer`. All workers can write to the folder,
            and each sorts a shard in memory.
        options: Beam's own, such as "--runner=FlinkRunner" or "--direct_num_workers=4".

    Returns:
        The sums of `outcome_counts`, which are also counters of the pipeline.
    """
    import_extra("apache_beam", "beam", "to convert with Beam")
    import apache_beam as beam

    is_training = split.startswith("train")

    class Convert(beam.DoFn):
        """From questions and their tables to shards, places there, records and lines."""

        def setup(self) -> None:
            self._builder = new_builder()

        def process(self, element: Any, *_: Any, **__: Any) -> Iterator[Any]:
            for outcome in convert_all(task, self._builder, element, is_training):
                _count(outcome_counts(outcome))
                shard, order = place(outcome.question.question_id, seed, num_shards)
                yield shard, (order, encode(outcome))

    def write(element: Any) -> None:
        shard, parts = element
        placed = sorted((part for part in parts if part is not None), key=lambda part: part[0])
        write_shard(directory, split, placed, shard, num_shards, task.has_tables)

    def converted(questions: Any) -> Any:
        batches = questions | beam.BatchElements(max_batch_size=QUESTIONS_AT_ONCE)
        return batches | "Convert" >> beam.ParDo(Convert())

    return _run(
        read,
        converted,
        beam.Map(write),
        lambda: remove_split(directory, split),
        num_shards,
        options,
    )


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
    import_extra("apache_beam", "beam", "to convert with Beam")
    import apache_beam as beam

    class Write(beam.DoFn):
        """From a shard and its members to files."""

        def setup(self) -> None:
            self._builders = make_builders(config, vocab_file)

        def process(self, element: Any, *_: Any, **__: Any) -> Iterator[Any]:
            shard, found = element
            members = [member for member in found if member is not None]
            members.sort(key=lambda member: member.order)
            for counts in draw_shard(
                self._builders, config, members, directory, split, shard, num_shards
            ):
                _count(counts)
            yield shard

    return _run(
        read,
        lambda tables: tables | beam.FlatMap(lambda of: placed_members(of, config, num_shards)),
        beam.ParDo(Write()),
        lambda: remove_lengths(config, directory, split),
        num_shards,
        options,
    )


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
