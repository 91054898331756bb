"""What all tasks that train on a folder of records share.

The folder is one of experiments/create_data.py: {train,dev}.tfrecord are the examples, vocab.txt
the vocabulary.
"""

import contextlib
import pathlib
from collections.abc import Collection, Iterator

import keras
import tensorflow as tf

from mate_tf.tables.record_schema import file_schema
from mate_tf.tables.records import check_records
from mate_tf.tables.token_features import PART_OF_SPEECH
from mate_tf.tables.wordpiece import Wordpiece
from mate_tf.training.config import ExamplesConfig
from mate_tf.training.loop import Batch

RECORDS = ("train.tfrecord", "dev.tfrecord")


def check_examples(
    config: ExamplesConfig,
    data_dir: str | pathlib.Path,
    task: str,
    features: Collection[str],
    other_files: Collection[str] = (),
) -> None:
    """Refuses a folder that cannot be trained on with this config.

    Args:
        config: of the training.
        data_dir: the folder.
        task: what the examples are of, for messages.
        features: what they need beside the token features.
        other_files: what has to be in the folder beside the records and the vocabulary.

    Raises:
        FileNotFoundError: if the folder or one of its files is missing.
        ValueError: if a file is not what its name says, if the examples lack a feature or have
            another length than the config, or if the vocabulary is larger than the encoder's.
    """
    data_dir = pathlib.Path(data_dir)
    for name in ("vocab.txt", *RECORDS, *other_files):
        if not (data_dir / name).is_file():
            raise FileNotFoundError(
                f"expected {name} in {data_dir}; experiments/create_data.py writes such a folder"
            )
    for name in RECORDS:
        check_records(data_dir / name)
        schema = file_schema(data_dir / name)
        if missing := sorted(set(features) - set(schema)):
            raise ValueError(
                f"expected examples of {task} in {data_dir / name}, which lack {', '.join(missing)}"
            )
        if config.encoder.attention.is_grammar_guided and PART_OF_SPEECH not in schema:
            raise ValueError(
                f"expected {PART_OF_SPEECH} in {data_dir / name} for architecture "
                f"{config.encoder.attention.architecture!r}; make the examples with --tagger"
            )
        (length,) = schema["input_ids"].shape
        if length != config.max_seq_length:
            raise ValueError(
                f"expected examples of {config.max_seq_length} tokens (max_seq_length), got "
                f"{length} in {data_dir / name}"
            )
    pieces = len(Wordpiece(data_dir / "vocab.txt").vocabulary)
    if pieces > config.encoder.vocab_size:
        raise ValueError(
            f"expected at most {config.encoder.vocab_size} pieces (encoder.vocab_size), got "
            f"{pieces} in {data_dir / 'vocab.txt'}"
        )


@contextlib.contextmanager
def first_weights(config: ExamplesConfig) -> Iterator[None]:
    """Where a model is made and built in the config's dtype."""
    policy = keras.config.dtype_policy()
    keras.config.set_dtype_policy(config.dtype)
    try:
        yield
    finally:
        keras.config.set_dtype_policy(policy)


def without_texts(batch: Batch) -> dict[str, tf.Tensor]:
    """Ids as text are of no use to the model, and no accelerator takes them."""
    return {name: values for name, values in batch.items() if values.dtype != tf.string}
