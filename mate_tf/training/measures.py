"""Checks of a folder of records, and measures while a model trains; table_qa.py has its own.

Shapes: B batch, S sequence, N examples or spans, P predictions.
"""

import itertools
import pathlib
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from mate_tf.answers.inference import divided
from mate_tf.evaluation.predictions import NUM_SHOWN, ShownAnswer, answers_table, confusion_table
from mate_tf.features.wordpiece import Wordpiece
from mate_tf.models.classification import SequenceClassification
from mate_tf.models.masked_lm import MaskedLanguageModel
from mate_tf.models.span_reading import SpanReading, answer_spans, body_cells
from mate_tf.paths import as_path
from mate_tf.records.batches import batch_by_length
from mate_tf.records.conversion_file import has_conversion, read_conversion
from mate_tf.records.splits import has_questions, read_questions
from mate_tf.task_configs import SpanReadingConfig, span_bounds
from mate_tf.training.config import (
    ClassificationTrainingConfig,
    MaskedLMTrainingConfig,
    SpanReadingTrainingConfig,
)
from mate_tf.training.distribution import Batch, on_workers
from mate_tf.training.examples import (
    SPLITS,
    Evaluation,
    check_examples,
    check_range,
    dev_batches,
    dev_examples,
    joined,
    piece_text,
    predict_function,
    question_texts,
    records_conversion,
    without_texts,
)

_CLASS = "classification_class_index"
_MASKED = ("masked_lm_positions", "masked_lm_ids", "masked_lm_weights", "is_random_table")
# Of each split and length, since a corpus may take hours to read.
_EXAMPLES_CHECKED = 20_000


def classification_metrics(
    predictions: Sequence[int] | np.ndarray, labels: Sequence[int] | np.ndarray
) -> dict[str, float]:
    """Scores of N predictions, from 0 to 1 (grammar-guided attention paper, section 4.4).

    They are "accuracy", and "precision" and "f1" of each class, averaged by the classes' sizes. The
    precision of a class that is never predicted is 0.
    """
    labels, predictions = np.asarray(labels), np.asarray(predictions)
    number = 1 + max(labels.max(), predictions.max())
    right = np.bincount(labels[labels == predictions], minlength=number)  # [classes]
    support = np.bincount(labels, minlength=number)
    predicted = np.bincount(predictions, minlength=number)
    precision = right / np.maximum(predicted, 1)
    f1 = 2.0 * right / np.maximum(support + predicted, 1)
    return {
        "accuracy": float(right.sum() / len(labels)),
        "precision": float(np.average(precision, weights=support)),
        "f1": float(np.average(f1, weights=support)),
    }


def check_classification(
    config: ClassificationTrainingConfig, data_dir: str | pathlib.Path
) -> None:
    """As `check_examples`; ValueError also for an example of an unknown class or without one."""

    def check_example(split: str, example: tf.train.Example, where: str) -> None:
        index = example.features.feature[_CLASS].int64_list.value
        check_range(_CLASS, index, config.task.num_classes, example, where, "task.num_classes")

    check_examples(config, data_dir, "classification", [_CLASS], check_example=check_example)
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


def classification_evaluation(
    config: ClassificationTrainingConfig,
    data_dir: str | pathlib.Path,
    model: SequenceClassification,
) -> Evaluation:
    """An evaluation on the dev split: "loss" and the scores of `classification_metrics`.

    The texts are "confusion", which class was taken for which, and "answers", the first few.
    """
    batches, predict = dev_batches(config, data_dir), predict_function(model)
    wordpiece = Wordpiece(as_path(data_dir) / "vocab.txt")
    names = config.task.class_names or tuple(map(str, range(config.task.num_classes)))

    def measured(batch: Batch) -> dict[str, Any]:
        outputs, example_loss = predict(batch)
        predictions = np.argmax(outputs["class_logits"], axis=-1)  # [B]
        labels = batch[_CLASS].numpy()[:, 0]  # [B]
        texts = question_texts(batch, wordpiece)[:NUM_SHOWN]
        shown = [
            ShownAnswer(text, names[gold], names[predicted], (), bool(gold == predicted))
            for text, gold, predicted in zip(texts, labels, predictions, strict=False)
        ]
        lists = dict(losses=example_loss.numpy(), predictions=predictions, golds=labels)
        return dict(shown=shown) | {name: values.tolist() for name, values in lists.items()}

    def evaluate() -> dict[str, float | str]:
        lists = joined(on_workers(batches, measured))
        predictions, golds = lists["predictions"], lists["golds"]
        loss = {"loss": float(np.mean(lists["losses"]))}
        right, found = ([names[index] for index in indices] for indices in (golds, predictions))
        texts = {"confusion": confusion_table(right, found, names)}
        texts["answers"] = answers_table(lists["shown"][:NUM_SHOWN])
        return loss | classification_metrics(predictions, golds) | texts

    return Evaluation(evaluate, "accuracy")


