"""Training a classifier of sequences on a folder of records.

Shapes: B batch, S sequence, N examples.
"""

import pathlib
from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from mate_tf.evaluation.markdown import NUM_SHOWN, ShownAnswer, answers_table, confusion_table
from mate_tf.features.wordpiece import Wordpiece
from mate_tf.models.classification import SequenceClassification
from mate_tf.records.records import name_example
from mate_tf.records.splits import has_questions, read_questions
from mate_tf.training.config import ClassificationTrainingConfig
from mate_tf.training.examples import (
    SPLITS,
    Evaluation,
    check_examples,
    dev_batches,
    predict_function,
    question_texts,
)


def classification_metrics(
    predictions: Sequence[int] | np.ndarray, labels: Sequence[int] | np.ndarray
) -> dict[str, float]:
    """Scores of N predictions, from 0 to 1 (grammar-guided attention paper, section 4.4).

    Returns:
        "accuracy", and "precision" and "f1" of each class, averaged by the classes' sizes. The
        precision of a class that is never predicted is 0.

    Raises:
        ValueError: if there are no labels, or not as many predictions.
    """
    if not len(labels):
        raise ValueError("expected at least 1 label, got 0")
    labels, predictions = np.asarray(labels), np.asarray(predictions)
    if len(labels) != len(predictions):
        raise ValueError(
            f"expected a prediction for each of {len(labels)} labels, got {len(predictions)}"
        )
    number = 1 + max(labels.max(), predictions.max())
    right = np.bincount(labels[labels == predictions], minlength=number)  # [classes]
    of_class = np.bincount(labels, minlength=number)
    predicted = np.bincount(predictions, minlength=number)
    precision = right / np.maximum(predicted, 1)
    f1 = 2.0 * right / np.maximum(of_class + predicted, 1)
    return {
        "accuracy": float(right.sum() / len(labels)),
        "precision": float(np.average(precision, weights=of_class)),
        "f1": float(np.average(f1, weights=of_class)),
    }


_LABEL = "classification_class_index"


def check_data(config: ClassificationTrainingConfig, data_dir: str | pathlib.Path) -> None:
    """As `check_examples`; ValueError also for an example of an unknown class or without one."""

    def check_example(split: str, example: tf.train.Example, where: str) -> None:
        (index,) = example.features.feature[_LABEL].int64_list.value
        if not 0 <= index < config.task.num_classes:
            raise ValueError(
                f"expected {_LABEL} from 0 to {config.task.num_classes - 1} (task.num_classes), "
                f"got {index} {name_example(example, where)}"
            )

    check_examples(config, data_dir, "classification", [_LABEL], check_example=check_example)
    for split in SPLITS:  # a record of a question without a class has class 0
        if not has_questions(data_dir, split):
            continue  # sentences have no such file
        for _, question in read_questions(data_dir, split):
            if question.class_index is None:
                raise ValueError(
                    "expected a 'class_index' of each question to train a classifier, got none "
                    f"(question '{question.question_id}', split {split}); add it, or train another "
                    "kind of model"
                )


def dev_evaluation(
    config: ClassificationTrainingConfig,
    data_dir: str | pathlib.Path,
    model: SequenceClassification,
) -> Evaluation:
    """An evaluation on the dev split.

    It gives "loss", the scores of `classification_metrics`, and as texts "confusion", which class
    was taken for which, and "answers", the first few.
    """
    batches = dev_batches(config, data_dir)
    predict = predict_function(model)
    wordpiece = Wordpiece(pathlib.Path(data_dir) / "vocab.txt")
    names = config.task.class_names or tuple(map(str, range(config.task.num_classes)))

    def evaluate() -> dict[str, float | str]:
        losses, predictions, labels = [], [], []
        shown = list[ShownAnswer]()
        for batch in batches:
            outputs, example_loss = predict(batch)
            losses.append(example_loss.numpy())
            predictions.append(np.argmax(outputs["class_logits"], axis=-1))
            labels.append(batch[_LABEL].numpy()[:, 0])
            if len(shown) < NUM_SHOWN:
                texts = question_texts(batch, wordpiece)
                for text, gold, predicted in zip(texts, labels[-1], predictions[-1], strict=True):
                    is_right = gold == predicted
                    shown.append(ShownAnswer(text, names[gold], names[predicted], (), is_right))
        loss = float(np.mean(np.concatenate(losses)))
        scores = classification_metrics(np.concatenate(predictions), np.concatenate(labels))
        golds, predicted = (
            [names[index] for index in np.concatenate(of_batches)]
            for of_batches in (labels, predictions)
        )
        shown_texts = {
            "confusion": confusion_table(golds, predicted, names),
            "answers": answers_table(shown[:NUM_SHOWN]),
        }
        return {"loss": loss} | scores | shown_texts

    return Evaluation(evaluate, "accuracy")
