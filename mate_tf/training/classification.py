"""Classification of sequences as a task of the training loop, from a folder of records.

Shapes: B batch, S sequence.
"""

import pathlib

import numpy as np
import tensorflow as tf

from mate_tf.evaluation.classification import classification_metrics
from mate_tf.evaluation.markdown import (
    NUM_SHOWN,
    ShownAnswer,
    answers_table,
    confusion_table,
)
from mate_tf.tables.record_schema import name_example
from mate_tf.tables.wordpiece import Wordpiece
from mate_tf.tasks.classification import SequenceClassification
from mate_tf.training.config import ClassificationTrainingConfig
from mate_tf.training.examples import (
    Evaluation,
    check_examples,
    dev_batches,
    predict_function,
    question_texts,
)

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


def dev_evaluation(
    config: ClassificationTrainingConfig,
    data_dir: str | pathlib.Path,
    model: SequenceClassification,
) -> Evaluation:
    """An evaluation on the dev split.

    It gives "loss" and what `classification_metrics` gives; "confusion", which class was taken for
    which, and "answers", the first few.
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
