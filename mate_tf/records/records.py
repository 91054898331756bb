"""TFRecord files in TAPAS's schema, written and read in both directions.

Shape letters: B batch, S sequence.

Integers are int32 in memory and int64 in the files, as the original has them.
"""

import contextlib
import os
import tempfile
import uuid
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import IO

import numpy as np
import tensorflow as tf
from absl import logging
from google.protobuf import message

from mate_tf.features.token_features import TAPAS_FEATURES, TokenFeatures
from mate_tf.private_apis import record_reader

FRAME_BYTES = 16
_HEADER_BYTES = 12
_GZIP_MAGIC = b"\x1f\x8b\x08"
_ZLIB_MAGIC = b"\x78"
_CHUNK = 1024  # of a compressed file: so much at most is lost before its damage


def detect_compression(file: str) -> str:
    """GZIP, ZLIB or "", from the file's first bytes; FileNotFoundError where there is no file."""
    if not tf.io.gfile.exists(file) or tf.io.gfile.isdir(file):
        raise FileNotFoundError(f"no record file {file}")
    with tf.io.gfile.GFile(file, "rb") as stream:
        head = stream.read(8)
    if head.startswith(_GZIP_MAGIC):
        return "GZIP"
    # A file that is not compressed begins with the first record's length in eight bytes.
    return "ZLIB" if head.startswith(_ZLIB_MAGIC) and any(head[4:]) else ""


def readable_records(file: str | bytes) -> Iterator[bytes]:
    """The records of a file that are whole; a warning is logged that counts the others.

    A record whose content is damaged, or no tf.train.Example, is passed over. What follows a
    damaged length, or damage to the compression, is lost: nothing says where the next record
    begins.
    """
    file = os.fsdecode(file)
    num_read = num_damaged = begin = 0
    lost_from: int | None = None
    first_damaged = ""
    with (
        _unpacked(file) as (unpacked, size, is_complete),
        record_reader(unpacked) as read,
    ):
        while begin < size and lost_from is None:
            try:
                record, following = read(begin)
            except (tf.errors.DataLossError, IndexError):
                first_damaged = first_damaged or f"record {num_read}, byte {begin}"
                length = _content_length(unpacked, begin)
                if length is None or begin + FRAME_BYTES + length > size:
                    lost_from = begin
                else:
                    num_damaged += 1
                    begin += FRAME_BYTES + length
            else:
                if _is_example(record):
                    yield record
                    num_read += 1
                else:
                    first_damaged = first_damaged or f"record {num_read}, byte {begin}"
                    num_damaged += 1
                begin = following
    if not is_complete and lost_from is None:
        first_damaged, lost_from = first_damaged or f"record {num_read}, byte {begin}", begin
    if first_damaged:
        lost = "" if lost_from is None else f", all from byte {lost_from} on is lost"
        logging.warning(
            "%d records passed over in %s (the first: %s)%s; %d were read",
            num_damaged,
            file,
            first_damaged,
            lost,
            num_read,
        )


def is_complete(file: str) -> bool:
    """Whether a file goes on to its end, as its compression tells; without, if it has a record."""
    if not detect_compression(file):
        return tf.io.gfile.stat(file).length >= FRAME_BYTES
    return _unpack(file, None)


@contextlib.contextmanager
def _unpacked(file: str) -> Iterator[tuple[str, int, bool]]:
    """A file without compression, as far as it can be undone, its size, and whether that is all."""
    if not detect_compression(file):
        yield file, tf.io.gfile.stat(file).length, True
        return
    with tempfile.NamedTemporaryFile() as unpacked:
        is_all = _unpack(file, unpacked)
        unpacked.flush()
        yield unpacked.name, unpacked.tell(), is_all


def _unpack(file: str, unpacked: IO[bytes] | None) -> bool:
    """Undoes the compression of either format; whether its end was reached."""
    unpack = zlib.decompressobj(zlib.MAX_WBITS | 32)
    with tf.io.gfile.GFile(file, "rb") as packed, contextlib.suppress(zlib.error):
        while chunk := packed.read(_CHUNK):
            content = unpack.decompress(chunk)
            if unpacked is not None:
                unpacked.write(content)
    return unpack.eof


def _is_example(record: bytes) -> bool:
    try:
        tf.train.Example.FromString(record)
    except message.DecodeError:
        return False
    return True


def _content_length(file: str, begin: int) -> int | None:
    """The length of the record that begins there; None where it is damaged."""
    with tf.io.gfile.GFile(file, "rb") as stream:
        stream.seek(begin)
        header = stream.read(_HEADER_BYTES)
    length, checksum = header[:8], int.from_bytes(header[8:], "little")
    if len(header) < _HEADER_BYTES or _masked_crc32c(length) != checksum:
        return None
    return int.from_bytes(length, "little")


def _masked_crc32c(content: bytes) -> int:
    """The checksum of TFRecord files: CRC-32C, rotated and moved."""
    crc = 0xFFFFFFFF
    for byte in content:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


Path = str | os.PathLike[str]
Schema = Mapping[str, tf.io.FixedLenFeature]

