"""Records as batches for training: examples of similar length together, tables in random orders.

A model that embeds the order of rows and columns may depend on it. The TableFormer paper measures
this (section 4.1; experiments/robustness.py) and trains on tables in random orders (section 4.3).

Shape letters: B batch, S sequence, R rows and C columns of a table's body.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Literal

import tensorflow as tf

from mate_tf.paths import Path
from mate_tf.records.records import (
    OF_TOKENS,
    OPTIONAL,
    WIDER_THAN_INT32,
    Schema,
    detect_compression,
    readable_records,
    schemas,
)

_SHUFFLED_TOGETHER = 20_000
_BOUNDARIES = (64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384)

Files = Path | Sequence[Path]


def read_records(files: Files, skip_corrupt: bool = False) -> tf.data.Dataset:
    """One pass over the examples of record files, compressed or not, in order.

    With `skip_corrupt`, which is slower, damaged records are skipped with a logged warning;
    otherwise they are an error. Features are by name, int32, float32 or string: [S] for the tokens
    and [1] for the example (question_id_ints [64], masked_lm_* as many as predictions). Unknown
    features are left out.

    FileNotFoundError if a file is missing; ValueError if one is no record file, if none has an
    example, or if the features of two files, or their lengths, differ.
    """
    return _parsed(*_serialized(files, skip_corrupt))


def batch_by_length(
    dataset: tf.data.Dataset,
    batch_size: int,
    boundaries: Sequence[int] | None = None,
    remainder: Literal["keep", "repeat"] = "keep",
) -> tf.data.Dataset:
    """Batches examples of read_records of similar length and trims the padding that they share.

    Batches are trimmed to the boundaries, [B, boundary] for the tokens, by default the powers of
    two from 64; an example goes to the smallest one that holds its tokens. The length of the
    records is always one of them, and larger ones are ignored. Of the examples at the end that do
    not fill a batch, "keep" makes smaller batches, and "repeat" repeats them until it is full. Then
    there are as many shapes as boundaries, as XLA needs, and with `boundaries=()` the element_spec
    is static. ValueError if a boundary or the batch size is not positive.
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
        window = window.batch(batch_size, drop_remainder=remainder == "repeat")
        # A single length stays static only if nothing is trimmed.
        return window if limits.shape[0] == 1 else window.map(trim)

    return dataset.group_by_window(
        key_func=lambda features: _bucket(features, limits),
        reduce_func=batch,
        window_size=batch_size,
    )


