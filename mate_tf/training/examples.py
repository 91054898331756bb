"""Examples, batches and models of a run that trains on a folder of records.

The folder is from `mate-tf data`, or it is one of TAPAS's release, with a vocabulary beside it
(records/splits.py).

Shapes: B batch.
"""

import dataclasses
import pathlib
import statistics
import timeit
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import tensorflow as tf
from absl import logging

from mate_tf.answers.inference import divided
from mate_tf.dataclass_json import differences
from mate_tf.features.config import FeatureConfig
from mate_tf.features.token_features import PART_OF_SPEECH, TokenFeatures
from mate_tf.features.wordpiece import Wordpiece
from mate_tf.models import make_model
from mate_tf.models.encoder_task import EncoderTask
from mate_tf.paths import as_path
from mate_tf.records.batches import batch_by_length, read_records, training_batches
from mate_tf.records.conversion_file import (
    Conversion,
    check_vocabulary,
    file_sha256,
    has_conversion,
    read_conversion,
    write_conversion,
)
from mate_tf.records.records import check_records, name_example, schemas
from mate_tf.records.splits import split_files
from mate_tf.training.config import RunConfig, TableQATrainingConfig, TrainingConfig
from mate_tf.training.distribution import Batch, check_batch_size
from mate_tf.training.trainer import Task

SPLITS = ("train", "dev")
_FILLING = b"EMPTY-0_0"  # the release's examples that fill up the last batch of a test split
_SAMPLED = 200  # examples whose length is looked at


def check_examples(
    config: TrainingConfig,
    data_dir: str | pathlib.Path,
    task: str,
    features: Collection[str],
    check_example: Callable[[str, tf.train.Example, str], None] | None = None,
    at_most: int | None = None,
) -> None:
    """Refuses a folder that this config cannot be trained on: FileNotFoundError or ValueError.

    Examples need the features beside the token features; `task` names them in messages.
    `check_example` raises ValueError for an example that does not suit the task; it gets the split,
    the example and its place. Of each split `at_most` examples are checked, or all.
    """
    data_dir = as_path(data_dir)
    if not (data_dir / "vocab.txt").is_file():
        raise FileNotFoundError(
            f"expected vocab.txt in {data_dir}; `mate-tf data` writes such a folder, and beside "
            "records of TAPAS's release belongs the vocabulary that they were made with"
        )
    needed = {*features, *(["table_id_hash"] if config.perturbed_copies else [])}
    vocab_size = config.encoder.vocab_size
    check_vocabulary(data_dir)
    files_by_split = record_files(config, data_dir)
    if not has_conversion(data_dir):
        for split, files in files_by_split.items():
            more = f" and {len(files) - 1} more" if files[1:] else ""
            logging.info("TAPAS's release: the split %s is %s%s", split, files[0], more)
    for split, files in files_by_split.items():
        schema, _ = schemas(files, config.skip_corrupt)
        if missing := ", ".join(sorted(needed - set(schema))):
            raise ValueError(f"expected examples of {task} in {files[0]}, which lack {missing}")
        if config.encoder.attention.is_grammar_guided and PART_OF_SPEECH not in schema:
            raise ValueError(
                f"expected {PART_OF_SPEECH} in {files[0]} for architecture "
                f"{config.encoder.attention.architecture!r}; make the examples with --tagger"
            )
        (length,) = schema["input_ids"].shape
        if length != config.max_seq_length:
            raise ValueError(
                f"expected examples of {config.max_seq_length} tokens (max_seq_length), got "
                f"{length} in {files[0]}"
            )

        def check(example: tf.train.Example, where: str, split: str = split) -> None:
            ids = example.features.feature["input_ids"].int64_list.value
            check_range("input_ids", ids, vocab_size, example, where, "encoder.vocab_size")
            if check_example is not None:
                check_example(split, example, where)

        check_records(files, config.skip_corrupt, check, at_most)
    Wordpiece(data_dir / "vocab.txt").check_fits(vocab_size)


