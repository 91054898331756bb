"""The files of a split: {split}.tfrecord and {split}.jsonl, or shards of each.

{split}.left_out.jsonl, also in shards, names the questions that are no examples, if there are any.

Shards have Beam's names, dev-00000-of-00008.tfrecord. A question's shard and its place there depend
only on a seed and the question's id, so that shards have the same bytes whoever writes them.

A folder of TAPAS's release is read too, as `split_files` says.
"""

import contextlib
import dataclasses
import functools
import hashlib
import os
import re
import tempfile
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from mate_tf.dataclass_json import differences
from mate_tf.datasets.json_lines import json_line, read_json_lines
from mate_tf.paths import Path, complete_file
from mate_tf.records.conversion import Outcome, left_out_line
from mate_tf.records.conversion_file import (
    Conversion,
    has_conversion,
    read_conversion,
    write_conversion,
)
from mate_tf.records.records import UNFINISHED, record_writer, serialize_example
from mate_tf.tables.table import Question, Table

SUFFIXES = RECORDS, QUESTIONS, LEFT_OUT = ".tfrecord", ".jsonl", ".left_out.jsonl"
_SHARD = r"-\d{5}-of-\d{5}"
# The release's own names: whole or shards, of either order, and perhaps .gz, which says nothing.
_OF_RELEASE = rf"({_SHARD})?\.tfrecords?(\.gz)?({_SHARD})?"
_FOLDER_OF_RELEASE = "tf_examples"  # in the folder that run_task_main writes

# A record, a line of questions, a line of those left out.
Encoded = tuple[bytes | None, bytes | None, bytes | None]


def split_file(
    directory: Path,
    split: str,
    suffix: str,
    shard: int | None = None,
    num_shards: int | None = None,
) -> str:
    """The path of a split's one file, or of one of its shards."""
    if shard is not None:
        split = f"{split}-{shard:05d}-of-{num_shards:05d}"
    return os.path.join(directory, split + suffix)


def split_files(directory: Path, split: str, suffix: str = RECORDS) -> list[str]:
    """The files of a split in a folder: its one file, or all its shards in order.

    In a folder without conversion.json records may have the release's names, without a length:
    train.tfrecord or random-split-1-train.tfrecord, or else all train*.tfrecord; with .gz or
    without, in shards, in the folder itself or in its tf_examples. Where it has no dev split, test
    takes its place.

    Raises:
        FileNotFoundError: if there is none, or a shard is missing.
        ValueError: if there are several sets of files.
    """
    candidates = [(os.fspath(directory), _own(split, suffix))]
    if suffix == RECORDS and not has_conversion(directory):
        base = re.escape(re.sub(r"_\d+$", "", split))
        candidates += [
            (folder, pattern + _OF_RELEASE)
            for name in ([base, "test"] if base == "dev" else [base])
            for folder in (os.fspath(directory), os.path.join(directory, _FOLDER_OF_RELEASE))
            for pattern in (name, f"random-split-1-{name}", f"{name}[^A-Za-z].*?")
        ]
    for folder, pattern in candidates:
        if there := _files(folder, pattern):
            return _in_order(folder, there, split)
    raise FileNotFoundError(
        f"expected {split}{suffix} in {directory}, found none; `mate-tf data` writes such a folder"
    )


def _in_order(folder: str, there: set[str], split: str) -> list[str]:
    """The files, of which some may be shards, by their names; errors as `split_files`."""
    sets = {re.sub(r"-\d{5}-of-", "-*-of-", os.path.basename(file)) for file in there}
    if len({re.sub(r"-\*-of-\d{5}|\.tfrecords?(\.gz)?", "", name) for name in sets}) < len(sets):
        raise ValueError(
            f"expected one set of files of the split {split!r}, got {len(there)} files of several "
            f"sets in {folder}; remove the old ones"
        )
    files = list[str]()
    for name in sorted(sets):
        shards = re.search(r"-\*-of-(\d{5})", name)
        num_shards = int(shards[1]) if shards else 1
        files += [os.path.join(folder, name.replace("*", f"{n:05d}")) for n in range(num_shards)]
    if missing := [file for file in files if file not in there]:
        raise FileNotFoundError(
            f"expected {len(files)} shards, got {len(there)} (split {split!r}); missing "
            f"{missing[0]}"
        )
    return files


