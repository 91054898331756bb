"""Pre-training records of tables and their texts, drawn shard by shard.

An example's shard, its place there and its content depend only on a seed and its table's name. So a
shard has the same bytes whoever draws it, in whatever order.
"""

import itertools
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
from mate_tf.records.splits import place, remove_split, split_file
from mate_tf.tables.table import Table

_LABELS = ("masked_lm_positions", "masked_lm_ids", "masked_lm_weights")


class Member(NamedTuple):
    """An example of a shard, before it is drawn.

    Attributes:
        order: the key that sorts the shard's examples.
        copy: the number of this example among its table's.
        described: the table.
    """

    order: int
    copy: int
    described: DescribedTable


class Example(NamedTuple):
    """A drawn example.

    Attributes:
        features: by name; None if nothing fits.
        reason: why nothing fits; "" otherwise.
    """

    features: Mapping[str, np.ndarray] | None
    reason: str = ""


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
    builders: Sequence[MaskedLmBuilder], config: PretrainingConfig, members: Sequence[Member]
) -> Iterator[Example]:
    """Draws the examples of a shard in order, one of each length for each member.

    MaskedLmBuilder.build may replace a table with the next different one in the shard, which is
    random because the members are in random order. A table without texts is never replaced, because
    nothing would tell the right one.

    An example is cut to the shortest length that holds its tokens and predictions, so that small
    tables need not wait for batches of long ones.
    """
    for member, negative in zip(members, _negatives(members), strict=True):
        name, table, _ = member.described
        texts = member.described.texts_with_titles
        key = f"{name}_{member.copy}"
        for builder in builders:
            rng = example_rng(key, config.seed, builder.config.max_seq_length)
            try:
                features = builder.build(table, texts, rng, negative if texts else None)
            except ConversionError as error:
                logging.debug("left out: %s", error)
                yield Example(None, error.reason)
            else:
                yield Example(_shortened(features, config))


def draw_shard(
    builders: Sequence[MaskedLmBuilder],
    config: PretrainingConfig,
    members: Iterable[Member],
    directory: str,
    split: str,
    shard: int | None = None,
    num_shards: int | None = None,
) -> Iterator[Counter[str]]:
    """Draws a shard's examples and writes them, one file for each length.

    Args:
        builders, config: of all lengths.
        members: of the shard, in any order.
        directory: the folder.
        split: the split.
        shard, num_shards: see split_file.

    Yields:
        The counts of each example, for conversion.Summary. The files appear at the end.

    Raises:
        ValueError: if two tables have the same name.
    """
    ordered = sorted(members, key=lambda member: member.order)
    for one, other in itertools.pairwise(ordered):
        if one.order == other.order:
            raise ValueError(
                f"expected a different name for each table of the split {split!r}, got "
                f"{one.described.name!r} twice"
            )
    with ExitStack() as stack:
        writers = {}
        for length in config.lengths:
            name = split_of_length(split, length)
            file = split_file(directory, name, shard=shard, num_shards=num_shards)
            writers[length] = stack.enter_context(record_writer(file))
        for example in draw_examples(builders, config, ordered):
            if example.features is not None:
                length = len(example.features["input_ids"])
                writers[length].write(serialize_example(example.features))
            yield _counts(example)


def write_split(
    corpus: Iterable[DescribedTable],
    builders: Sequence[MaskedLmBuilder],
    config: PretrainingConfig,
    directory: str,
    split: str,
    num_shards: int | None = None,
) -> Iterator[Counter[str]]:
    """Draws and writes all shards of a split in this process, which holds its tables in memory.

    Args:
        corpus: the tables.
        num_shards: None for one file.
        builders, config, directory, split: see draw_shard, whose counts it yields.
    """
    shards: list[list[Member]] = [[] for _ in range(num_shards or 1)]
    for described in corpus:
        for number, member in placed_members(described, config, len(shards)):
            shards[number].append(member)
    remove_lengths(config, directory, split)
    numbers: Iterable[int | None] = [None] if num_shards is None else range(num_shards)
    for shard, members in zip(numbers, shards, strict=True):
        yield from draw_shard(builders, config, members, directory, split, shard, num_shards)


def remove_lengths(config: PretrainingConfig, directory: str, split: str) -> None:
    """Removes a split's records of an earlier conversion, so that old and new never mix."""
    for length in config.lengths:
        remove_split(directory, split_of_length(split, length))


def split_of_length(split: str, length: int) -> str:
    """The name of the records of a length, such as "train_128"."""
    return f"{split}_{length}"


def _negatives(members: Sequence[Member]) -> list[Table | None]:
    """For each member the next different table, in a circle; None if all are the same."""
    tables = [member.described.table for member in members]
    negative = next((table for table in tables if table.table_id != tables[-1].table_id), None)
    found, following = [], None
    for table in reversed(tables):
        # If the same table follows, both have the same one.
        if following is not None and following.table_id != table.table_id:
            negative = following
        found.append(negative)
        following = table
    return found[::-1]


def _shortened(
    features: Mapping[str, np.ndarray], config: PretrainingConfig
) -> Mapping[str, np.ndarray]:
    num_tokens = int(features["input_mask"].sum())
    num_predictions = int(features["masked_lm_weights"].sum())
    for length in config.lengths:
        room = config.of_length(length).max_predictions
        if length >= num_tokens and room >= num_predictions:
            sizes = dict.fromkeys(OF_TOKENS, length) | dict.fromkeys(_LABELS, room)
            return {
                name: values[: sizes[name]] if name in sizes else values
                for name, values in features.items()
            }
    raise AssertionError("the length that it was drawn for holds an example")


def _counts(example: Example) -> Counter[str]:
    if example.features is None:
        return Counter({"read": 1, f"left out: {example.reason}": 1})
    length = len(example.features["input_ids"])
    counts = Counter({"read": 1, "kept": 1, "positions": length, "positions by length": length})
    counts["tokens"] = int(example.features["input_mask"].sum())
    counts[f"kept with {length} tokens at most"] = 1
    if example.features["is_random_table"][0]:
        counts["kept with another table in its table's place"] = 1
    return counts
