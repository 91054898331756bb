"""Table question answering as a task of the training loop, from a folder of records.

The folder is one of experiments/create_data.py: {train,dev}.tfrecord are the examples,
dev.jsonl the questions of the dev split with their tables and answers, vocab.txt the vocabulary.

Shapes: B batch, S sequence.
"""

import itertools
import pathlib
from collections.abc import Callable, Mapping

import numpy as np
import tensorflow as tf

from mate_tf.evaluation.wtq import denotation_accuracy
from mate_tf.tables.datasets.json_lines import read_json_lines
from mate_tf.tables.records import (
    batch_by_length,
    has_histogram_row,
    read_records,
    training_batches,
)
from mate_tf.tables.token_features import TokenFeatures
from mate_tf.tasks.predictor import decode_batch
from mate_tf.tasks.table_qa import TableQuestionAnswering
from mate_tf.training.config import FinetuneConfig
from mate_tf.training.examples import RECORDS, check_examples, first_weights, without_texts
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
        FileNotFoundError, ValueError: as `check_examples`, and if the examples have a histogram
            row where the config says none, or none where it says one.
    """
    check_examples(config, data_dir, "table question answering", _TASK_FEATURES, ["dev.jsonl"])
    for name in RECORDS:
        file = pathlib.Path(data_dir) / name
        if has_histogram_row(file) != config.histogram_row:
            expected, got = ("with", "without") if config.histogram_row else ("without", "with")
            raise ValueError(
                f"expected examples {expected} a histogram row (histogram_row="
                f"{config.histogram_row}), got examples {got} one in {file}"
            )


def build_model(config: FinetuneConfig) -> TableQuestionAnswering:
    """The model of a config with its first weights, which follow from keras's random seed."""
    with first_weights(config):
        model = TableQuestionAnswering(config.encoder, config.task)
        model.build()
    return model


def make_task(
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
        return batches.map(without_texts)

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
            outputs, example_loss = predict(without_texts(batch))
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
