"""TFRecord files as such: how they are compressed, and what of a damaged one can be read.

A record is framed by its length in eight bytes, the length's checksum in four, and the content's
checksum in four behind it.
"""

import contextlib
import os
import tempfile
import zlib
from collections.abc import Iterator
from typing import IO

import tensorflow as tf
from absl import logging
from google.protobuf import message
from tensorflow.python.lib.io.tf_record import tf_record_random_reader

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
        contextlib.closing(tf_record_random_reader(unpacked)) as reader,
    ):
        while begin < size and lost_from is None:
            try:
                record, following = reader.read(begin)
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