def check_span_reading(config: SpanReadingTrainingConfig, data_dir: str | pathlib.Path) -> None:
    """As `check_examples`; ValueError also for labels of whole cells or a histogram row."""
    features = ["label_ids", *([_CLASS] if config.task.num_classes else [])]
    check_examples(config, data_dir, "reading", features)
    if has_conversion(data_dir) and not read_conversion(data_dir).features.label_answer_spans:
        raise ValueError(
            f"expected examples in {data_dir} whose labels are the answers' spans, got labels of "
            "whole cells; make them with --label_answer_spans"
        )
    if records_conversion(config, data_dir).features.histogram_row:
        raise ValueError(
            "expected examples without a histogram row, whose cells a reader would take for "
            f"answers, got examples with one in {data_dir}; make them without --histogram_row"
        )


def span_reading_evaluation(
    config: SpanReadingTrainingConfig, data_dir: str | pathlib.Path, model: SpanReading
) -> Evaluation:
    """An evaluation of the labelled answers of the dev split, by their "span_accuracy".

    That is how often the best span is labelled, which an answer longer than `max_span_length` can
    never be. With classes there are "class_accuracy" over all examples, and the text "confusion",
    which class was taken for which. The text "answers" shows the first few.
    """
    batches, predict = dev_batches(config, data_dir), predict_function(model)
    wordpiece = Wordpiece(as_path(data_dir) / "vocab.txt")

    def measured(batch: Batch) -> dict[str, Any]:
        outputs, example_loss = predict(batch)
        cells = body_cells(batch["row_ids"], batch["column_ids"])
        labels = batch["label_ids"]
        answers = answer_spans(labels, cells, config.task.max_span_length).numpy()  # [B, N]
        best = np.argmax(outputs["span_logits"], axis=-1)  # [B]
        labelled = labels.numpy().any(axis=1)
        is_hit = np.take_along_axis(answers, best[:, None], axis=1)[:, 0]  # [B]
        result = dict(
            losses=example_loss.numpy()[labelled].tolist(), hits=is_hit[labelled].tolist()
        )
        shown = _shown_answers(config.task, batch, best, is_hit, wordpiece)
        result["shown"] = [*itertools.islice(itertools.compress(shown, labelled), NUM_SHOWN)]
        if config.task.num_classes:
            result["classes"] = np.argmax(outputs["class_logits"], axis=-1).tolist()
            result["golds"] = batch[_CLASS].numpy()[:, 0].tolist()
        return result

    def evaluate() -> dict[str, float | str]:
        lists = joined(on_workers(batches, measured))
        hits, classes, gold_classes = lists["hits"], lists["classes"], lists["golds"]
        if not hits:
            raise ValueError(f"expected labelled answers in the dev split of {data_dir}, got none")
        results: dict[str, float | str] = {
            "loss": float(np.mean(lists["losses"])),
            "span_accuracy": float(np.mean(hits)),
            "answers": answers_table(lists["shown"][:NUM_SHOWN]),
        }
        if classes:
            results["class_accuracy"] = float(np.mean(np.equal(classes, gold_classes)))
            right, found = ([*map(str, indices)] for indices in (gold_classes, classes))
            names = [*map(str, range(config.task.num_classes))]
            results["confusion"] = confusion_table(right, found, names)
        return results

    return Evaluation(evaluate, "span_accuracy")


