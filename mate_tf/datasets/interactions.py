"""Interactions of TAPAS's release: a table and the questions about it, as protocol buffers.

A folder, or its subfolder interactions, has files of each split: NAME.txtpb, one message in text
format on a line; NAME.pbtxt, one message; or NAME.tfrecord, binary messages; with .gz or without,
whole or in shards. NAME begins with the split's; random-split-1-train is train too, and so is
interactions, the name of the corpus that the papers pre-train on.
"""

import dataclasses
import functools
import gzip
import itertools
import os
import re
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from absl import logging
from google.protobuf import descriptor_pb2, descriptor_pool, message, message_factory, text_format

from mate_tf.datasets.json_lines import naming
from mate_tf.reading.text_files import open_bytes, read_text
from mate_tf.tables.operators import ABSENT, TAPAS_OPERATORS
from mate_tf.tables.table import Question, Table

_PACKAGE = "language.tapas"
_ENDING = r"(-\d{5}-of-\d{5})?\.(txtpb|pbtxt|tfrecords?)(\.gz)?(-\d{5}-of-\d{5})?"
_NAMES = {"train": "(random-split-1-)?train|interactions"}
_GZIP = b"\x1f\x8b\x08"
_PARSED_TOGETHER = 64
_WARNED = 3  # tables of a file that a warning names


@functools.cache
def message_class() -> Any:
    """The class of the release's messages."""
    return message_factory.GetMessageClass(_pool().FindMessageTypeByName(f"{_PACKAGE}.Interaction"))


def read_interactions(
    directory: str | Path, split: str, original: bool = False
) -> Iterator[tuple[Table, Question]]:
    """Yields each question of a split's interactions with its table.

    A question's negative tables come with the same question and the aggregation ABSENT. An
    interaction whose table is empty or ragged is left out with a warning, as the release does. With
    `original` questions have the release's normalised texts, if there are any. FileNotFoundError if
    the split has no file; ValueError, with file and line or record, if something is malformed.
    """
    for table, interaction in read_tables(directory, split):
        previous: dict[str, Any] = {}
        for number, entry in enumerate(interaction.questions):
            question = _question(interaction, number, table, original)
            yield table, dataclasses.replace(question, **previous)
            previous = {
                "previous_coordinates": question.answer_coordinates,
                "previous_answers": question.answers,
            }
            if not entry.answer.HasField("class_index"):
                yield from _negatives(entry, question)


def read_tables(directory: str | Path, split: str) -> Iterator[tuple[Table, Any]]:
    """Yields each table of a split with its interaction; errors as `read_interactions`."""
    for path in interaction_files(directory, split):
        left_out = 0
        for interaction, where in read_messages(path):
            try:
                table = table_of(interaction, where)
            except ValueError as error:
                left_out += 1
                if left_out <= _WARNED:
                    logging.warning("left out: %s", error)
                continue
            yield table, interaction
        if left_out > _WARNED:
            logging.warning("left out: %d interactions of %s in all", left_out, path)


def interaction_files(directory: str | Path, split: str) -> list[Path]:
    """The files of a split; FileNotFoundError if there is none."""
    pattern = re.compile(
        f"({_NAMES.get(split, f'(random-split-1-)?{split}')})([^A-Za-z].*?)?{_ENDING}"
    )
    for folder in (Path(directory, "interactions"), Path(directory)):
        names = os.listdir(folder) if folder.is_dir() else []
        if matching := sorted(name for name in names if pattern.fullmatch(name)):
            return [folder / name for name in matching]
    raise FileNotFoundError(
        f"expected {split}.txtpb, {split}.txtpb.gz or {split}.tfrecord with interactions in "
        f"{directory}, found none"
    )


