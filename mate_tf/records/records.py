"""TFRecord files in TAPAS's schema: written, checked, and read in spite of damage.

Integers are int32 in memory and int64 in the files, as in the original.
"""

import contextlib
import itertools
import os
import tempfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
import tensorflow as tf
from absl import logging
from google.protobuf import message

from mate_tf.features.token_features import TAPAS_FEATURES, TokenFeatures
from mate_tf.paths import Path, complete_file

Schema = Mapping[str, tf.io.FixedLenFeature]

# Token features that a record may lack. They are then 0 everywhere.
OPTIONAL = ("prev_label_ids", "column_ranks", "inv_column_ranks", "numeric_relations")
OF_TOKENS = {
    **dict.fromkeys((*TokenFeatures._fields, "label_ids"), tf.int64),
    **dict.fromkeys(("numeric_values", "numeric_values_scale"), tf.float32),
}
OF_EXAMPLES = {
    "answer": tf.float32,
    "aggregation_function_id": tf.int64,
    "aggregation_is_known": tf.int64,  # not in the release's records
    "classification_class_index": tf.int64,
    "question_id": tf.string,
    "question_id_ints": tf.int64,
    "table_id": tf.string,
    "table_id_hash": tf.int64,
    # Only pre-training examples have these (mate_tf/features/masked_lm.py).
    "masked_lm_positions": tf.int64,
    "masked_lm_ids": tf.int64,
    "masked_lm_weights": tf.float32,
    "next_sentence_labels": tf.int64,
    "is_random_table": tf.int64,
}
WIDER_THAN_INT32 = ("table_id_hash",)
UNFINISHED = r"\.[0-9a-f]{32}\.unfinished"  # what `complete_file` appends to a name
_KINDS = {"int64_list": tf.int64, "float_list": tf.float32, "bytes_list": tf.string}
# Level 1 takes half the time of the default 6, and makes files larger by a fifth.
_COMPRESSION_LEVEL = 1
# A record is its length (8 bytes), the length's checksum (4), the content, its checksum (4).
_LENGTH_BYTES, _HEAD_BYTES, _FRAME_BYTES = 8, 12, 16
_GZIP_MAGIC, _ZLIB_MAGIC = b"\x1f\x8b\x08", b"\x78"
_CHUNK = 1024  # bytes of a compressed file; damage costs at most as much before it


@contextlib.contextmanager
def record_writer(path: Path, compression: str = "GZIP") -> Iterator[tf.io.TFRecordWriter]:
    """A writer of serialized examples to a file, which appears once all are in it.

    The compression is "GZIP", "ZLIB" or "".
    """
    tf.io.gfile.makedirs(os.path.dirname(path) or ".")
    options = tf.io.TFRecordOptions(compression, compression_level=_COMPRESSION_LEVEL)
    with complete_file(path) as unfinished, tf.io.TFRecordWriter(unfinished, options) as writer:
        yield writer


def serialize_example(features: Mapping[str, np.ndarray]) -> bytes:
    """A tf.train.Example with the features: integers, floats, or objects that are bytes."""
    example = tf.train.Example()
    for name, values in features.items():
        feature = example.features.feature[name]
        lists = {"O": feature.bytes_list, "f": feature.float_list}
        lists.get(values.dtype.kind, feature.int64_list).value.extend(values.tolist())
    return example.SerializeToString(deterministic=True)


def check_records(
    files: Path | Sequence[Path],
    skip_corrupt: bool = False,
    check_example: Callable[[tf.train.Example, str], None] | None = None,
    at_most: int | None = None,
) -> int:
    """Reads every example, at most so many, so that an error names file and record; counts them.

    `check_example` gets an example and its place, and raises ValueError if a task cannot use it.
    Errors are those of batches.read_records, and ValueError if a label is outside of the body.
    """
    files = _as_paths(files)
    expected, _ = schemas(files, skip_corrupt)
    count = 0
    for file in files:
        for number, example in enumerate(_read_examples(file, skip_corrupt)):
            where = f"{file}, record {number}"
            _check_same_schema(expected, _example_schema(example, where), files[0], where)
            _check_labels(example, where)
            if check_example is not None:
                check_example(example, where)
            count += 1
            if count == at_most:
                return count
    return count


