"""Pre-training records of tables and their texts, drawn shard by shard.

An example's shard, its place there and its content depend only on a seed and its table's name.
"""

import dataclasses
import itertools
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

import numpy as np
from absl import logging

from mate_tf.datasets.described_tables import DescribedTable
from mate_tf.features.config import ConversionError, PretrainingConfig
from mate_tf.features.masked_lm import MaskedLmBuilder, example_rng
from mate_tf.features.wordpiece import Wordpiece
from mate_tf.records.conversion import kept_counts
from mate_tf.records.records import record_writer, serialize_example
from mate_tf.records.splits import RECORDS, Encoded, Spool, place, remove_split, split_file
from mate_tf.tables.table import Table


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
    for member, negative in _with_negatives(members):
        name, table, _ = member.described
        texts = member.described.texts_with_titles
        key = f"{name}_{member.copy}"
        rng = example_rng(key, config.seed, builder.config.max_seq_length)
        try:
            yield builder.build(table, texts, rng, negative if texts else None)
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
            if not isinstance(example, ConversionError):
                writer.write(serialize_example(example))
            yield _counts(example)


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
            placed = placed_members(described, config, num_shards or 1)
            spool.add(_stored(described), ((shard, member.order) for shard, member in placed))
        remove_split(directory, split_of_length(split, config.masked_lm.max_seq_length))
        for number in range(num_shards or 1):
            members = itertools.starmap(_restored, spool.read_shard(number))
            shard = None if num_shards is None else number
            yield from draw_shard(builder, config, members, directory, split, shard, num_shards)


def split_of_length(split: str, length: int) -> str:
    """The name of the records of a length, such as "train_128"."""
    return f"{split}_{length}"


def _with_negatives(members: Iterable[Member]) -> Iterator[tuple[Member, Table | None]]:
    """Each member with the next different table, in a circle; None if all are the same."""
    waiting = list[Member]()
    first = other = None  # the first table, and the first that is different
    for member in members:
        table = member.described.table
        first = first or table
        if waiting and waiting[-1].described.table.table_id != table.table_id:
            other = other or table
            yield from ((before, table) for before in waiting)
            waiting = []
        waiting.append(member)
    last = waiting[-1].described.table if waiting else first
    negative = other if first is None or last is None or first.table_id == last.table_id else first
    yield from ((before, negative) for before in waiting)


def _stored(described: DescribedTable) -> Encoded:
    table = described.table
    fields = {f.name: getattr(table, f.name) for f in dataclasses.fields(table) if f.compare}
    return json.dumps([described.name, fields, described.texts]).encode(), None, None


def _restored(order: int, copy: int, stored: Encoded) -> Member:
    name, fields, texts = json.loads(stored[0] or b"")
    return Member(order, copy, DescribedTable(name, Table(**fields), tuple(texts)))


def _counts(example: Mapping[str, np.ndarray] | ConversionError) -> Counter[str]:
    if isinstance(example, ConversionError):
        return Counter({"read": 1, f"left out: {example.reason}": 1})
    counts = kept_counts(int(example["input_mask"].sum()), len(example["input_ids"]))
    if example["is_random_table"][0]:
        counts["kept with another table in its table's place"] = 1
    return counts
