"""Pre-training records of tables and their texts, drawn shard by shard.

An example's shard, its place there and its content depend only on a seed and its table's name. So a
shard has the same bytes whoever draws it, in whatever order.
"""

import dataclasses
import itertools
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import NamedTuple

import numpy as np
from absl import logging

from mate_tf.datasets.described_tables import DescribedTable
from mate_tf.features.config import ConversionError, PretrainingConfig
from mate_tf.features.masked_lm import MaskedLmBuilder, example_rng
from mate_tf.features.wordpiece import Wordpiece
from mate_tf.records.records import OF_TOKENS, record_writer, serialize_example
from mate_tf.records.splits import RECORDS, Encoded, Spool, place, remove_split, split_file
from mate_tf.tables.table import Table

_LABELS = ("masked_lm_positions", "masked_lm_ids", "masked_lm_weights")


class Member(NamedTuple):
    """An example before it is drawn: its order in the shard, and its number among its table's."""

    order: int
    copy: int
    described: DescribedTable


def make_builders(config: PretrainingConfig, vocab_file: str) -> list[MaskedLmBuilder]:
    """The builders, one for each length; each worker makes its own."""
    wordpiece = Wordpiece(vocab_file)
    return [MaskedLmBuilder(wordpiece, config.of_length(length)) for length in config.lengths]


def placed_members(
    described: DescribedTable, config: PretrainingConfig, num_shards: int
) -> Iterator[tuple[int, Member]]:
    """Yields each example of a table with its shard."""
    for copy in range(config.dupe_factor):
        shard, order = place(f"{described.name}_{copy}", config.seed, num_shards)
        yield shard, Member(order, copy, described)


def draw_examples(
    builders: Sequence[MaskedLmBuilder], config: PretrainingConfig, members: Iterable[Member]
) -> Iterator[Mapping[str, np.ndarray] | ConversionError]:
    """Draws the examples of a shard in order, one of each length for each member, or says why none.

    MaskedLmBuilder.build may replace a table with the next different one in the shard, which is
    random because the members are in random order. A table without texts is never replaced, because
    nothing would tell the right one.

    An example is cut to the shortest length that holds its tokens and predictions, so that small
    tables need not wait for batches of long ones.
    """
    for member, negative in _with_negatives(members):
        name, table, _ = member.described
        texts = member.described.texts_with_titles
        key = f"{name}_{member.copy}"
        for builder in builders:
            rng = example_rng(key, config.seed, builder.config.max_seq_length)
            try:
                features = builder.build(table, texts, rng, negative if texts else None)
            except ConversionError as error:
                logging.debug("left out: %s", error)
                yield error
            else:
                yield _shortened(features, config)


def draw_shard(
    builders: Sequence[MaskedLmBuilder],
    config: PretrainingConfig,
    members: Iterable[Member],
    directory: str,
    split: str,
    shard: int | None = None,
    num_shards: int | None = None,
) -> Iterator[Counter[str]]:
    """Draws a shard's examples and writes them, one file for each length (`split_file`).

    It yields the counts of each example, for conversion.Summary. The files appear at the end.
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

    with ExitStack() as stack:
        writers = {}
        for length in config.lengths:
            name = split_of_length(split, length)
            file = split_file(directory, name, RECORDS, shard, num_shards)
            writers[length] = stack.enter_context(record_writer(file))
        for example in draw_examples(builders, config, distinct()):
            if not isinstance(example, ConversionError):
                writers[len(example["input_ids"])].write(serialize_example(example))
            yield _counts(example)


def write_split(
    corpus: Iterable[DescribedTable],
    builders: Sequence[MaskedLmBuilder],
    config: PretrainingConfig,
    directory: str,
    split: str,
    num_shards: int | None = None,
) -> Iterator[Counter[str]]:
    """Draws and writes all shards of a split here, and yields the counts of `draw_shard`.

    A temporary file holds the split's tables. Without `num_shards` there is one file.
    """
    with Spool(num_shards or 1) as spool:
        for described in corpus:
            placed = placed_members(described, config, num_shards or 1)
            spool.add(_stored(described), ((shard, member.order) for shard, member in placed))
        remove_lengths(config, directory, split)
        for number in range(num_shards or 1):
            members = itertools.starmap(_restored, spool.of_shard(number))
            shard = None if num_shards is None else number
            yield from draw_shard(builders, config, members, directory, split, shard, num_shards)


def remove_lengths(config: PretrainingConfig, directory: str, split: str) -> None:
    """Removes a split's records of an earlier conversion, so that old and new never mix."""
    for length in config.lengths:
        remove_split(directory, split_of_length(split, length))


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


def _shortened(
    features: Mapping[str, np.ndarray], config: PretrainingConfig
) -> Mapping[str, np.ndarray]:
    num_tokens = int(features["input_mask"].sum())
    num_predictions = int(features["masked_lm_weights"].sum())
    capacities = ((length, config.of_length(length).max_predictions) for length in config.lengths)
    length, room = next(it for it in capacities if it[0] >= num_tokens and it[1] >= num_predictions)
    sizes = dict.fromkeys(OF_TOKENS, length) | dict.fromkeys(_LABELS, room)
    return {name: values[: sizes.get(name)] for name, values in features.items()}


def _counts(example: Mapping[str, np.ndarray] | ConversionError) -> Counter[str]:
    if isinstance(example, ConversionError):
        return Counter({"read": 1, f"left out: {example.reason}": 1})
    length = len(example["input_ids"])
    counts = Counter({"read": 1, "kept": 1, "positions": length, "positions by length": length})
    counts["tokens"] = int(example["input_mask"].sum())
    counts[f"kept with {length} tokens at most"] = 1
    if example["is_random_table"][0]:
        counts["kept with another table in its table's place"] = 1
    return counts