# Of the token features, those that a record may lack: they are then 0 everywhere.
OPTIONAL = ("prev_label_ids", "column_ranks", "inv_column_ranks", "numeric_relations")
OF_TOKENS = {
    **dict.fromkeys((*TokenFeatures._fields, "label_ids"), tf.int64),
    **dict.fromkeys(("numeric_values", "numeric_values_scale"), tf.float32),
}
OF_EXAMPLES = {
    "answer": tf.float32,
    "aggregation_function_id": tf.int64,
    "classification_class_index": tf.int64,
    "question_id": tf.string,
    "question_id_ints": tf.int64,
    "table_id": tf.string,
    "table_id_hash": tf.int64,
    # Of pre-training examples alone (mate_tf/features/masked_lm.py).
    "masked_lm_positions": tf.int64,
    "masked_lm_ids": tf.int64,
    "masked_lm_weights": tf.float32,
    "next_sentence_labels": tf.int64,
    "is_random_table": tf.int64,
}
WIDER_THAN_INT32 = ("table_id_hash",)
_KINDS = {"int64_list": tf.int64, "float_list": tf.float32, "bytes_list": tf.string}


def file_schema(file: Path, skip_corrupt: bool = False) -> Schema | None:
    """The known features of a file's first example, with their lengths; None if it has no example.

    Raises:
        FileNotFoundError: if the file is missing.
        ValueError: if it is not a record file, or lacks a token feature.
    """
    file = os.fspath(file)
    for example in read_examples(file, skip_corrupt):
        return example_schema(example, file)
    return None


def read_examples(file: str, skip_corrupt: bool = False) -> Iterator[tf.train.Example]:
    """The examples of a record file.

    Args:
        file: the file.
        skip_corrupt: whether damaged records are passed over (`readable_records`).

    Raises:
        FileNotFoundError: if the file is missing.
        ValueError: if it is damaged, or no record file; it names the record and the byte.
    """
    compression = detect_compression(file)
    records: Iterator[bytes]
    if skip_corrupt:
        records = readable_records(file)
    else:
        records = tf.data.TFRecordDataset(file, compression).as_numpy_iterator()
    number = begin = 0
    try:
        for record in records:
            yield tf.train.Example.FromString(record)
            number, begin = number + 1, begin + len(record) + FRAME_BYTES
        if not skip_corrupt and not is_complete(file):
            raise tf.errors.DataLossError(None, None, "the file is cut short")
    except (tf.errors.DataLossError, message.DecodeError) as error:
        reason = str(error).split("[Op:")[0].split("\n")[0].strip("{} ")
        unpacked = " unpacked" if compression else ""
        raise ValueError(
            f"expected a TFRecord file of examples, got {file}: {reason} (at record {number}, byte "
            f"{begin}{unpacked}); skip_corrupt reads the others"
        ) from None


def example_schema(example: tf.train.Example, file: str) -> Schema:
    """The known features of an example; ValueError where it does not follow the schema."""
    schema: dict[str, tf.io.FixedLenFeature] = {}
    for name, dtype in {**OF_TOKENS, **OF_EXAMPLES}.items():
        if name in example.features.feature:
            feature = example.features.feature[name]
            kind = feature.WhichOneof("kind")
            if _KINDS.get(kind) != dtype:
                raise ValueError(f"expected {name} as {dtype.name}, got {kind} (file {file})")
            length = len(getattr(feature, kind).value)
            schema[name] = tf.io.FixedLenFeature([length], dtype)
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


def check_same_schema(
    expected: Schema,
    actual: Schema,
    expected_file: str,
    file: str,
) -> None:
    """ValueError where two files differ in their features or in a length."""
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


def check_labels(example: tf.train.Example, where: str) -> None:
    """ValueError where a token is labelled that is none of a cell in the table's body."""
    features = example.features.feature
    if "label_ids" not in features:
        return
    labels = features["label_ids"].int64_list.value
    labelled = [token for token, label in enumerate(labels) if label]
    wrong = [labels[token] for token in labelled if labels[token] != 1]
    if wrong:
        raise ValueError(
            f"expected label_ids of 0 or 1, got {wrong[0]} {name_example(example, where)}"
        )
    for name in ("row_ids", "column_ids", "input_mask"):
        values = features[name].int64_list.value
        for token in labelled:
            if values[token] < 1:
                raise ValueError(
                    "expected labels on cells of the table's body alone, got one on token "
                    f"{token}, whose {name} is {values[token]} {name_example(example, where)}"
                )


def name_example(example: tf.train.Example, where: str) -> str:
    """The example in a message: "(question 'q1', train.tfrecord, record 3)"."""
    names = example.features.feature["question_id"].bytes_list.value
    question = f"question {names[0].decode(errors='replace')!r}, " if names else ""
    return f"({question}{where})"


# Half the time of the default 6, for files that are a fifth larger.
_COMPRESSION_LEVEL = 1
UNFINISHED = r"\.[0-9a-f]{32}\.unfinished"  # what `complete_file` puts behind a name meanwhile


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


def _paths(files: Path | Sequence[Path]) -> list[str]:
    paths = [files] if isinstance(files, str | os.PathLike) else files
    if not paths:
        raise ValueError("expected at least one record file, got none")
    return [os.fspath(path) for path in paths]
