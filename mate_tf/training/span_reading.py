"""Reading of spans as a task of the training loop, from a folder of records.

The records are those of experiments/create_data.py --label_answer_spans.

Shapes: B batch, N spans.
"""

import pathlib
from collections.abc import Callable

import numpy as np

from mate_tf.tables.conversion_file import has_conversion, read_conversion
from mate_tf.tables.records import batch_by_length, has_histogram_row, read_records
from mate_tf.tables.splits import split_files
from mate_tf.tasks.span_reading import SpanReading
from mate_tf.tasks.spans import answer_spans, body_cells
from mate_tf.training.config import SpanReadingTrainingConfig
from mate_tf.training.examples import (
    SPLITS,
    check_examples,
    examples_task,
    first_weights,
    predict_function,
    records_conversion,
)
from mate_tf.training.loop import Task

BEST_BY = "span_accuracy"
_CLASS = "classification_class_index"


def check_data(config: SpanReadingTrainingConfig, data_dir: str | pathlib.Path) -> None:
    """Refuses a folder that cannot be trained on with this config.

    Raises:
        FileNotFoundError, ValueError: as `check_examples`, if the labels are of whole cells, and if
            examples have a histogram row, in which answers would be sought.
    """
    features = ["label_ids", *([_CLASS] if config.task.num_classes else [])]
    check_examples(config, data_dir, "reading", features)
    if has_conversion(data_dir) and not read_conversion(data_dir).features.label_answer_spans:
        raise ValueError(
            f"expected examples in {data_dir} whose labels are the answers' spans, got labels of "
            "whole cells; make them with --label_answer_spans"
        )
    has_row = records_conversion(data_dir, config.skip_corrupt).features.histogram_row
    for split in SPLITS:
        files = split_files(data_dir, split)
        if has_row or has_histogram_row(files, config.skip_corrupt):
            raise ValueError(
                "expected examples without a histogram row, whose cells a reader would take for "
                f"answers, got examples with one in {files[0]}; make them without --histogram_row"
            )


def build_model(config: SpanReadingTrainingConfig) -> SpanReading:
    """The model of a config with its first weights, which follow from keras's random seed."""
    with first_weights(config):
        model = SpanReading(config.encoder, config.task)
        model.build()
    return model


def make_task(
    config: SpanReadingTrainingConfig, data_dir: str | pathlib.Path, model: SpanReading
) -> Task:
    """The model's training on the train split, with evaluation on the dev split.

    The evaluation gives, over the examples with a labelled answer, "loss" and "span_accuracy": how
    often the best span is one of those labelled, which no answer longer than `max_span_length` can
    be. With classes also "class_accuracy", over all examples.
    """
    data_dir = pathlib.Path(data_dir)
    evaluate = _dev_evaluation(config, data_dir, model)
    return examples_task(config, data_dir, model, evaluate, BEST_BY)


def _dev_evaluation(
    config: SpanReadingTrainingConfig, data_dir: pathlib.Path, model: SpanReading
) -> Callable[[], dict[str, float]]:
    examples = read_records(split_files(data_dir, "dev"), skip_corrupt=config.skip_corrupt)
    batches = batch_by_length(examples, config.eval_batch_size, config.length_buckets)

    predict = predict_function(model)

    def evaluate() -> dict[str, float]:
        losses, hits, class_hits = list[float](), list[bool](), list[bool]()
        for batch in batches:
            outputs, example_loss = predict(batch)
            cells = body_cells(batch["row_ids"], batch["column_ids"])
            labels = batch["label_ids"]
            answers = answer_spans(labels, cells, config.task.max_span_length).numpy()  # [B, N]
            best = np.argmax(outputs["span_logits"], axis=-1)  # [B]
            labelled = labels.numpy().any(axis=1)
            losses.extend(example_loss.numpy()[labelled])
            hits.extend(np.take_along_axis(answers, best[:, None], axis=1)[labelled, 0])
            if config.task.num_classes:
                classes = np.argmax(outputs["class_logits"], axis=-1)
                class_hits.extend(classes == batch[_CLASS].numpy()[:, 0])
        if not hits:
            raise ValueError(f"expected labelled answers in the dev split of {data_dir}, got none")
        scores = {"loss": float(np.mean(losses)), BEST_BY: float(np.mean(hits))}
        if class_hits:
            scores["class_accuracy"] = float(np.mean(class_hits))
        return scores

    return evaluate