def _shown_answers(
    task: SpanReadingConfig,
    batch: Batch,
    best: np.ndarray,
    is_hit: np.ndarray,
    wordpiece: Wordpiece,
) -> Iterator[ShownAnswer]:
    """The likeliest span of each example and the labelled pieces, as texts."""
    ids, rows, columns, labels = (
        batch[name].numpy() for name in ("input_ids", "row_ids", "column_ids", "label_ids")
    )  # [B, S]
    starts, ends = span_bounds(ids.shape[1], task.max_span_length)  # [N]
    for index, question in enumerate(question_texts(batch, wordpiece)):
        start, end = int(starts[best[index]]), int(ends[best[index]])
        yield ShownAnswer(
            question,
            piece_text(ids[index, labels[index] > 0], wordpiece),
            piece_text(ids[index, start : end + 1], wordpiece),
            [(int(rows[index, start]) - 1, int(columns[index, start]) - 1)],
            bool(is_hit[index]),
        )


def check_masked_lm(config: MaskedLMTrainingConfig, data_dir: str | pathlib.Path) -> None:
    """As `check_examples`; ValueError also for other lengths, another task or unknown tokens."""
    if has_conversion(data_dir):
        made = read_conversion(data_dir).pretraining
        if made is None:
            raise ValueError(
                f"expected records to pre-train on in {data_dir}, got those of another task"
            )
        length = made.masked_lm.max_seq_length
        if config.max_seq_length != length:
            raise ValueError(
                f"expected records of {config.max_seq_length} tokens (max_seq_length), got those "
                f"of {length} in {data_dir}; choose that length or make them again"
            )

    def check_example(split: str, example: tf.train.Example, where: str) -> None:
        features = example.features.feature
        num_tokens = sum(features["input_mask"].int64_list.value)
        limits = {"masked_lm_positions": num_tokens, "masked_lm_ids": config.encoder.vocab_size}
        for name, limit in limits.items():
            check_range(name, features[name].int64_list.value, limit, example, where)

    check_examples(config, data_dir, "pre-training", _MASKED, check_example, _EXAMPLES_CHECKED)


def masked_lm_evaluation(
    config: MaskedLMTrainingConfig, data_dir: str | pathlib.Path, model: MaskedLanguageModel
) -> Evaluation:
    """An evaluation on the dev split.

    "masked_lm_accuracy" and "masked_lm_cell_accuracy" are the shares of masked tokens, and of those
    in cells, whose first choice is right; "masked_lm_loss" is the mean cross-entropy;
    "next_sentence_accuracy" how often the model tells whether the table was drawn at random.
    """

    def predict(batch: Batch) -> tuple[tf.Tensor, ...]:
        outputs = model(*model.model_inputs(batch), training=False)
        losses = model.compute_task_loss(batch, outputs)
        tokens = tf.argmax(outputs["masked_lm_logits"], axis=-1, output_type=tf.int32)  # [B, P]
        none = tf.zeros([tf.shape(tokens)[0], 2])
        table_logits = outputs.get("next_sentence_logits", none)  # [B, 2]
        return tokens, losses["masked_lm_token_loss"], tf.argmax(table_logits, axis=-1)

    on_replicas = divided(predict)

    def evaluate() -> dict[str, float | str]:
        def measured(batch: Batch) -> dict[str, list[float]]:
            tokens, losses, tables = (value.numpy() for value in on_replicas(without_texts(batch)))
            weights = batch["masked_lm_weights"].numpy()  # [B, P]
            is_right = tokens == batch["masked_lm_ids"].numpy()  # [B, P]
            columns = tf.gather(batch["column_ids"], batch["masked_lm_positions"], batch_dims=1)
            counted = {
                "masked_lm_accuracy": (is_right, weights),
                "masked_lm_cell_accuracy": (is_right, weights * (columns.numpy() > 0)),
                "masked_lm_loss": (losses, weights),
            }
            if config.task.next_sentence:
                is_right = tables == batch["is_random_table"].numpy()[:, 0]  # [B]
                counted["next_sentence_accuracy"] = is_right, np.ones_like(tables)
            return {
                name: [float((values * counts).sum()), float(counts.sum())]
                for name, (values, counts) in counted.items()
            }

        sums: defaultdict[str, np.ndarray] = defaultdict(lambda: np.zeros(2))
        examples = dev_examples(config, data_dir).take(config.eval_examples or -1)
        batches = batch_by_length(examples, config.eval_batch_size, config.length_buckets)
        for batch_sums in on_workers(batches, measured):
            for name, values in batch_sums.items():
                sums[name] += values
        return {name: float(right / max(total, 1)) for name, (right, total) in sums.items()}

    return Evaluation(evaluate, "masked_lm_accuracy")
