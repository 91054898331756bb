"""Training table question answering on a folder of records (mate_tf/training/examples.py).

dev.jsonl, or its shards, holds the questions of the dev split with their tables and answers.
Without it the model is measured on the records alone.

Shapes: B batch, S sequence.
"""

import contextlib
import functools
import gzip
import itertools
import pathlib
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import tensorflow as tf
from absl import logging

from mate_tf.answers.answer import Answer
from mate_tf.answers.decoding import Asked, decode_cells
from mate_tf.datasets.json_lines import read_json_lines
from mate_tf.datasets.tasks import TASKS, find_task
from mate_tf.evaluation.predictions import NUM_SHOWN, ShownAnswer, answers_table, confusion_table
from mate_tf.evaluation.scoring import is_correct, score
from mate_tf.features.builder import FeatureBuilder
from mate_tf.features.token_features import TokenFeatures
from mate_tf.features.wordpiece import Wordpiece
from mate_tf.models.table_qa import TableQuestionAnswering
from mate_tf.paths import as_path
from mate_tf.records.conversion import convert_all
from mate_tf.records.conversion_file import Conversion
from mate_tf.records.records import name_example
from mate_tf.records.splits import has_questions, read_questions, split_file, split_writer
from mate_tf.tables.operators import ABSENT, OPERATORS, operators_by_id
from mate_tf.tables.part_of_speech import load_tagger
from mate_tf.tables.table import Question, Table
from mate_tf.task_configs import TableQAConfig
from mate_tf.training.config import TableQATrainingConfig
from mate_tf.training.distribution import Batch, on_workers
from mate_tf.training.examples import (
    Evaluation,
    check_examples,
    dev_batches,
    dev_examples,
    joined,
    piece_text,
    predict_function,
    question_texts,
    records_conversion,
)
from mate_tf.weights.folder import KNOWN_QUESTIONS

_NUMBERS = ("answer", "numeric_values", "numeric_values_scale")
_TASK_FEATURES = ("question_id", "label_ids", "aggregation_function_id", *_NUMBERS)


def check_table_qa(config: TableQATrainingConfig, data_dir: str | pathlib.Path) -> None:
    """As `check_examples`, with further reasons for a ValueError.

    These are a histogram row with `cell_cross_entropy`; an unknown aggregation; an example without
    the labels that training needs, unless `mask_examples_without_labels` makes it a warning; and an
    example of the dev split whose question is missing.
    """
    dev_questions = None
    if has_questions(data_dir, "dev"):
        pairs = read_questions(data_dir, "dev")
        dev_questions = frozenset(question.question_id for _, question in pairs)
    masked: list[str] = []
    check_example = functools.partial(_check_example, config.task, dev_questions, masked)
    check_examples(config, data_dir, "table question answering", _TASK_FEATURES, check_example)
    if masked:
        logging.warning(
            "training examples without a labelled cell, from which no selection is learned "
            "(task.mask_examples_without_labels): %d, the first %s",
            len(masked),
            masked[0],
        )
    has_row = records_conversion(config, data_dir).features.histogram_row
    if has_row and config.task.cell_cross_entropy:
        raise ValueError(
            "expected examples without a histogram row with task.cell_cross_entropy, whose "
            f"softmax would take in its cells, got examples with one in {data_dir}; make them "
            "without --histogram_row"
        )


def _check_example(
    task: TableQAConfig,
    dev_questions: frozenset[str] | None,
    masked: list[str],
    split: str,
    example: tf.train.Example,
    where: str,
) -> None:
    """As `check_table_qa`; adds the names of training examples without labels to `masked`."""
    features = example.features.feature
    (question_id,) = features["question_id"].bytes_list.value
    if split == "dev" and dev_questions and question_id.decode() not in dev_questions:
        raise ValueError(
            f"expected examples of the {len(dev_questions)} questions in dev.jsonl, got another "
            f"{name_example(example, where)}; make records and questions together"
        )
    is_known = any(features["aggregation_is_known"].int64_list.value)
    if task.operators and (is_known or not task.use_answer_as_supervision):
        (index,) = features["aggregation_function_id"].int64_list.value
        operator = dict(enumerate(operators_by_id())).get(index)
        if operator not in task.operators:
            raise ValueError(
                "expected an aggregation_function_id of an operator of the task, "
                f"{', '.join(task.operators)}, got {index} ({operator or 'unknown'}) "
                f"{name_example(example, where)}; set task.operators={','.join(OPERATORS)} for all"
            )
        if not OPERATORS[operator].needs_cells:
            return
    if split != "train":
        return
    has_number = np.isfinite(features["answer"].float_list.value).any()
    is_computed = task.is_weakly_supervised and has_number and not is_known
    if is_computed or any(features["label_ids"].int64_list.value):
        return
    if task.mask_examples_without_labels:
        masked.append(name_example(example, where))
    elif task.needs_labels:
        raise ValueError(
            f"expected a labelled cell to select, got none {name_example(example, where)}; with "
            "task.mask_examples_without_labels selection is not learned from such questions, with "
            "task.allow_empty_column_selection they select nothing"
        )


