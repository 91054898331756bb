"""Table question answering as a task of the training loop, from a folder of records.

The folder is one of experiments/create_data.py: {train,dev}.tfrecord are the examples,
dev.jsonl the questions of the dev split with their tables and answers, vocab.txt the vocabulary.

Shapes: B batch, S sequence.
"""

import itertools
import pathlib
from collections.abc import Callable, Mapping

import keras
import numpy as np
import tensorflow as tf

from mate_tf.evaluation.wtq import denotation_accuracy
from mate_tf.tables.datasets.json_lines import read_json_lines
from mate_tf.tables.record_schema import file_schema
from mate_tf.tables.records import (
    batch_by_length,
    check_records,
    has_histogram_row,
    read_records,
    training_batches,
)
from mate_tf.tables.token_features import TokenFeatures
from mate_tf.tables.wordpiece import Wordpiece
from mate_tf.tasks.predictor import decode_batch
from mate_tf.tasks.table_qa import TableQuestionAnswering
from mate_tf.training.config import FinetuneConfig
from mate_tf.training.loop import Batch, Task

BEST_BY = "denotation_accuracy"
_TASK_FEATURES = {
    "aggregation_function_id",
    "answer",
    "label_ids",
    "numeric_values",
    "numeric_values_scale",
    "question_id",
}


def check_data(config: FinetuneConfig, data_dir: str | pathlib.Path) -> None:
    """Refuses a folder that cannot be trained on with this config.

    Raises:
        FileNotFoundError: if the folder or one of its files is missing.
        ValueError: if a file is not what its name says, if the examples have another length than
            the config or its histogram row is not as the config says, or if the vocabulary is
            larger than the encoder's.
    """
    data_dir = pathlib.Path(data_dir)
    for name in ("vocab.txt", "train.tfrecord", "dev.tfrecord", "dev.jsonl"):
        if not (data_dir / name).is_file():
            raise FileNotFoundError(
                f"expected {name} in {data_dir}; experiments/create_data.py writes such a folder"
            )
    for name in ("train.tfrecord", "dev.tfrecord"):
        check_records(data_dir / name)
        schema = file_schema(data_dir / name)
        missing = sorted(_TASK_FEATURES - set(schema))
        if missing:
            raise ValueError(
                f"expected examples of table question answering in {data_dir / name}, which lack "
                f"{', '.join(missing)}"
            )
        (length,) = schema["input_ids"].shape
        if length != config.max_seq_length:
            raise ValueError(
                f"expected examples of {config.max_seq_length} tokens (max_seq_length), got "
                f"{length} in {data_dir / name}"
            )
        if has_histogram_row(data_dir / name) != config.histogram_row:
            expected, got = ("with", "without") if config.histogram_row else ("without", "with")
            raise ValueError(
                f"expected examples {expected} a histogram row (histogram_row="
                f"{config.histogram_row}), got examples {got} one in {data_dir / name}"
            )
    pieces = len(Wordpiece(data_dir / "vocab.txt").vocabulary)
    if pieces > config.encoder.vocab_size:
        raise ValueError(
            f"expected at most {config.encoder.vocab_size} pieces (encoder.vocab_size), got "
            f"{pieces} in {data_dir / 'vocab.txt'}"
        )


def build_model(config: FinetuneConfig) -> TableQuestionAnswering:
    """The model of a config with its first weights, which follow from keras's random seed."""
    policy = keras.config.dtype_policy()
    keras.config.set_dtype_policy(config.dtype)
    try:
        model = TableQuestionAnswering(config.encoder, config.task)
        model.build()
    finally:
        keras.config.set_dtype_policy(policy)
    return model


def table_qa_task(
    config: FinetuneConfig, data_dir: str | pathlib.Path, model: TableQuestionAnswering
) -> Task:
    """The model's training on train.tfrecord, with evaluation on the dev split.

    The evaluation gives "loss", over the examples of dev.tfrecord that have labels, and
    "denotation_accuracy", over the questions of dev.jsonl, where one without an example counts as
    wrong.
    """
    data_dir = pathlib.Path(data_dir)

    def train_dataset(step: int) -> tf.data.Dataset:
        batches = training_batches(
            data_dir / "train.tfrecord",
            config.batch_size,
            config.seed,
            config.length_buckets,
            skip=step,
        )
        return batches.map(_without_texts)

    return Task(
        model=model,
        train_dataset=train_dataset,
        compute_loss=model.compute_task_loss,
        evaluate=_dev_evaluation(config, data_dir, model),
        best_by=BEST_BY,
    )


def _dev_evaluation(
    config: FinetuneConfig, data_dir: pathlib.Path, model: TableQuestionAnswering
) -> Callable[[], dict[str, float]]:
    limit = config.eval_questions
    pairs = {
        question.question_id: (table, question)
        for table, question in read_json_lines(data_dir / "dev.jsonl")
    }
    golds = {key: pairs[key][1].answers for key in itertools.islice(pairs, limit)}
    # Examples are in the order of the questions, of which some have none.
    examples = read_records(data_dir / "dev.tfrecord").take(-1 if limit is None else limit)
    batches = batch_by_length(examples, config.eval_batch_size, config.length_buckets)

    @tf.function(autograph=False)  # there is nothing to convert, and looking for it takes seconds
    def predict(batch: Batch) -> tuple[Mapping[str, tf.Tensor], tf.Tensor]:
        outputs = model(TokenFeatures.from_dict(batch), training=False)
        return outputs, model.compute_task_loss(batch, outputs)["example_loss"]

    def evaluate() -> dict[str, float]:
        losses: list[float] = []
        predictions: dict[str, tuple[str, ...]] = {}
        for batch in batches:
            outputs, example_loss = predict(_without_texts(batch))
            # Without a labelled cell or a number there is nothing to learn or to measure.
            labelled = batch["label_ids"].numpy().any(axis=1)
            labelled |= np.isfinite(batch["answer"].numpy()[:, 0])
            losses.extend(example_loss.numpy()[labelled])
            keys = [key.decode() for key in batch["question_id"].numpy().flat]
            tables = [pairs[key][0] for key in keys]
            answers = decode_batch(
                tables, TokenFeatures.from_dict(batch), outputs, config.histogram_row
            )
            predictions |= {
                key: answer.items for key, answer in zip(keys, answers, strict=True) if key in golds
            }
        return {
            "loss": float(np.mean(losses)),
            BEST_BY: denotation_accuracy(predictions, golds),
        }

    return evaluate


def _without_texts(batch: Batch) -> dict[str, tf.Tensor]:
    """Ids as text are of no use to the model, and no accelerator takes them."""
    return {name: values for name, values in batch.items() if values.dtype != tf.string}
