"""The TAPAS schema of TFRecord files, and whether a file follows it."""

import os
from collections.abc import Iterator, Mapping

import tensorflow as tf
from google.protobuf import message

from mate_tf.features.token_features import TAPAS_FEATURES, TokenFeatures
from mate_tf.records.files import FRAME_BYTES, detect_compression, is_complete, readable_records

Path = str | os.PathLike[str]
Schema = Mapping[str, tf.io.FixedLenFeature | tf.io.FixedLenSequenceFeature]

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
# Aggregation candidates, where a file has them.
OF_CANDIDATES = {
    "cand_num": tf.int64,
    "can_aggregation_function_ids": tf.int64,
    "can_sizes": tf.int64,
    "can_indexes": tf.int64,
}
VARYING_IN_LENGTH = ("can_indexes",)
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
    schema: dict[str, tf.io.FixedLenFeature | tf.io.FixedLenSequenceFeature] = {}
    for name, dtype in {**OF_TOKENS, **OF_EXAMPLES, **OF_CANDIDATES}.items():
        if name in example.features.feature:
            feature = example.features.feature[name]
            kind = feature.WhichOneof("kind")
            if _KINDS.get(kind) != dtype:
                raise ValueError(f"expected {name} as {dtype.name}, got {kind} (file {file})")
            if name in VARYING_IN_LENGTH:
                schema[name] = tf.io.FixedLenSequenceFeature([], dtype, allow_missing=True)
                continue
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