def schemas(files: Path | Sequence[Path], skip_corrupt: bool) -> tuple[Schema, list[str]]:
    """The features of every example, and the files that have any; errors as `read_records`."""
    files = _as_paths(files)
    known = {
        file: _example_schema(example, file)
        for file in files
        for example in itertools.islice(_read_examples(file, skip_corrupt), 1)
    }
    if not known:
        raise ValueError(f"expected examples in the record file {files[0]}, got none")
    first, expected = next(iter(known.items()))
    for file, schema in known.items():
        _check_same_schema(expected, schema, first, file)
    return expected, list(known)


def _as_paths(files: Path | Sequence[Path]) -> list[str]:
    paths = [files] if isinstance(files, str | os.PathLike) else files
    if not paths:
        raise ValueError("expected at least one record file, got none")
    return [os.fspath(path) for path in paths]


def name_example(example: tf.train.Example, where: str) -> str:
    """The example in a message: "(question 'q1', train.tfrecord, record 3)"."""
    names = example.features.feature["question_id"].bytes_list.value
    question = f"question {names[0].decode(errors='replace')!r}, " if names else ""
    return f"({question}{where})"


def _example_schema(example: tf.train.Example, file: str) -> Schema:
    schema: dict[str, tf.io.FixedLenFeature] = {}
    for name, dtype in {**OF_TOKENS, **OF_EXAMPLES}.items():
        if name in example.features.feature:
            feature = example.features.feature[name]
            kind = feature.WhichOneof("kind")
            if _KINDS.get(kind) != dtype:
                raise ValueError(f"expected {name} as {dtype.name}, got {kind} (file {file})")
            schema[name] = tf.io.FixedLenFeature([len(getattr(feature, kind).value)], dtype)
    missing = set(TAPAS_FEATURES) - set(OPTIONAL) - set(schema)
    if missing:
        raise ValueError(f"expected the features {sorted(missing)}, got none (file {file})")
    for name in schema.keys() & OF_TOKENS.keys():
        if schema[name].shape != schema["input_ids"].shape:
            raise ValueError(
                f"expected {schema['input_ids'].shape[0]} {name}, as many as input_ids, got "
                f"{schema[name].shape[0]} (file {file})"
            )
    return schema


def _check_same_schema(expected: Schema, actual: Schema, expected_file: str, file: str) -> None:
    if set(expected) != set(actual):
        raise ValueError(
            f"expected the features of {expected_file}, got others: "
            f"{sorted(set(expected) ^ set(actual))} (file {file})"
        )
    for name, feature in expected.items():
        if feature.shape != actual[name].shape:
            raise ValueError(
                f"expected {name} of length {feature.shape[0]}, as in {expected_file}, got length "
                f"{actual[name].shape[0]} (file {file})"
            )


def _check_labels(example: tf.train.Example, where: str) -> None:
    """ValueError if a labelled token is not in a cell of the table's body."""
    features = example.features.feature
    labels = features["label_ids"].int64_list.value if "label_ids" in features else ()
    labelled = [token for token, label in enumerate(labels) if label]
    if wrong := [labels[token] for token in labelled if labels[token] != 1]:
        raise ValueError(
            f"expected label_ids of 0 or 1, got {wrong[0]} {name_example(example, where)}"
        )
    for name in ("row_ids", "column_ids", "input_mask"):
        values = features[name].int64_list.value
        for token in labelled:
            if values[token] < 1:
                raise ValueError(
                    "expected labels only on cells of the table's body, got one on token "
                    f"{token}, whose {name} is {values[token]} {name_example(example, where)}"
                )