def table_qa_evaluation(
    config: TableQATrainingConfig, data_dir: str | pathlib.Path, model: TableQuestionAnswering
) -> Evaluation:
    """An evaluation on the dev split, with the gold answers as previous answers.

    It gives "loss" over the examples with labels, if any, and the scores of the data set's task
    (mate_tf/evaluation/scoring.py) over the questions with a gold answer. A question without an
    example counts as wrong. Without dev.jsonl the scores are "cell_accuracy", how often the cells
    are exactly the labelled ones, and "aggregation_accuracy", how often the likeliest operator is
    right where the records tell it. Texts are "answers", the first few, and "confusion" of known
    aggregations. ValueError if no question of the dev split has a gold answer.
    """
    limit = config.eval_questions
    from_records = not has_questions(data_dir, "dev")
    if from_records:
        logging.info(
            "no questions beside the records (dev.jsonl in %s): loss, cell_accuracy and "
            "aggregation_accuracy are those of the records alone, and cells are made of wordpieces",
            data_dir,
        )
        read = _questions_of_records(config, data_dir)
    else:
        read = read_questions(data_dir, "dev")
    asked = {pair[1].question_id: pair for pair in itertools.islice(read, limit)}
    pairs = [pair for pair in asked.values() if pair[1].answers or pair[1].aggregation == ABSENT]
    if from_records and not any(question.answer_coordinates for _, question in pairs):
        pairs = []
    if not pairs:
        raise ValueError(
            f"expected questions with answers to evaluate on, got none (split 'dev' in {data_dir})"
        )
    batches = dev_batches(config, data_dir, None if limit is None else asked.keys())
    predict = predict_function(model)
    conversion = records_conversion(config, data_dir)
    task, histogram_row = conversion.task or "JSONL", conversion.features.histogram_row

    def measured(batch: Batch) -> dict[str, Any]:
        outputs, example_loss = predict(batch)
        # Without a labelled cell or a number there is nothing to measure.
        labelled = batch["label_ids"].numpy().any(axis=1)
        needs_labels = config.task.needs_labels or not config.task.operators
        if config.task.is_weakly_supervised or not needs_labels:
            labelled |= np.isfinite(batch["answer"].numpy()[:, 0])
        keys = [key.decode() for key in batch["question_id"].numpy().flat]
        tables, questions = zip(*(asked[key] for key in keys), strict=True)
        features, texts = TokenFeatures.from_dict(batch), [one.text for one in questions]
        question_batch = Asked(tables, features, histogram_row=histogram_row, questions=texts)
        answers = [one.to_dict() for one in decode_cells(config.task, outputs, question_batch)]
        losses = example_loss.numpy()[labelled].tolist()
        result = {"losses": losses, "keys": keys, "answers": answers}
        if "aggregation_logits" in outputs:
            likeliest = np.argmax(outputs["aggregation_logits"], axis=-1)  # [B]
            result["operators"] = [config.task.operators[index] for index in likeliest]
        return result

    def evaluate() -> dict[str, float | str]:
        ids = [question.question_id for _, question in pairs]
        predictions = dict.fromkeys(ids, Answer(answered=False, error="has no example"))
        lists = joined(on_workers(batches, measured))
        losses, keys = lists["losses"], lists["keys"]
        answers = zip(keys, map(Answer.from_dict, lists["answers"]), strict=True)
        predictions |= {key: answer for key, answer in answers if key in predictions}
        operators = dict(zip(keys, lists["operators"], strict=False))
        loss = {"loss": float(np.mean(losses))} if losses else {}
        texts = {"answers": _shown_answers(task, predictions, pairs[:NUM_SHOWN])}
        if config.task.operators:
            texts |= _aggregation_confusion(predictions, pairs)
        if from_records:
            return loss | _record_scores(predictions, operators, pairs) | texts
        return loss | score(task, predictions, pairs) | texts

    if from_records:
        return Evaluation(evaluate, "cell_accuracy")
    if find_task(task).in_sequences:
        return Evaluation(evaluate, "all")
    return Evaluation(evaluate, "hits_at_1" if find_task(task).is_linked else "denotation_accuracy")


