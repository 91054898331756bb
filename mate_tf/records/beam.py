"""The conversion of a split as an Apache Beam pipeline, on any of its runners.

Whatever the runner and the number of its workers, the shards are byte for byte those that
`split_writer` writes in one process: where a question goes follows from its id. Apache Beam comes
with the extra "beam".
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from mate_tf.datasets.described_tables import DescribedTable
from mate_tf.datasets.tasks import Task
from mate_tf.features.builder import QUESTIONS_AT_ONCE, FeatureBuilder
from mate_tf.features.config import FeatureConfig, PretrainingConfig
from mate_tf.features.wordpiece import Wordpiece
from mate_tf.records.conversion import convert_all, outcome_counts
from mate_tf.records.pretraining import draw_shard, make_builders, placed_members, remove_lengths
from mate_tf.records.splits import encode, place, remove_split, write_shard
from mate_tf.tables.part_of_speech import load_tagger
from mate_tf.tables.table import Question

_CONVERSION_NAMESPACE = "mate_tf.conversion"


def make_builder(vocab_file: str, config: FeatureConfig, tagger: str | None) -> FeatureBuilder:
    """The builder that a worker makes for itself, of what can be sent to it."""
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
    """Converts a split and writes its shards, in a pipeline that is run to its end.

    Args:
        task: the data set.
        read: gives its questions; one worker calls it, and others convert.
        new_builder: gives a worker its builder, once.
        directory: the folder, which all workers can write to.
        split: the split; "train..." is converted for training.
        num_shards: shards to write. Each is sorted in a worker's memory.
        seed: of the order of the shards.
        options: Beam's own, such as "--runner=FlinkRunner" or "--direct_num_workers=4".

    Returns:
        The sums of `outcome_counts`, which are counters of the pipeline too.

    Raises:
        ModuleNotFoundError: without apache_beam.
    """
    import apache_beam as beam
    from apache_beam.metrics import Metrics, MetricsFilter
    from apache_beam.options.pipeline_options import PipelineOptions

    is_training = split.startswith("train")

    class Convert(beam.DoFn):
        """Questions and their tables to their shards, places there, records and lines."""

        def setup(self) -> None:
            self._builder = new_builder()

        def process(self, element: Any, *_: Any, **__: Any) -> Iterator[Any]:
            for outcome in convert_all(task, self._builder, element, is_training):
                for name, count in outcome_counts(outcome).items():
                    Metrics.counter(_CONVERSION_NAMESPACE, name).inc(count)
                shard, order = place(outcome.question.question_id, seed, num_shards)
                yield shard, (order, encode(outcome))

    def write(element: Any) -> None:
        shard, parts = element
        placed = sorted((part for part in parts if part is not None), key=lambda part: part[0])
        write_shard(directory, split, placed, shard, num_shards, task.has_tables)

    pipeline = beam.Pipeline(options=PipelineOptions(list(options)))
    converted = (
        pipeline
        | "Start" >> beam.Create([None])
        | "Read" >> beam.FlatMap(lambda _: read())
        | "Spread" >> beam.Reshuffle()
        | "Batch" >> beam.BatchElements(max_batch_size=QUESTIONS_AT_ONCE)
        | "Convert" >> beam.ParDo(Convert())
    )
    # A shard without questions is a file too.
    shards = pipeline | "Shards" >> beam.Create([(shard, None) for shard in range(num_shards)])
    (converted, shards) | beam.Flatten() | beam.GroupByKey() | "Write" >> beam.Map(write)
    # Before a shard is written, so that old ones and new ones are never together.
    remove_split(directory, split)
    result = pipeline.run()
    result.wait_until_finish()
    found = result.metrics().query(MetricsFilter().with_namespace(_CONVERSION_NAMESPACE))[
        "counters"
    ]
    return Counter({counter.key.metric.name: counter.result for counter in found})


_NAMESPACE = "mate_tf.pretraining"


def draw_split(
    read: Callable[[], Iterable[DescribedTable]],
    vocab_file: str,
    config: PretrainingConfig,
    directory: str,
    split: str,
    num_shards: int,
    options: Sequence[str] = (),
) -> Counter[str]:
    """Draws the examples of a split and writes its shards, in a pipeline that is run to its end.

    Args:
        read: gives its tables; one worker calls it, and others draw.
        vocab_file: the vocabulary, which all workers can read.
        config: what is drawn.
        directory: the folder, which all workers can write to.
        split: the split.
        num_shards: shards to write; a worker holds the tables of one in memory.
        options: Beam's own, such as "--runner=FlinkRunner" or "--direct_num_workers=4".

    Returns:
        What became of the examples, as `write_split`; counters of the pipeline too.

    Raises:
        ModuleNotFoundError: without apache_beam.
    """
    import apache_beam as beam
    from apache_beam.metrics import Metrics, MetricsFilter
    from apache_beam.options.pipeline_options import PipelineOptions

    class Write(beam.DoFn):
        """A shard and its members to files."""

        def setup(self) -> None:
            self._builders = make_builders(config, vocab_file)

        def process(self, element: Any, *_: Any, **__: Any) -> Iterator[Any]:
            shard, found = element
            members = [member for member in found if member is not None]
            written = draw_shard(
                self._builders, config, members, directory, split, shard, num_shards
            )
            for counts in written:
                for name, count in counts.items():
                    Metrics.counter(_NAMESPACE, name).inc(count)
            yield shard

    pipeline = beam.Pipeline(options=PipelineOptions(list(options)))
    members = (
        pipeline
        | "Start" >> beam.Create([None])
        | "Read" >> beam.FlatMap(lambda _: read())
        | "Spread" >> beam.Reshuffle()
        | "Place" >> beam.FlatMap(lambda table: placed_members(table, config, num_shards))
    )
    # A shard without examples is a file too.
    shards = pipeline | "Shards" >> beam.Create([(shard, None) for shard in range(num_shards)])
    _ = (members, shards) | beam.Flatten() | beam.GroupByKey() | "Write" >> beam.ParDo(Write())
    remove_lengths(config, directory, split)
    result = pipeline.run()
    result.wait_until_finish()
    found = result.metrics().query(MetricsFilter().with_namespace(_NAMESPACE))["counters"]
    return Counter({counter.key.metric.name: counter.result for counter in found})
