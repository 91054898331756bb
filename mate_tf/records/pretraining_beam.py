"""Pre-training records as an Apache Beam pipeline, on any of its runners.

Whatever the runner and the number of its workers, the shards are byte for byte those that
`pretraining.write_split` writes in one process. Apache Beam comes with the extra "beam".
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from mate_tf.datasets.described_tables import DescribedTable
from mate_tf.records.pretraining import (
    PretrainingConfig,
    make_builders,
    placed_members,
    remove_lengths,
    write_shard,
)

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
            written = write_shard(
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