@contextlib.contextmanager
def known_records(conversion: Conversion, vocab_file: pathlib.Path) -> Iterator[str]:
    """Yields a temporary file of records of known questions, made like those of a folder.

    Training from the package's model mixes them in, so that it forgets nothing. They were written
    for this project (experiments/demo_data/known_questions.py); each is of a kind that this model
    was trained on. Those that do not fit into a sequence are left out.
    """
    tagger = load_tagger(conversion.tagger) if conversion.tagger else None
    builder = FeatureBuilder(Wordpiece(vocab_file), conversion.features, tagger)
    with tempfile.TemporaryDirectory() as folder:
        questions = pathlib.Path(folder, "known.jsonl")
        questions.write_bytes(gzip.decompress(KNOWN_QUESTIONS.read_bytes()))
        pairs = read_json_lines(questions)
        with split_writer(folder, "known") as write:
            for outcome in convert_all(TASKS["JSONL"], builder, pairs, is_training=True):
                write(outcome)
        yield split_file(folder, "known", ".tfrecord")


def _questions_of_records(
    config: TableQATrainingConfig, data_dir: str | pathlib.Path
) -> Iterator[tuple[Table, Question]]:
    """The dev split's examples as questions about tables, whose texts are joined pieces."""
    wordpiece = Wordpiece(as_path(data_dir) / "vocab.txt")
    for batch in dev_examples(config, data_dir).batch(1):
        example = {name: values[0] for name, values in batch.items()}
        rows, columns, labels, ids = (
            example[name].numpy() for name in ("row_ids", "column_ids", "label_ids", "input_ids")
        )  # [S]
        pieces: dict[tuple[int, int], list[int]] = defaultdict(list)
        for row, column, piece in zip(rows, columns, ids, strict=True):
            pieces[row, column].append(piece)
        height, width = max(rows.max(), 1), max(columns.max(), 1)
        texts = [
            [piece_text(pieces[row, column], wordpiece) for column in range(1, width + 1)]
            for row in range(height + 1)
        ]
        table = Table.from_rows(texts[1:], texts[0])
        cells = sorted(set(zip(rows[labels > 0] - 1, columns[labels > 0] - 1, strict=True)))
        number = float(example["answer"][0])
        has_number = np.isfinite(number)
        is_known = not config.task.is_weakly_supervised
        if "aggregation_is_known" in example:
            is_known = bool(example["aggregation_is_known"][0])
        operator = "NONE" if cells and not has_number else ""
        if is_known:
            operator = operators_by_id()[int(example["aggregation_function_id"][0])]
        answers = [table.rows[row][column] for row, column in cells]
        if has_number:
            answers = [f"{number:g}"]
        key = example["question_id"].numpy()[0].decode()
        text = question_texts(batch, wordpiece)[0]
        yield table, Question(text, key, tuple(answers), tuple(cells), aggregation=operator)


def _record_scores(
    predictions: Mapping[str, Answer],
    operators: Mapping[str, str],
    pairs: Iterable[tuple[Table, Question]],
) -> dict[str, float]:
    hits: dict[str, list[bool]] = defaultdict(list)
    for _, question in pairs:
        key = question.question_id
        if question.answer_coordinates:
            selected = set(predictions[key].coordinates)
            hits["cell_accuracy"].append(selected == set(question.answer_coordinates))
        if question.aggregation and operators:
            hits["aggregation_accuracy"].append(operators.get(key) == question.aggregation)
    return {name: float(np.mean(values)) for name, values in hits.items()}


def _shown_answers(
    task: str, predictions: Mapping[str, Answer], pairs: Iterable[tuple[Table, Question]]
) -> str:
    def shown(question: Question) -> ShownAnswer:
        prediction = predictions[question.question_id]
        says = prediction.text
        if prediction.aggregation != "NONE":
            says = f"{prediction.aggregation}: {says}"
        elif not prediction.answered:
            says = prediction.error or "no answer"
        gold = ", ".join(question.answers)
        is_right = is_correct(task, prediction, question)
        return ShownAnswer(question.text, gold, says, prediction.coordinates, is_right)

    return answers_table(shown(question) for _, question in pairs)


def _aggregation_confusion(
    predictions: Mapping[str, Answer], pairs: Iterable[tuple[Table, Question]]
) -> dict[str, str]:
    known = [
        (question.aggregation or "NONE", predictions[question.question_id])
        for _, question in pairs
        # Without cells the answer may have been computed in an unknown way.
        if question.aggregation or question.answer_coordinates
    ]
    if not known:
        return {}
    golds = [gold for gold, _ in known]
    predicted = [p.aggregation if p.answered or p.absent else "no answer" for _, p in known]
    return {"confusion": confusion_table(golds, predicted, tuple(OPERATORS))}
