"""Classification of sequences as a task of the training loop, from a folder of records.

Shapes: B batch, S sequence.
"""

import pathlib
from collections.abc import Callable

import numpy as np
import tensorflow as tf

from mate_tf.evaluation.classification import classification_metrics
from mate_tf.tables.record_schema import name_example
from mate_tf.tables.records import batch_by_length, read_records
from mate_tf.tables.splits import split_files
from mate_tf.tasks.classification import SequenceClassification
from mate_tf.training.config import ClassificationTrainingConfig
from mate_tf.training.examples import (
    check_examples,
    examples_task,
    first_weights,
    predict_function,
)
from mate_tf.training.loop import Task

BEST_BY = "accuracy"
_LABEL = "classification_class_index"


def check_data(config: ClassificationTrainingConfig, data_dir: str | pathlib.Path) -> None:
    """Refuses a folder that cannot be trained on with this config.

    Raises:
        FileNotFoundError, ValueError: as `check_examples`, and if one is of a class that there is
            not.
    """

    def check_example(split: str, example: tf.train.Example, where: str) -> None:
        (index,) = example.features.feature[_LABEL].int64_list.value
        if not 0 <= index < config.task.num_classes:
            raise ValueError(
                f"expected {_LABEL} from 0 to {config.task.num_classes - 1} (task.num_classes), "
                f"got {index} {name_example(example, where)}"
            )

    check_examples(config, data_dir, "classification", [_LABEL], check_example=check_example)


def build_model(config: ClassificationTrainingConfig) -> SequenceClassification:
    """The model of a config with its first weights, which follow from keras's random seed."""
    with first_weights(config):
        model = SequenceClassification(config.encoder, config.task)
        model.build()
    return model


def make_task(
    config: ClassificationTrainingConfig,
    data_dir: str | pathlib.Path,
    model: SequenceClassification,
) -> Task:
    """The model's training on the train split, with evaluation on the dev split.

    The evaluation gives "loss" and what `classification_metrics` gives.
    """
    data_dir = pathlib.Path(data_dir)
    evaluate = _dev_evaluation(config, data_dir, model)
    return examples_task(config, data_dir, model, evaluate, BEST_BY)


def _dev_evaluation(
    config: ClassificationTrainingConfig, data_dir: pathlib.Path, model: SequenceClassification
) -> Callable[[], dict[str, float]]:
    examples = read_records(split_files(data_dir, "dev"), skip_corrupt=config.skip_corrupt)
    batches = batch_by_length(examples, config.eval_batch_size, config.length_buckets)

    predict = predict_function(model)

    def evaluate() -> dict[str, float]:
        losses, predictions, labels = [], [], []
        for batch in batches:
            outputs, example_loss = predict(batch)
            losses.append(example_loss.numpy())
            predictions.append(np.argmax(outputs["class_logits"], axis=-1))
            labels.append(batch[_LABEL].numpy()[:, 0])
        loss = float(np.mean(np.concatenate(losses)))
        scores = classification_metrics(np.concatenate(predictions), np.concatenate(labels))
        return {"loss": loss} | scores

    return evaluate
