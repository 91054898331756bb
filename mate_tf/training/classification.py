"""Classification of sequences as a task of the training loop, from a folder of records.

Shapes: B batch, S sequence.
"""

import pathlib
from collections.abc import Callable, Mapping

import numpy as np
import tensorflow as tf

from mate_tf.evaluation.classification import classification_metrics
from mate_tf.tables.records import batch_by_length, read_records, training_batches
from mate_tf.tables.token_features import TokenFeatures
from mate_tf.tasks.classification import SequenceClassification
from mate_tf.training.config import ClassifyConfig
from mate_tf.training.examples import check_examples, first_weights, without_texts
from mate_tf.training.loop import Batch, Task

BEST_BY = "accuracy"
_LABEL = "classification_class_index"


def check_data(config: ClassifyConfig, data_dir: str | pathlib.Path) -> None:
    """Refuses a folder that cannot be trained on with this config.

    Raises:
        FileNotFoundError, ValueError: as `check_examples`.
    """
    check_examples(config, data_dir, "classification", [_LABEL])


def build_model(config: ClassifyConfig) -> SequenceClassification:
    """The model of a config with its first weights, which follow from keras's random seed."""
    with first_weights(config):
        model = SequenceClassification(config.encoder, config.task)
        model.build()
    return model


def make_task(
    config: ClassifyConfig, data_dir: str | pathlib.Path, model: SequenceClassification
) -> Task:
    """The model's training on train.tfrecord, with evaluation on dev.tfrecord.

    The evaluation gives "loss" and what `classification_metrics` gives.
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
    config: ClassifyConfig, data_dir: pathlib.Path, model: SequenceClassification
) -> Callable[[], dict[str, float]]:
    examples = read_records(data_dir / "dev.tfrecord")
    batches = batch_by_length(examples, config.eval_batch_size, config.length_buckets)

    @tf.function(autograph=False)  # there is nothing to convert, and looking for it takes seconds
    def predict(batch: Batch) -> tuple[Mapping[str, tf.Tensor], tf.Tensor]:
        outputs = model(TokenFeatures.from_dict(batch), training=False)
        return outputs, model.compute_task_loss(batch, outputs)["example_loss"]

    def evaluate() -> dict[str, float]:
        losses, predictions, labels = [], [], []
        for batch in batches:
            outputs, example_loss = predict(without_texts(batch))
            losses.append(example_loss.numpy())
            predictions.append(np.argmax(outputs["class_logits"], axis=-1))
            labels.append(batch[_LABEL].numpy()[:, 0])
        loss = float(np.mean(np.concatenate(losses)))
        scores = classification_metrics(np.concatenate(predictions), np.concatenate(labels))
        return {"loss": loss} | scores

    return evaluate
