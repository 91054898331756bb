"""Reading of spans as a task of the training loop, from a folder of records.

The records are those of experiments/create_data.py --label_answer_spans.

Shapes: B batch, N spans.
"""

import pathlib

import numpy as np

from mate_tf.tables.conversion_file import has_conversion, read_conversion
from mate_tf.tables.records import has_histogram_row
from mate_tf.tables.splits import split_files
from mate_tf.tasks.span_reading import SpanReading
from mate_tf.tasks.spans import answer_spans, body_cells
from mate_tf.training.config import SpanReadingTrainingConfig
from mate_tf.training.examples import (
    SPLITS,
    Evaluation,
    check_examples,
    dev_batches,
    predict_function,
    records_conversion,
)

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


def dev_evaluation(
    config: SpanReadingTrainingConfig, data_dir: str | pathlib.Path, model: SpanReading
) -> Evaluation:
    """An evaluation on the dev split.

    It gives, over the examples with a labelled answer, "loss" and "span_accuracy": how often the
    best span is one of those labelled, which no answer longer than `max_span_length` can be. With
    classes also "class_accuracy", over all examples.
    """
    batches = dev_batches(config, data_dir)
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
        scores = {"loss": float(np.mean(losses)), "span_accuracy": float(np.mean(hits))}
        if class_hits:
            scores["class_accuracy"] = float(np.mean(class_hits))
        return scores

    return Evaluation(evaluate, "span_accuracy")
