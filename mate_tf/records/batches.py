"""Records as batches for training, by length and with tables in other orders."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np
import tensorflow as tf

from mate_tf.records.records import (
    OF_TOKENS,
    OPTIONAL,
    WIDER_THAN_INT32,
    Path,
    Schema,
    _paths,
    _schemas,
    detect_compression,
    readable_records,
)

_SHUFFLED_TOGETHER = 20_000


_BOUNDARIES = (64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384)


def read_records(
    files: Path | Sequence[Path],
    seed: int | None = None,
    epoch: int = 0,
    skip_corrupt: bool = False,
) -> tf.data.Dataset:
    """One pass over the examples of record files.

    Args:
        files: the files, compressed or not; all of one sequence length.
        seed: None for the order of the files. Otherwise records are shuffled, 20,000 with each
            other, in the same order for the same seed and epoch (and tf.random's global seed).
        epoch: the number of the pass.
        skip_corrupt: whether damaged records are passed over, with a logged warning that counts
            them, where otherwise reading them is an error. Slower.

    Returns:
        A dataset of features by name, int32, float32 or string: [S] for the tokens and [1] for
        the example (question_id_ints [64], masked_lm_* as many as predictions). Unknown features,
        such as the release's aggregation candidates, are left out.

    Raises:
        FileNotFoundError: if a file is missing.
        ValueError: if a file is not a record file, has no example or another one's features, or if
            the lengths of two files differ. Shards may be without examples if not all are.
    """
    records, schema = _serialized(files, skip_corrupt)
    if seed is not None:
        records = _shuffled(records, seed, epoch)
    return _parsed(records, schema)


def parse_record(record: tf.Tensor, schema: Schema) -> dict[str, tf.Tensor]:
    """The features of one serialized example."""
    parsed = tf.io.parse_single_example(record, schema)
    for name, values in parsed.items():
        if values.dtype == tf.int64 and name not in WIDER_THAN_INT32:
            parsed[name] = tf.cast(values, tf.int32)
    for name in OPTIONAL:
        parsed.setdefault(name, tf.zeros_like(parsed["input_ids"]))
    return parsed


def has_histogram_row(files: Path | Sequence[Path], skip_corrupt: bool = False) -> bool:
    """Whether the examples end in a histogram row (FeatureConfig), by the first one.

    Raises:
        FileNotFoundError, ValueError: as read_records.
    """
    examples = read_records(files, skip_corrupt=skip_corrupt)
    (example,) = examples.take(1).as_numpy_iterator()
    return bool(np.isinf(example.get("numeric_values_scale", 0.0)).any())


def batch_by_length(
    dataset: tf.data.Dataset,
    batch_size: int,
    boundaries: Sequence[int] | None = None,
    remainder: Literal["keep", "drop", "repeat"] = "keep",
) -> tf.data.Dataset:
    """Batches examples of like length together and trims the padding that they share.

    Args:
        dataset: examples as of read_records.
        batch_size: examples in a batch.
        boundaries: lengths to which batches are trimmed; an example goes to the smallest that
            holds its tokens. The length of the records is always one of them, larger ones do not
            count. Default: the powers of two from 64.
        remainder: what becomes of the examples of a length that fill no batch at the end: "keep"
            gives smaller batches, "drop" leaves them out, "repeat" repeats them until the batch
            is full.

    Returns:
        A dataset of batches, [B, boundary] for the tokens, in an order that follows from the
        dataset's. Unless the remainder is kept, every batch has exactly `batch_size` examples, so
        there are as many shapes as boundaries, as XLA and a TPU need; and where there is one
        boundary, the length of the records (`boundaries=()`), the dataset's element_spec is static.

    Raises:
        ValueError: if a boundary or the batch size is not positive.
    """
    limits = _limits(dataset, boundaries)
    if batch_size < 1:
        raise ValueError(f"expected a positive batch size, got {batch_size}")

    def batch(bucket: tf.Tensor, window: tf.data.Dataset) -> tf.data.Dataset:
        def trim(features: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
            limit = tf.gather(limits, bucket)
            return {
                name: values[:, :limit] if name in OF_TOKENS else values
                for name, values in features.items()
            }  # [B, limit]

        if remainder == "repeat":
            window = window.repeat().take(batch_size)
        window = window.batch(batch_size, drop_remainder=remainder != "keep")
        # One length is a static one, as long as nothing is cut to it.
        return window if limits.shape[0] == 1 else window.map(trim)

    return dataset.group_by_window(
        key_func=lambda features: _bucket(features, limits),
        reduce_func=batch,
        window_size=batch_size,
    )


def training_batches(
    files: Path | Sequence[Path],
    batch_size: int,
    seed: int,
    boundaries: Sequence[int] | None = None,
    skip: int = 0,
    skip_corrupt: bool = False,
    perturbed_copies: int = 0,
) -> tf.data.Dataset:
    """Batches for training without end; each epoch has every example in an order of its own.

    The order depends on the seed and the epoch alone, so the batches after the first n are the
    same whether those were made or skipped: training resumes exactly. Each length's last batch of
    an epoch is filled up with repeated examples.

    Args:
        files, seed, skip_corrupt: as read_records.
        batch_size, boundaries: as batch_by_length.
        skip: how many batches to leave out at the beginning, whole epochs at no cost.
        perturbed_copies: of each table, with its rows and columns in random orders, in addition to
            the table as it is. Each epoch has one of them of each table, in turn, beginning at
            another for each table: an epoch has all kinds (TableFormer paper, sections 4.3 and
            5.5). An example's copies follow from the seed and its table alone.

    Raises:
        ValueError: as read_records, and if tables are to be perturbed whose records do not name
            them.
    """
    epoch = 0
    if skip:
        num_batches = _count_batches(files, batch_size, boundaries, skip_corrupt)
        epoch, skip = divmod(skip, num_batches)

    records, schema = _serialized(files, skip_corrupt)

    def of_epoch(epoch: tf.Tensor) -> tf.data.Dataset:
        # Of this function's graph alone: the order is to follow from our seed, and TensorFlow
        # cannot combine a seed that is a tensor with a global one of 0.
        tf.random.set_seed(1)
        examples = _parsed(_shuffled(records, seed, epoch), schema)
        if perturbed_copies:
            examples = examples.map(
                lambda features: perturbed_copy(
                    features, seed, copy_of_epoch(features, epoch, perturbed_copies)
                ),
                num_parallel_calls=tf.data.AUTOTUNE,
            )
        return batch_by_length(examples, batch_size, boundaries, remainder="repeat")

    return tf.data.Dataset.counter(epoch).flat_map(of_epoch).skip(skip)


def bucket_length(num_tokens: int, max_seq_length: int) -> int:
    """The length that `batch_by_length` trims an example of so many tokens to, by default."""
    return min(b for b in (*_BOUNDARIES, max_seq_length) if num_tokens <= b <= max_seq_length)


def _serialized(files: Path | Sequence[Path], skip_corrupt: bool) -> tuple[tf.data.Dataset, Schema]:
    """The records of the files, in their order, and what is in each."""
    paths = _paths(files)
    schema, with_examples = _schemas(paths, skip_corrupt)
    if skip_corrupt:
        return tf.data.Dataset.from_tensor_slices(with_examples).flat_map(
            lambda file: tf.data.Dataset.from_generator(
                readable_records, args=[file], output_signature=tf.TensorSpec([], tf.string)
            )
        ), schema
    compressions = [detect_compression(file) for file in with_examples]
    records = tf.data.Dataset.from_tensor_slices((with_examples, compressions)).flat_map(
        lambda file, compression: tf.data.TFRecordDataset(file, compression_type=compression)
    )
    return records, schema


def _shuffled(records: tf.data.Dataset, seed: int, epoch: int | tf.Tensor) -> tf.data.Dataset:
    order = seed * 1_000_003 + tf.cast(epoch, tf.int64)
    return records.shuffle(_SHUFFLED_TOGETHER, seed=order, reshuffle_each_iteration=False)


def _parsed(records: tf.data.Dataset, schema: Schema) -> tf.data.Dataset:
    return records.map(lambda r: parse_record(r, schema), num_parallel_calls=tf.data.AUTOTUNE)


def _count_batches(
    files: Path | Sequence[Path],
    batch_size: int,
    boundaries: Sequence[int] | None,
    skip_corrupt: bool,
) -> int:
    examples = read_records(files, skip_corrupt=skip_corrupt)
    limits = _limits(examples, boundaries)
    buckets = examples.map(lambda features: _bucket(features, limits)).as_numpy_iterator()
    return sum(math.ceil(count / batch_size) for count in Counter(buckets).values())


def _limits(dataset: tf.data.Dataset, boundaries: Sequence[int] | None) -> tf.Tensor:
    length = dataset.element_spec["input_ids"].shape[0]
    boundaries = _BOUNDARIES if boundaries is None else boundaries
    if any(boundary < 1 for boundary in boundaries):
        raise ValueError(f"expected positive boundaries, got {list(boundaries)}")
    return tf.constant(sorted({b for b in boundaries if b < length} | {length}), tf.int64)


def _bucket(features: Mapping[str, tf.Tensor], limits: tf.Tensor) -> tf.Tensor:
    num_tokens = tf.reduce_sum(tf.cast(features["input_mask"], tf.int64))
    return tf.searchsorted(limits, [num_tokens], out_type=tf.int64)[0]


# Features that are places in the sequence.
_OF_PLACES = ("masked_lm_positions",)


def reorder_features(
    features: Mapping[str, tf.Tensor], rows: tf.Tensor, columns: tf.Tensor
) -> dict[str, tf.Tensor]:
    """The features of an example as of its table in another order.

    Of a table that is in the sequence whole they are those of the reordered table, but for what a
    conversion chooses by the order itself: the first occurrence of an answer's text
    (FeatureConfig.label_answer_spans) and the order of equally frequent values in a histogram row.
    These go with their tokens. A histogram row stays the last.

    Args:
        features: of one example, by name; [S] for the tokens.
        rows: for each row id, from 1, the former one: int32 [R].
        columns: the same for column ids: int32 [C].
    """
    num_rows = tf.size(rows)
    # The question and the header have id 0, a histogram row R + 1.
    old_rows = tf.concat([[0], rows, [num_rows + 1]], axis=0)  # [R+2]
    row_ids = tf.gather(tf.math.invert_permutation(old_rows), features["row_ids"])  # [S]
    old_columns = tf.concat([[0], columns], axis=0)  # [C+1]
    column_ids = tf.gather(tf.math.invert_permutation(old_columns), features["column_ids"])  # [S]

    # By padding, segment, row and column.
    is_padding = tf.cast(features["input_mask"] == 0, tf.int64)
    key = is_padding * 2 + tf.cast(features["segment_ids"], tf.int64)
    for ids, largest in ((row_ids, num_rows + 1), (column_ids, tf.size(columns))):
        key = key * tf.cast(largest + 1, tf.int64) + tf.cast(ids, tf.int64)
    former = tf.argsort(key, stable=True)  # [S]
    latter = tf.math.invert_permutation(former)  # [S]

    def moved(name: str, values: tf.Tensor) -> tf.Tensor:
        if name in OF_TOKENS:
            return tf.gather(values, former)
        return tf.gather(latter, values) if name in _OF_PLACES else values

    given = {**features, "row_ids": row_ids, "column_ids": column_ids}
    return {name: moved(name, values) for name, values in given.items()}


def copy_of_epoch(
    features: Mapping[str, tf.Tensor], epoch: tf.Tensor, num_copies: int
) -> tf.Tensor:
    """Which of its copies an example's table has in an epoch, int64 []; 0 is the table as it is.

    Each has its turn; where the turns begin is another for each table.

    Args:
        features: of one example.
        epoch: int64 [].
        num_copies: in other orders.

    Raises:
        ValueError: if the features do not say which table they are of.
    """
    return (epoch + _table_id_hash(features)) % (num_copies + 1)


def perturbed_copy(
    features: Mapping[str, tf.Tensor], seed: int, copy: tf.Tensor
) -> dict[str, tf.Tensor]:
    """The features of an example in one of the random orders of its table.

    The order follows from the seed, the copy's number and the table (`table_id_hash`) alone.

    Args:
        features: of one example, by name; [S] for the tokens.
        seed: any number.
        copy: int64 []; copy 0 is the table as it is.

    Raises:
        ValueError: if the features do not say which table they are of.
    """
    table = _table_id_hash(features)

    def perturbed() -> dict[str, tf.Tensor]:
        of_copy = tf.stack([tf.constant(seed, tf.int64), copy])
        of_table = tf.random.experimental.stateless_fold_in(of_copy, table)
        of_rows, of_columns = tf.unstack(tf.random.split(of_table, 2))
        row_ids = features["row_ids"]
        if "numeric_values_scale" in features:  # infinite in a histogram row
            row_ids = tf.where(tf.math.is_inf(features["numeric_values_scale"]), 0, row_ids)
        return reorder_features(
            features,
            _shuffled_ids(row_ids, of_rows),
            _shuffled_ids(features["column_ids"], of_columns),
        )

    return tf.cond(copy > 0, perturbed, lambda: dict(features))


def _table_id_hash(features: Mapping[str, tf.Tensor]) -> tf.Tensor:
    if "table_id_hash" not in features:
        raise ValueError("expected table_id_hash among the features of perturbed tables, got none")
    return features["table_id_hash"][0]


def _shuffled_ids(ids: tf.Tensor, seed: tf.Tensor) -> tf.Tensor:
    """The ids from 1 to the largest in a random order."""
    return tf.random.experimental.stateless_shuffle(tf.range(1, tf.reduce_max(ids) + 1), seed)