def prepare_folder(
    directory: Path, conversion: Conversion, splits: Sequence[str], vocab_file: Path
) -> None:
    """Makes the folder for a conversion, and writes its conversion.json and its vocabulary.

    The `splits`, which will be made again, are removed if they were made in another way, so that
    conversion.json is true whenever the conversion stops. So are unfinished files. ValueError if
    the folder has splits but no conversion.json, or others that were made in another way.
    """
    tf.io.gfile.makedirs(directory)
    file_of_split = re.compile(f"(.+?)({_SHARD})?({'|'.join(map(re.escape, SUFFIXES))})")
    there = {m[1] for m in map(file_of_split.fullmatch, tf.io.gfile.listdir(directory)) if m}
    if there and not has_conversion(directory):
        raise ValueError(
            f"expected a new folder or one that `mate-tf data` wrote, got {directory} with files "
            f"of the splits {sorted(there)} and without conversion.json"
        )
    if there and (before := read_conversion(directory)) != conversion:
        if others := sorted(there - set(splits)):
            there_then, here = dataclasses.asdict(before), dataclasses.asdict(conversion)
            different = ", ".join(differences(there_then, here))
            raise ValueError(
                f"expected records made as for the splits {others} in {directory}, got other "
                f"options: {different}; choose another folder or make all splits"
            )
        for split in there:
            remove_split(directory, split)
    written = [(split, suffix) for split in splits for suffix in SUFFIXES]
    for name, suffix in [*written, ("conversion", ".json")]:
        for file in _files(directory, _own(name, suffix) + UNFINISHED):
            tf.io.gfile.remove(file)
    write_conversion(directory, conversion)
    copy = os.path.join(directory, "vocab.txt")
    if os.path.abspath(vocab_file) != os.path.abspath(copy):
        with complete_file(copy) as unfinished:
            tf.io.gfile.copy(os.fspath(vocab_file), unfinished)


def has_questions(directory: Path, split: str) -> bool:
    """Whether a folder has questions with tables of a split; those of sentences have none."""
    return bool(_files(directory, _own(split, QUESTIONS)))


def read_questions(directory: Path, split: str) -> Iterator[tuple[Table, Question]]:
    """Yields the questions of a split with their tables, from one file or from shards.

    Errors are those of `split_files` and `read_json_lines`.
    """
    for file in split_files(directory, split, QUESTIONS):
        yield from read_json_lines(file)


def place(question_id: str, seed: int, num_shards: int) -> tuple[int, int]:
    """The shard that a question is in, and the number that sorts it there."""
    key = f"{seed}/{question_id}".encode("utf-8", "surrogatepass")
    digest = hashlib.blake2b(key, digest_size=16).digest()
    return int.from_bytes(digest[:8]) % num_shards, int.from_bytes(digest[8:])


def encode(outcome: Outcome) -> Encoded:
    """The record of an outcome, or its line of those left out; and its line if it has a table."""
    record = None if outcome.features is None else serialize_example(outcome.features)
    line = None if outcome.table is None else json_line(outcome.table, outcome.question).encode()
    return record, line, left_out_line(outcome).encode() if outcome.reason else None


def write_shard(
    directory: str,
    split: str,
    placed: Iterable[tuple[int, Encoded]],
    shard: int,
    num_shards: int,
    suffixes: Sequence[str] = SUFFIXES,
) -> None:
    """Writes a shard of each file with one of the suffixes, in the given order.

    ValueError if two questions have the same place, and so the same id.
    """
    before = None
    with _open(directory, split, suffixes, shard, num_shards) as write:
        for order, (record, line, left_out) in placed:
            if order == before:
                content = line or record or left_out or b""
                raise _same_id(split, content[:80].decode(errors="replace"))
            before = order
            write(record, line, left_out)