def record_files(config: TrainingConfig, data_dir: str | pathlib.Path) -> dict[str, list[str]]:
    """The record files of each split; errors as `split_files`."""
    return {split: split_files(data_dir, config.record_name(split)) for split in SPLITS}


def check_range(
    name: str,
    values: Sequence[int],
    limit: int,
    example: tf.train.Example,
    where: str,
    option: str = "",  # that sets the limit
) -> None:
    """ValueError for an example with a value of a feature below 0, or not below a limit."""
    if values and not (min(values) >= 0 and max(values) < limit):
        wrong = max(values) if min(values) >= 0 else min(values)
        raise ValueError(
            f"expected {name} from 0 to {limit - 1}{option and f' ({option})'}, got {wrong} "
            f"{name_example(example, where)}"
        )


def records_conversion(config: TrainingConfig, data_dir: str | pathlib.Path) -> Conversion:
    """How accepted records were made; where a folder does not say, as the release does it."""
    if has_conversion(data_dir):
        return read_conversion(data_dir)
    features = FeatureConfig(config.max_seq_length, trim_cells=True, original_conversion=True)
    vocabulary = file_sha256(as_path(data_dir) / "vocab.txt")
    return Conversion(None, features, None, vocabulary)


def save_conversion(
    config: TrainingConfig, data_dir: str | pathlib.Path, model_dir: str | pathlib.Path
) -> None:
    """Writes to a run's folder how the records were made; ValueError if it says otherwise."""
    here = records_conversion(config, data_dir)
    if has_conversion(model_dir):
        there = read_conversion(model_dir)
        if different := differences(dataclasses.asdict(there), dataclasses.asdict(here)):
            raise ValueError(
                f"expected records made like those of the run in {model_dir}, got others in "
                f"{data_dir}: {', '.join(different)}; choose another folder for the run or make "
                "the records again"
            )
        return
    write_conversion(model_dir, here)


def build_model(config: RunConfig) -> Any:
    """The model of a config, with first weights that follow from Keras's random seed."""
    model = make_model(config.encoder, config.task, config.dtype)
    model.encoder.recompute = config.recompute
    return model


class Evaluation(NamedTuple):
    """How a model is measured while it trains; as `Task` says."""

    evaluate: Callable[[], Mapping[str, float | str]]
    best_by: str


def make_task(
    config: TrainingConfig,
    data_dir: str | pathlib.Path,
    model: EncoderTask,
    evaluation: Evaluation,
    known: str | None = None,
) -> Task:
    """The model's training on the train split.

    Batches of a file of known questions take config.known_share of the turns.
    """
    check_batch_size(config.batch_size, config.gradient_accumulation_steps)
    share = config.known_share if known and isinstance(config, TableQATrainingConfig) else 0.0

    def train_dataset(skip: int, file: str | None = None) -> tf.data.Dataset:
        batches = training_batches(
            file or split_files(data_dir, config.record_name("train")),
            config.batch_size,
            config.seed,
            config.length_buckets,
            skip=skip,
            skip_corrupt=config.skip_corrupt,
            perturbed_copies=config.perturbed_copies,
        )
        return batches.map(without_texts)

    def with_known(step: int) -> tf.data.Dataset:
        num_known = int(share * step)

        def turn(number: tf.Tensor) -> tf.Tensor:
            number = tf.cast(number, tf.float64)
            return tf.cast(share * (number + 1), tf.int64) - tf.cast(share * number, tf.int64)

        datasets = [train_dataset(step - num_known), train_dataset(num_known, known)]
        turns = tf.data.Dataset.counter(step).map(turn)
        return tf.data.Dataset.choose_from_datasets(datasets, turns)

    batches = with_known if share else train_dataset
    return Task(model, batches, evaluation.evaluate, evaluation.best_by, share)


def dev_examples(config: TrainingConfig, data_dir: str | pathlib.Path) -> tf.data.Dataset:
    """The examples of the dev split, without those that fill up the last batch of the release."""
    files = split_files(data_dir, config.record_name("dev"))
    examples = read_records(files, config.skip_corrupt)
    if "question_id" not in examples.element_spec:
        return examples
    return examples.filter(lambda features: features["question_id"][0] != _FILLING)


