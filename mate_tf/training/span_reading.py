"""Training a reader of spans on a folder of records with labelled spans.

`mate-tf data --label-answer-spans` makes such records.

Shapes: B batch, N spans.
"""

import itertools
import pathlib
from collections.abc import Iterator

import numpy as np

from mate_tf.evaluation.markdown import NUM_SHOWN, ShownAnswer, answers_table, confusion_table
from mate_tf.features.wordpiece import Wordpiece
from mate_tf.models.span_reading import (
    SpanReading,
    SpanReadingConfig,
    answer_spans,
    body_cells,
    span_bounds,
)
from mate_tf.records.conversion_file import has_conversion, read_conversion
from mate_tf.training.config import SpanReadingTrainingConfig
from mate_tf.training.examples import (
    Batch,
    Evaluation,
    check_examples,
    dev_batches,
    piece_text,
    predict_function,
    question_texts,
    records_conversion,
)

_CLASS = "classification_class_index"


def check_data(config: SpanReadingTrainingConfig, data_dir: str | pathlib.Path) -> None:
    """As `check_examples`; ValueError also for labels of whole cells or a histogram row."""
    features = ["label_ids", *([_CLASS] if config.task.num_classes else [])]
    check_examples(config, data_dir, "reading", features)
    if has_conversion(data_dir) and not read_conversion(data_dir).features.label_answer_spans:
        raise ValueError(
            f"expected examples in {data_dir} whose labels are the answers' spans, got labels of "
            "whole cells; make them with --label_answer_spans"
        )
    if records_conversion(data_dir, config.skip_corrupt).features.histogram_row:
        raise ValueError(
            "expected examples without a histogram row, whose cells a reader would take for "
            f"answers, got examples with one in {data_dir}; make them without --histogram_row"
        )


def dev_evaluation(
    config: SpanReadingTrainingConfig, data_dir: str | pathlib.Path, model: SpanReading
) -> Evaluation:
    """An evaluation on the dev split.

    Over the examples with a labelled answer it gives "loss" and "span_accuracy": how often the best
    span is labelled, which an answer longer than `max_span_length` can never be. With classes it
    gives "class_accuracy" over all examples, and the text "confusion", which class was taken for
    which. The text "answers" shows the first few.
    """
    batches = dev_batches(config, data_dir)
    predict = predict_function(model)
    wordpiece = Wordpiece(pathlib.Path(data_dir) / "vocab.txt")

    def evaluate() -> dict[str, float | str]:
        losses, hits = list[float](), list[bool]()
        classes, gold_classes = list[int](), list[int]()
        shown = list[ShownAnswer]()
        for batch in batches:
            outputs, example_loss = predict(batch)
            cells = body_cells(batch["row_ids"], batch["column_ids"])
            labels = batch["label_ids"]
            answers = answer_spans(labels, cells, config.task.max_span_length).numpy()  # [B, N]
            best = np.argmax(outputs["span_logits"], axis=-1)  # [B]
            labelled = labels.numpy().any(axis=1)
            losses.extend(example_loss.numpy()[labelled])
            is_hit = np.take_along_axis(answers, best[:, None], axis=1)[:, 0]  # [B]
            hits.extend(is_hit[labelled])
            if len(shown) < NUM_SHOWN:
                of_batch = _shown_answers(config.task, batch, best, is_hit, wordpiece)
                shown.extend(itertools.compress(of_batch, labelled))
            if config.task.num_classes:
                classes.extend(np.argmax(outputs["class_logits"], axis=-1))
                gold_classes.extend(batch[_CLASS].numpy()[:, 0])
        if not hits:
            raise ValueError(f"expected labelled answers in the dev split of {data_dir}, got none")
        results: dict[str, float | str] = {
            "loss": float(np.mean(losses)),
            "span_accuracy": float(np.mean(hits)),
            "answers": answers_table(shown[:NUM_SHOWN]),
        }
        if classes:
            names = list(map(str, range(config.task.num_classes)))
            results["class_accuracy"] = float(np.mean(np.equal(classes, gold_classes)))
            golds, predicted = ([names[i] for i in of_all] for of_all in (gold_classes, classes))
            results["confusion"] = confusion_table(golds, predicted, names)
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
