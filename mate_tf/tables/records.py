"""TFRecord files in TAPAS's schema, written and read in both directions.

Shape letters: B batch, S sequence.

Integers are int32 in memory and int64 in the files, as the original has them.
"""

import math
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

import numpy as np
import tensorflow as tf

from mate_tf.tables.record_schema import (
    OF_TOKENS,
    OPTIONAL,
    WIDER_THAN_INT32,
    Path,
    Schema,
    check_same_schema,
    detect_compression,
    example_schema,
    file_schema,
    read_examples,
)

_SHUFFLED_TOGETHER = 20_000
_BOUNDARIES = (64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384)


def write_records(
    path: Path, examples: Iterable[Mapping[str, np.ndarray]], compression: str = "GZIP"
) -> int:
    """Writes examples to a file, which appears only when all of them are in it.

    Args:
        path: the file; its folder is made where it is missing.
        examples: features by name; arrays of integers, floats, or objects (bytes).
        compression: "GZIP", "ZLIB" or "".

    Returns:
        The number of examples written.
    """
    path = os.fspath(path)
    tf.io.gfile.makedirs(os.path.dirname(path) or ".")
    unfinished = f"{path}.unfinished"
    count = 0
    try:
        with tf.io.TFRecordWriter(unfinished, compression) as writer:
            for features in examples:
                writer.write(serialize_example(features))
                count += 1
        tf.io.gfile.rename(unfinished, path, overwrite=True)
    finally:
        if tf.io.gfile.exists(unfinished):
            tf.io.gfile.remove(unfinished)
    return count


def serialize_example(features: Mapping[str, np.ndarray]) -> bytes:
    """A tf.train.Example with the features: integers, floats, or objects that are bytes."""
    example = tf.train.Example()
    for name, values in features.items():
        feature = example.features.feature[name]
        kinds = {"f": feature.float_list, "O": feature.bytes_list}
        kinds.get(values.dtype.kind, feature.int64_list).value.extend(values.tolist())
    return example.SerializeToString(deterministic=True)


def read_records(
    files: Path | Sequence[Path],
    seed: int | None = None,
    epoch: int = 0,
) -> tf.data.Dataset:
    """One pass over the examples of record files.

    Args:
        files: the files, compressed or not; all of one sequence length.
        seed: None for the order of the files. Otherwise records are shuffled, 20,000 with each
            other, in the same order for the same seed and epoch (and tf.random's global seed).
        epoch: the number of the pass.

    Returns:
        A dataset of features by name, int32, float32 or string: [S] for the tokens and [1] for
        the example (question_id_ints [64], masked_lm_* as many as predictions). Unknown features
        are left out.

    Raises:
        FileNotFoundError: if a file is missing.
        ValueError: if a file is not a record file, has no example or another one's features, or if
            the lengths of two files differ.
    """
    records, schema = _serialized(files)
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


def check_records(files: Path | Sequence[Path]) -> int:
    """Reads every example, to say in a sentence what a dataset stumbled over.

    Returns:
        The number of examples.

    Raises:
        FileNotFoundError, ValueError: as read_records, but for every example, not for the first
            of each file alone.
    """
    files = _paths(files)
    expected = file_schema(files[0])
    count = 0
    for file in files:
        for number, example in enumerate(read_examples(file)):
            where = f"{file}, record {number}"
            check_same_schema(expected, example_schema(example, where), files[0], where)
            count += 1
    return count


def has_histogram_row(file: Path) -> bool:
    """Whether a file's examples end in a histogram row (FeatureConfig), by its first example.

    Raises:
        FileNotFoundError, ValueError: as read_records.
    """
    (example,) = read_records(file).take(1).as_numpy_iterator()
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
        dataset's.

    Raises:
        ValueError: if a boundary or the batch size is not positive.
    """
    limits = _limits(dataset, boundaries)
    if batch_size < 1:
        raise ValueError(f"expected a positive batch size, got {batch_size}")

    def batch(bucket: tf.Tensor, window: tf.data.Dataset) -> tf.data.Dataset:
        limit = tf.gather(limits, bucket)

        def trim(features: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
            return {
                name: values[:, :limit] if name in OF_TOKENS else values
                for name, values in features.items()
            }  # [B, limit]

        if remainder == "repeat":
            window = window.repeat().take(batch_size)
        return window.batch(batch_size, drop_remainder=remainder != "keep").map(trim)

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
) -> tf.data.Dataset:
    """Batches for training without end; each epoch has every example in an order of its own.

    The order depends on the seed and the epoch alone, so the batches after the first n are the
    same whether those were made or skipped: training resumes exactly. Each length's last batch of
    an epoch is filled up with repeated examples.

    Args:
        files, seed: as read_records.
        batch_size, boundaries: as batch_by_length.
        skip: how many batches to leave out at the beginning, whole epochs at no cost.
    """
    epoch = 0
    if skip:
        num_batches = _count_batches(files, batch_size, boundaries)
        epoch, skip = divmod(skip, num_batches)

    records, schema = _serialized(files)

    def of_epoch(epoch: tf.Tensor) -> tf.data.Dataset:
        # Of this function's graph alone: the order is to follow from our seed, and TensorFlow
        # cannot combine a seed that is a tensor with a global one of 0.
        tf.random.set_seed(1)
        examples = _parsed(_shuffled(records, seed, epoch), schema)
        return batch_by_length(examples, batch_size, boundaries, remainder="repeat")

    return tf.data.Dataset.counter(epoch).flat_map(of_epoch).skip(skip)


def _serialized(files: Path | Sequence[Path]) -> tuple[tf.data.Dataset, Schema]:
    """The records of the files, in their order, and what is in each."""
    files = _paths(files)
    schemas = [file_schema(file) for file in files]
    for file, schema in zip(files, schemas, strict=True):
        check_same_schema(schemas[0], schema, files[0], file)
    compressions = [detect_compression(file) for file in files]
    records = tf.data.Dataset.from_tensor_slices((files, compressions)).flat_map(
        lambda file, compression: tf.data.TFRecordDataset(file, compression_type=compression)
    )
    return records, schemas[0]


def _shuffled(records: tf.data.Dataset, seed: int, epoch: int | tf.Tensor) -> tf.data.Dataset:
    order = seed * 1_000_003 + tf.cast(epoch, tf.int64)
    return records.shuffle(_SHUFFLED_TOGETHER, seed=order, reshuffle_each_iteration=False)


def _parsed(records: tf.data.Dataset, schema: Schema) -> tf.data.Dataset:
    return records.map(lambda r: parse_record(r, schema), num_parallel_calls=tf.data.AUTOTUNE)


def _paths(files: Path | Sequence[Path]) -> list[str]:
    paths = [files] if isinstance(files, str | os.PathLike) else files
    if not paths:
        raise ValueError("expected at least one record file, got none")
    return [os.fspath(path) for path in paths]


def _count_batches(
    files: Path | Sequence[Path], batch_size: int, boundaries: Sequence[int] | None
) -> int:
    examples = read_records(files)
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