def dev_batches(
    config: TrainingConfig,
    data_dir: str | pathlib.Path,
    question_ids: Collection[str] | None = None,
) -> tf.data.Dataset:
    """The examples of the dev split in batches, all or those of some questions."""
    examples = dev_examples(config, data_dir)
    if question_ids is not None:
        ids = tf.constant([id_.encode() for id_ in question_ids])
        examples = examples.filter(lambda features: tf.reduce_any(features["question_id"] == ids))
    return batch_by_length(examples, config.eval_batch_size, config.length_buckets)


def joined(batches: Iterable[Mapping[str, list]]) -> dict[str, list]:
    """The lists of all batches, one after the other, by their names."""
    lists: dict[str, list] = defaultdict(list)
    for batch in batches:
        for name, values in batch.items():
            lists[name] += values
    return lists


def expected_seconds(config: TrainingConfig, data_dir: str | pathlib.Path) -> float:
    """About how long training takes on this device: within a factor of two, measured on CPUs.

    A step took four times its bare matrix products on two CPU cores, and each length of batches ten
    seconds to compile. The products of one token are timed here.
    """
    examples = read_records(split_files(data_dir, config.record_name("train")), config.skip_corrupt)
    lengths = [int(tf.reduce_sum(e["input_mask"])) for e in examples.take(_SAMPLED)]
    ends = (*config.length_buckets, config.max_seq_length)
    padded = [next(end for end in ends if length <= end) for length in lengths]
    tokens = config.batch_size * sum(padded) / len(padded)
    sizes = config.encoder
    width, inner, num_tokens = sizes.hidden_size, sizes.intermediate_size, 2_048
    dtype = tf.bfloat16 if config.dtype == "mixed_bfloat16" else tf.float32
    left, right = tf.ones([num_tokens, width], dtype), tf.ones([width, inner], dtype)
    tf.matmul(left, right)[0, 0].numpy()  # the first one takes longer
    times = timeit.repeat(lambda: tf.matmul(left, right)[0, 0].numpy(), number=1, repeat=5)
    products = 2 + 4 * width / inner  # of this size: two of them inner, four square ones
    # Forward and backward.
    per_token = 3 * sizes.num_layers * products * statistics.median(times) / num_tokens
    return 10 * len(set(padded)) + 4 * config.num_steps * tokens * per_token


def predict_function(
    model: EncoderTask,
) -> Callable[[Batch], tuple[Mapping[str, tf.Tensor], tf.Tensor]]:
    """From a batch to the model's outputs and the losses of its examples, float [B]."""

    def predict(batch: Batch) -> tuple[Mapping[str, tf.Tensor], tf.Tensor]:
        outputs = model(TokenFeatures.from_dict(batch), training=False)
        return outputs, model.compute_task_loss(batch, outputs)["example_loss"]

    on_replicas = divided(predict)
    return lambda batch: on_replicas(without_texts(batch))


def question_texts(batch: Batch, wordpiece: Wordpiece) -> list[str]:
    """The questions or sentences of a batch, B texts, joined from their pieces."""
    ids = batch["input_ids"].numpy()  # [B, S]
    is_text = batch["input_mask"].numpy().astype(bool) & (batch["segment_ids"].numpy() == 0)
    return [piece_text(pieces[mask], wordpiece) for pieces, mask in zip(ids, is_text, strict=True)]


def piece_text(pieces: Iterable[int], wordpiece: Wordpiece) -> str:
    """Pieces joined to words, without [CLS] and [SEP]."""
    texts = (wordpiece.vocabulary[piece] for piece in pieces)
    return " ".join(text for text in texts if text not in ("[CLS]", "[SEP]")).replace(" ##", "")


def without_texts(batch: Batch) -> dict[str, tf.Tensor]:
    """Features that a model may use: no ids as text."""
    return {name: values for name, values in batch.items() if values.dtype != tf.string}