def _read_examples(file: str, skip_corrupt: bool) -> Iterator[tf.train.Example]:
    """The examples of a file; a ValueError for damage names the record and the byte."""
    compression = detect_compression(file)
    whole = tf.data.TFRecordDataset(file, compression).as_numpy_iterator()
    records = readable_records(file) if skip_corrupt else whole
    number = begin = 0
    try:
        for record in records:
            yield tf.train.Example.FromString(record)
            number, begin = number + 1, begin + len(record) + _FRAME_BYTES
        if skip_corrupt:
            return
        # TensorFlow takes a compressed file that is cut short for one that ends there.
        is_long_enough = tf.io.gfile.stat(file).length >= _FRAME_BYTES
        if not (_unpack(file, len) if compression else is_long_enough):  # len keeps nothing
            raise tf.errors.DataLossError(None, None, "the file is cut short")
    except (tf.errors.DataLossError, message.DecodeError) as error:
        reason = str(error).split("[Op:")[0].split("\n")[0].strip("{} ")
        unpacked = " unpacked" if compression else ""
        raise ValueError(
            f"expected a TFRecord file of examples, got {file}: {reason} (at record {number}, byte "
            f"{begin}{unpacked}); skip_corrupt reads the other records"
        ) from None


def detect_compression(file: str) -> str:
    """Says "GZIP", "ZLIB" or "" by a file's first bytes; FileNotFoundError if it is missing."""
    if not tf.io.gfile.exists(file) or tf.io.gfile.isdir(file):
        raise FileNotFoundError(f"expected a record file at {file}, found none")
    with tf.io.gfile.GFile(file, "rb") as stream:
        head = stream.read(8)
    if head.startswith(_GZIP_MAGIC):
        return "GZIP"
    # A file without compression begins with the first record's length in eight bytes.
    return "ZLIB" if head.startswith(_ZLIB_MAGIC) and any(head[4:]) else ""


def readable_records(file: str | bytes) -> Iterator[bytes]:
    """The undamaged records of a file; a logged warning counts the others.

    A record is skipped if its content is damaged or is no tf.train.Example. After a damaged length
    or damaged compression the rest is lost, because nothing says where the next record begins.
    """
    file = os.fsdecode(file)
    num_read = num_damaged = begin = 0
    first = ""
    with contextlib.ExitStack() as stack:
        unpacked = stack.enter_context(tempfile.NamedTemporaryFile())
        path = unpacked.name if detect_compression(file) else file
        is_complete = path == file or _unpack(file, unpacked.write)
        unpacked.flush()
        size = tf.io.gfile.stat(path).length
        stream = stack.enter_context(tf.io.gfile.GFile(path, "rb"))
        while begin < size:
            head = stream.read(_HEAD_BYTES)
            end = begin + _FRAME_BYTES + int.from_bytes(head[:_LENGTH_BYTES], "little")
            record = stream.read(end - begin - _FRAME_BYTES) if end <= size else b""
            intact = _framed(record)
            try:
                if head + record + stream.read(_FRAME_BYTES - _HEAD_BYTES) != intact:
                    raise message.DecodeError
                tf.train.Example.FromString(record)
            except message.DecodeError:
                first = first or f"record {num_read}, byte {begin}"
                if end > size or not intact.startswith(head):
                    break
                num_damaged += 1
            else:
                yield record
                num_read += 1
            begin = end
    is_lost = begin < size or not is_complete
    if first or is_lost:
        logging.warning(
            "%d records skipped in %s (the first: %s)%s; %d were read",
            num_damaged,
            file,
            first or f"record {num_read}, byte {begin}",
            f", everything from byte {begin} on is lost" if is_lost else "",
            num_read,
        )


def _unpack(file: str, write: Callable[[bytes], int]) -> bool:
    """Undoes the compression of either format; returns whether the end was reached."""
    unpack = zlib.decompressobj(zlib.MAX_WBITS | 32)
    with tf.io.gfile.GFile(file, "rb") as packed, contextlib.suppress(zlib.error):
        while chunk := packed.read(_CHUNK):
            write(unpack.decompress(chunk))
    return unpack.eof


def _framed(record: bytes) -> bytes:
    """A record as it stands in a file; TensorFlow's writer computes the checksums."""
    with tempfile.NamedTemporaryFile() as file:
        with tf.io.TFRecordWriter(file.name) as writer:
            writer.write(record)
        return file.read()
