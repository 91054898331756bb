"""The conversion of a split as an Apache Beam pipeline, on any of its runners.

Whatever the runner and the number of its workers, the shards are byte for byte those that
`split_writer` writes in one process: where a question goes follows from its id. Apache Beam comes
with the extra "beam".
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from mate_tf.datasets.tasks import Task
from mate_tf.features.builder import QUESTIONS_AT_ONCE, FeatureBuilder, FeatureConfig
from mate_tf.features.wordpiece import Wordpiece
from mate_tf.records.conversion import convert_all, outcome_counts
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