@contextlib.contextmanager
def split_writer(
    directory: str,
    split: str,
    num_shards: int | None = None,
    seed: int = 0,
    suffixes: Sequence[str] = SUFFIXES,
) -> Iterator[Callable[[Outcome], None]]:
    """Yields a function that writes a split's outcomes to the files with these suffixes.

    The files appear at the end and replace those that the split had. Old and new files never mix,
    even if the process is killed. One file (`num_shards` None) keeps the order of the outcomes;
    shards have the order of `place`, by a seed, and until the end a temporary file (in TMPDIR)
    holds them. ValueError if two questions have the same id.
    """
    if num_shards is None:
        seen: set[int] = set()  # hashes, which take less memory than ids

        def add(outcome: Outcome) -> None:
            key = hash(outcome.question.question_id)
            if key in seen:
                raise _same_id(split, repr(outcome.question.question_id))
            seen.add(key)
            write(*encode(outcome))

        with _open(directory, split, suffixes) as write:
            yield add
            remove_split(directory, split, suffixes)
    else:
        with Spool(num_shards) as spool:
            yield lambda outcome: spool.add(
                encode(outcome), [place(outcome.question.question_id, seed, num_shards)]
            )
            remove_split(directory, split, suffixes)
            for shard in range(num_shards):
                items = ((order, item) for order, _, item in spool.read_shard(shard))
                write_shard(directory, split, items, shard, num_shards, suffixes)


def remove_split(directory: Path, split: str, suffixes: Sequence[str] = SUFFIXES) -> None:
    """Removes the files of a split, the records first."""
    for suffix in suffixes:
        for file in _files(directory, _own(split, suffix)):
            tf.io.gfile.remove(file)


def _own(split: str, suffix: str) -> str:
    """A pattern of the names that a split's files get here, whole or shards."""
    return f"{re.escape(split)}({_SHARD})?{re.escape(suffix)}"


def _files(directory: Path, pattern: str) -> set[str]:
    """The existing files of a folder whose names a pattern describes."""
    names = tf.io.gfile.listdir(directory) if tf.io.gfile.isdir(directory) else []
    return {os.path.join(directory, name) for name in names if re.fullmatch(pattern, name)}


@contextlib.contextmanager
def _open(
    directory: str, split: str, suffixes: Sequence[str], *shards: int
) -> Iterator[Callable[..., None]]:
    """Yields a function that writes to the split's files; that of those left out only if needed."""
    with contextlib.ExitStack() as stack:

        @functools.cache
        def file(suffix: str) -> Any:
            path = split_file(directory, split, suffix, *shards)
            if suffix == RECORDS:
                return stack.enter_context(record_writer(path))
            unfinished = stack.enter_context(complete_file(path))
            opened = stack.enter_context(tf.io.gfile.GFile(unfinished, "wb"))
            opened.write(b"")  # a shard without questions is a file too
            return opened

        for suffix in suffixes:
            if suffix != LEFT_OUT:
                file(suffix)

        def write(*parts: bytes | None) -> None:
            for suffix, part in zip(SUFFIXES, parts, strict=True):
                if part is not None and suffix in suffixes:
                    file(suffix).write(part)

        yield write


def _same_id(split: str, what: str) -> ValueError:
    return ValueError(
        f"expected a different id for each question of the split {split!r}, got one twice: {what}"
    )


class Spool:
    """Three texts of an item on disk, once; memory holds 24 bytes for each place in a shard."""

    def __init__(self, num_shards: int):
        # Of each place its order, the number of the copy, and where the item is.
        self._index = [array("Q") for _ in range(num_shards)]

    def __enter__(self) -> "Spool":
        self._file = tempfile.TemporaryFile()
        return self

    def __exit__(self, *_) -> None:
        self._file.close()

    def add(self, item: Encoded, positions: Iterable[tuple[int, int]]) -> None:
        """Adds an item with a copy in each of some positions: a shard, and the order there."""
        begin = self._file.tell()
        parts = [part or b"" for part in item]
        self._file.write(array("Q", map(len, parts)).tobytes() + b"".join(parts))
        for copy, (shard, order) in enumerate(positions):
            self._index[shard].extend((order, copy, begin))

    def read_shard(self, shard: int) -> Iterator[tuple[int, int, Encoded]]:
        """Yields order, number of the copy and item of each place of a shard, in their order."""
        index = np.array(self._index[shard], np.uint64).reshape(-1, 3)
        for order, copy, begin in index[np.argsort(index[:, 0], kind="stable")].tolist():
            self._file.seek(begin)
            lengths = array("Q", self._file.read(24))
            first, second, third = (self._file.read(length) or None for length in lengths)
            yield order, copy, (first, second, third)
