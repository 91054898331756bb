"""TFRecord files in TAPAS's schema, written and read in both directions.

Shape letters: B batch, S sequence.

Integers are int32 in memory and int64 in the files, as the original has them.
"""

import contextlib
import math
import os
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Literal

import numpy as np
import tensorflow as tf

from mate_tf.records.files import detect_compression, readable_records
from mate_tf.records.perturbation import copy_of_epoch, perturbed_copy
from mate_tf.records.schema import (
    OF_TOKENS,
    OPTIONAL,
    WIDER_THAN_INT32,
    Path,
    Schema,
    check_labels,
    check_same_schema,
    example_schema,
    file_schema,
    read_examples,
)

_SHUFFLED_TOGETHER = 20_000
# Half the time of the default 6, for files that are a fifth larger.
_COMPRESSION_LEVEL = 1
UNFINISHED = r"\.[0-9a-f]{32}\.unfinished"  # what `complete_file` puts behind a name meanwhile
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
    count = 0
    with record_writer(path, compression) as writer:
        for features in examples:
            writer.write(serialize_example(features))
            count += 1
    return count


@contextlib.contextmanager
def record_writer(path: Path, compression: str = "GZIP") -> Iterator[tf.io.TFRecordWriter]:
    """Writes serialized examples to a file, which appears at the end; the rest as write_records."""
    tf.io.gfile.makedirs(os.path.dirname(path) or ".")
    options = tf.io.TFRecordOptions(compression, compression_level=_COMPRESSION_LEVEL)
    with complete_file(path) as unfinished, tf.io.TFRecordWriter(unfinished, options) as writer:
        yield writer


@contextlib.contextmanager
def complete_file(path: Path) -> Iterator[str]:
    """A name to write a file under, which gets its own once it is complete.

    The name is nobody else's: a runner may let two workers write the same file.
    """
    unfinished = f"{os.fspath(path)}.{uuid.uuid4().hex}.unfinished"
    try:
        yield unfinished
        tf.io.gfile.rename(unfinished, os.fspath(path), overwrite=True)
    finally:
        if tf.io.gfile.exists(unfinished):
            tf.io.gfile.remove(unfinished)


def serialize_example(features: Mapping[str, np.ndarray]) -> bytes:
    """A tf.train.Example with the features: integers, floats, or objects that are bytes."""
    example = tf.train.Example()
    for name, values in features.items():
        feature = example.features.feature[name]
        kind = values.dtype.kind
        if kind == "O":
            feature.bytes_list.value.extend(values.tolist())
        elif kind == "f":
            feature.float_list.MergeFromString(_packed(values.astype("<f4").tobytes()))
        elif len(values) and values.min() >= 0 and values.max() < 128:
            # As most are: a byte each.
            feature.int64_list.MergeFromString(_packed(values.astype(np.uint8).tobytes()))
        else:
            feature.int64_list.value.extend(values.tolist())
    return example.SerializeToString(deterministic=True)


def _packed(values: bytes) -> bytes:
    """A list of numbers as protocol buffers encode it, which NumPy is fastest at.

    The field's tag, the number of bytes in groups of seven bits, the lowest first, and the bytes.
    """
    groups = [len(values)]
    while groups[-1] > 127:
        groups[-1:] = [groups[-1] % 128 + 128, groups[-1] // 128]
    return bytes([1 << 3 | 2, *groups]) + values


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
        the example (question_id_ints [64], masked_lm_* as many as predictions); aggregation
        candidates as aggregation_candidates.candidate_features has them. Unknown features are left
        out.

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


def check_records(
    files: Path | Sequence[Path],
    skip_corrupt: bool = False,
    check_example: Callable[[tf.train.Example, str], None] | None = None,
    at_most: int | None = None,
) -> int:
    """Reads every example, to say in a sentence what a dataset stumbled over.

    Args:
        files, skip_corrupt: as read_records.
        check_example: raises ValueError where a task cannot take an example; its second argument
            is the example's place, for the message.
        at_most: stops after so many examples; None for none.

    Returns:
        The number of examples.

    Raises:
        FileNotFoundError, ValueError: as read_records, but for every example, not for the first
            of each file alone; and where a label is outside of the table's body. A damaged file is
            named with the record and the byte.
    """
    files = _paths(files)
    expected, _ = _schemas(files, skip_corrupt)
    count = 0
    for file in files:
        for number, example in enumerate(read_examples(file, skip_corrupt)):
            where = f"{file}, record {number}"
            check_same_schema(expected, example_schema(example, where), files[0], where)
            check_labels(example, where)
            if check_example is not None:
                check_example(example, where)
            count += 1
            if count == at_most:
                return count
    return count


def records_schema(files: Path | Sequence[Path], skip_corrupt: bool = False) -> Schema:
    """The known features of the examples, with their lengths; errors as read_records."""
    return _schemas(_paths(files), skip_corrupt)[0]


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
        # Only padded_batch takes aggregation candidates, which vary in number.
        together = window.padded_batch if "can_indexes" in window.element_spec else window.batch
        window = together(batch_size, drop_remainder=remainder != "keep")
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


def _schemas(files: Sequence[str], skip_corrupt: bool) -> tuple[Schema, list[str]]:
    """What is in each example, and those of the files that have any; ValueError if none has."""
    schemas = {file: file_schema(file, skip_corrupt) for file in files}
    known = {file: schema for file, schema in schemas.items() if schema is not None}
    if not known:
        raise ValueError(f"expected examples in the record file {files[0]}, got none")
    first, expected = next(iter(known.items()))
    for file, schema in known.items():
        check_same_schema(expected, schema, first, file)
    return expected, list(known)


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