def read_messages(path: Path) -> Iterator[tuple[Any, str]]:
    """Yields each interaction of a file, and where it is; errors as `read_interactions`."""
    if ".tfrecord" in path.name:
        yield from _read_binary(path)
        return
    with open_bytes(path) as file:
        is_packed = file.read(len(_GZIP)) == _GZIP
    with gzip.open(path) if is_packed else open_bytes(path) as file:
        if ".pbtxt" in path.name:
            where = f"(file '{path}')"
            yield _parse(file.read(), where), where
            return
        lines = ((number, line) for number, line in _lines(file, path) if line.strip())
        while chunk := list(itertools.islice(lines, _PARSED_TOGETHER)):
            parsed = _parse_together([line for _, line in chunk])
            for (number, line), interaction in zip(chunk, parsed, strict=True):
                where = f"(file '{path}', line {number})"
                yield (_parse(line, where) if interaction is None else interaction), where


def table_of(interaction: Any, where: str) -> Table:
    """The table of an interaction; ValueError, which says where, if it is empty or ragged."""
    with naming(where):
        return _table(interaction.table, interaction.id or where)


def interactions_of(pairs: Iterable[tuple[Table, Question]]) -> Iterator[Any]:
    """Questions with their tables as interactions, those of a conversation in one.

    A question belongs to the interaction before it if it is about the same table and has a previous
    answer. Expansions stand in the cells. What the release has no field for is left out.
    """
    interaction: Any = None
    for table, question in pairs:
        goes_on = question.previous_coordinates or question.previous_answers
        if interaction is None or not goes_on or interaction.table.table_id != table.table_id:
            if interaction is not None:
                yield interaction
            interaction = message_class()(id=_utf8(question.question_id))
            content = interaction.table
            for name in ("table_id", "document_title", "context_heading"):
                if getattr(table, name):
                    setattr(content, name, _utf8(getattr(table, name)))
            for text in table.header:
                content.columns.add(text=_utf8(text))
            for texts in table.expanded_rows:
                cells = content.rows.add().cells
                for text in texts:
                    cells.add(text=_utf8(text))
        id_, text = _utf8(question.question_id), _utf8(question.text)
        answer = interaction.questions.add(id=id_, original_text=text).answer
        for row, column in question.answer_coordinates:
            answer.answer_coordinates.add(row_index=row, column_index=column)
        answer.answer_texts.extend(map(_utf8, question.answers))
        if question.aggregation in TAPAS_OPERATORS:
            answer.aggregation_function = TAPAS_OPERATORS.index(question.aggregation)
        if question.answer_number is not None:
            answer.float_value = question.answer_number
        if question.class_index is not None:
            answer.class_index = question.class_index
    if interaction is not None:
        yield interaction


def _utf8(text: str) -> str:
    """The text without half a surrogate pair, which JSON can hold and a message cannot."""
    return text.encode("utf-8", "backslashreplace").decode()


def _table(given: Any, default_id: str) -> Table:
    """The table of a message of a table."""
    return Table(
        header=tuple(cell.text for cell in given.columns),
        rows=tuple(tuple(cell.text for cell in row.cells) for row in given.rows),
        table_id=given.table_id or default_id,
        document_title=given.document_title,
        context_heading=given.context_heading,
    )


def _question(interaction: Any, number: int, table: Table, original: bool) -> Question:
    entry = interaction.questions[number]
    answer = entry.answer
    texts = (entry.text, entry.original_text) if original else (entry.original_text, entry.text)
    question_id = entry.id or f"{interaction.id or table.table_id}_{number}"
    if re.fullmatch("[A-Z_]+", question_id):  # TITLE, which every interaction of the corpus has
        question_id = f"{interaction.id or table.table_id}_{question_id}"
    cells = tuple((pair.row_index, pair.column_index) for pair in answer.answer_coordinates)
    # Where the release found no answer, they are (-1, -1).
    is_given = answer.is_valid and all(
        0 <= row < table.num_rows and 0 <= column < table.num_columns for row, column in cells
    )
    operator = "NONE" if original and not answer.HasField("class_index") else ""
    if answer.HasField("aggregation_function"):
        operator = TAPAS_OPERATORS[answer.aggregation_function]
    has_number = is_given and answer.HasField("float_value")
    return Question(
        next(filter(None, texts), ""),
        question_id,
        tuple(answer.answer_texts),
        cells if is_given else (),
        answer.float_value if has_number else None,
        operator if is_given else "",
        class_index=answer.class_index if answer.HasField("class_index") else None,
    )