def training_batches(
    files: Files,
    batch_size: int,
    seed: int,
    boundaries: Sequence[int] | None = None,
    skip: int = 0,
    skip_corrupt: bool = False,
    perturbed_copies: int = 0,
) -> tf.data.Dataset:
    """Batches for training without end; each epoch has every example, in its own order.

    The order depends only on the seed and the epoch, so that training resumes exactly after the
    first `skip` batches; whole epochs cost nothing. A buffer of 20,000 records is shuffled. At the
    end of an epoch repeated examples fill the last batch of each length. Files and errors are those
    of read_records, boundaries those of batch_by_length.

    With `perturbed_copies`, an epoch has each table or one of so many copies of it in random
    orders, in turn; the turns begin at a different copy for each table (TableFormer paper, sections
    4.3 and 5.5). A copy depends only on the seed and the table, which the records name.
    """
    epoch = 0
    if skip:
        examples = read_records(files, skip_corrupt)
        limits = _limits(examples, boundaries)
        buckets = examples.map(lambda features: _bucket(features, limits)).as_numpy_iterator()
        sizes = Counter(buckets).values()
        epoch, skip = divmod(skip, sum(math.ceil(size / batch_size) for size in sizes))

    records, schema = _serialized(files, skip_corrupt)

    def epoch_batches(epoch: tf.Tensor) -> tf.data.Dataset:
        order = seed * 1_000_003 + tf.cast(epoch, tf.int64)
        # This sets the seed of this function's graph only. The order must depend on our seed alone,
        # and TensorFlow cannot combine a seed that is a tensor with a global seed of 0.
        tf.random.set_seed(1)

        def perturb(features: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
            turn = (epoch + features["table_id_hash"][0]) % (perturbed_copies + 1)
            return perturbed_copy(features, seed, turn)

        shuffled = records.shuffle(_SHUFFLED_TOGETHER, order, reshuffle_each_iteration=False)
        examples = _parsed(shuffled, schema)
        if perturbed_copies:
            examples = examples.map(perturb, num_parallel_calls=tf.data.AUTOTUNE)
        return batch_by_length(examples, batch_size, boundaries, remainder="repeat")

    return tf.data.Dataset.counter(epoch).flat_map(epoch_batches).skip(skip)


def bucket_length(num_tokens: int, max_seq_length: int) -> int:
    """The length that `batch_by_length` trims an example with so many tokens to, by default."""
    return min(b for b in (*_BOUNDARIES, max_seq_length) if num_tokens <= b <= max_seq_length)


def reorder_features(
    features: Mapping[str, tf.Tensor], rows: tf.Tensor, columns: tf.Tensor
) -> dict[str, tf.Tensor]:
    """The features of an example, by name, [S] for the tokens, after its table is reordered.

    `rows` and `columns` are for each row and column id, from 1, the former one: int32 [R] and [C].
    If the whole table is in the sequence, these are the features of the reordered table, but that
    labels of answer spans, and equally frequent values of a histogram row, go with their tokens.
    """
    moved = dict(features)
    # Tokens are sorted by padding, segment, row and column.
    key = tf.cast((1 - features["input_mask"]) * 2 + features["segment_ids"], tf.int64)
    # The question and the header have id 0, a histogram row R + 1.
    rows = tf.concat([[0], rows, [tf.size(rows) + 1]], axis=0)  # [R+2]
    columns = tf.concat([[0], columns], axis=0)  # [C+1]
    for name, former in (("row_ids", rows), ("column_ids", columns)):
        moved[name] = tf.gather(tf.math.invert_permutation(former), features[name])  # [S]
        key = key * tf.size(former, tf.int64) + tf.cast(moved[name], tf.int64)
    order = tf.argsort(key, stable=True)  # [S]
    return {
        name: tf.gather(values, order) if name in OF_TOKENS else values
        for name, values in moved.items()
    }


def perturbed_copy(
    features: Mapping[str, tf.Tensor], seed: int, copy: tf.Tensor
) -> dict[str, tf.Tensor]:
    """The features of an example, by name, [S] for the tokens, in a random order of its table.

    The order depends only on the seed, the copy's number, int64 [], and the table
    (`table_id_hash`). Copy 0 is the table itself.
    """

    def shuffled(ids: tf.Tensor, seed: tf.Tensor) -> tf.Tensor:
        return tf.random.experimental.stateless_shuffle(tf.range(1, tf.reduce_max(ids) + 1), seed)

    def perturbed() -> dict[str, tf.Tensor]:
        copy_seed = tf.stack([tf.constant(seed, tf.int64), copy])
        table = features["table_id_hash"][0]
        table_seed = tf.random.experimental.stateless_fold_in(copy_seed, table)
        row_seed, column_seed = tf.unstack(tf.random.split(table_seed, 2))
        row_ids = features["row_ids"]
        if "numeric_values_scale" in features:  # infinite in a histogram row
            row_ids = tf.where(tf.math.is_inf(features["numeric_values_scale"]), 0, row_ids)
        columns = shuffled(features["column_ids"], column_seed)
        return reorder_features(features, shuffled(row_ids, row_seed), columns)

    return tf.cond(copy > 0, perturbed, lambda: dict(features))


def _serialized(files: Files, skip_corrupt: bool) -> tuple[tf.data.Dataset, Schema]:
    """The records of the files, in their order, and the features of each."""
    schema, with_examples = schemas(files, skip_corrupt)
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


def _parsed(records: tf.data.Dataset, schema: Schema) -> tf.data.Dataset:
    def parse(record: tf.Tensor) -> dict[str, tf.Tensor]:
        parsed = tf.io.parse_single_example(record, schema)
        for name, values in parsed.items():
            if values.dtype == tf.int64 and name not in WIDER_THAN_INT32:
                parsed[name] = tf.cast(values, tf.int32)
        for name in OPTIONAL:
            parsed.setdefault(name, tf.zeros_like(parsed["input_ids"]))
        return parsed

    return records.map(parse, num_parallel_calls=tf.data.AUTOTUNE)


def _limits(dataset: tf.data.Dataset, boundaries: Sequence[int] | None) -> tf.Tensor:
    length = dataset.element_spec["input_ids"].shape[0]
    boundaries = _BOUNDARIES if boundaries is None else boundaries
    if any(boundary < 1 for boundary in boundaries):
        raise ValueError(f"expected positive boundaries, got {list(boundaries)}")
    return tf.constant(sorted({b for b in boundaries if b < length} | {length}), tf.int64)


def _bucket(features: Mapping[str, tf.Tensor], limits: tf.Tensor) -> tf.Tensor:
    num_tokens = tf.reduce_sum(tf.cast(features["input_mask"], tf.int64))
    return tf.searchsorted(limits, [num_tokens], out_type=tf.int64)[0]