def _negatives(entry: Any, question: Question) -> Iterator[tuple[Table, Question]]:
    """The same question about the tables that do not answer it."""
    name = "NegativeRetrievalExamples.negative_retrieval_examples_ext"
    extension = _pool().FindExtensionByName(f"{_PACKAGE}.{name}")
    for number, negative in enumerate(entry.Extensions[extension].examples):
        key = f"{question.question_id}_negative_{number}"
        yield _table(negative.table, key), Question(question.text, key, aggregation=ABSENT)


def _parse(text: bytes, where: str) -> Any:
    """Parses one message alone: slowly, but with unknown extensions, and it says what is wrong."""
    interaction = message_class()()
    try:
        text_format.Parse(text, interaction, allow_unknown_extension=True, descriptor_pool=_pool())
    except (text_format.ParseError, UnicodeDecodeError) as error:
        raise ValueError(f"expected an interaction in text format, got {error} {where}") from None
    return interaction


def _parse_together(lines: list[bytes]) -> list[Any]:
    """Parses messages in text format many times faster; gives None for those that are not plain."""
    import tensorflow as tf

    described = descriptor_pb2.FileDescriptorSet(file=[_description()]).SerializeToString()
    try:
        _, (parsed,) = tf.io.decode_proto(
            [b"interaction {%s}" % line for line in lines],
            f"{_PACKAGE}.OneInteraction",
            ["interaction"],
            [tf.string],
            b"bytes://" + described,
            message_format="text",
        )
    except tf.errors.OpError:  # it does not say which
        half = len(lines) // 2
        halves = (lines[:half], lines[half:]) if half else ()
        return [one for part in halves for one in _parse_together(part)] or [None]
    parse = message_class().FromString
    return [parse(one) for one in parsed.numpy()[:, 0]]


def _lines(file: Any, path: Path) -> Iterator[tuple[int, bytes]]:
    number = 0
    try:
        for number, line in enumerate(file, 1):
            yield number, line
    except (EOFError, OSError, zlib.error) as error:  # of gzip
        where = f"(file '{path}', line {number + 1})"
        raise ValueError(f"expected a whole file, got {error} {where}") from None


def _read_binary(path: Path) -> Iterator[tuple[Any, str]]:
    import tensorflow as tf

    with open_bytes(path) as file:
        compression = "GZIP" if file.read(len(_GZIP)) == _GZIP else ""
    records = tf.data.TFRecordDataset(str(path), compression).as_numpy_iterator()
    parse: Callable[[bytes], Any] = message_class().FromString
    number = 0
    try:
        for number, record in enumerate(records):
            yield parse(record), f"(file '{path}', record {number})"
    except (tf.errors.DataLossError, message.DecodeError) as error:
        reason, where = str(error).split("\n")[0], f"(file '{path}', record {number} or the next)"
        raise ValueError(f"expected interactions, got {reason} {where}") from None


@functools.cache
def _pool() -> descriptor_pool.DescriptorPool:
    """The messages in a pool of their own, beside which the release's own may be loaded."""
    pool = descriptor_pool.DescriptorPool()
    pool.Add(_description())
    return pool


@functools.cache
def _description() -> descriptor_pb2.FileDescriptorProto:
    """The messages, as protoc would describe them."""
    text = read_text(Path(__file__).with_name("interactions.txtpb"))
    return text_format.Parse(text, descriptor_pb2.FileDescriptorProto())
