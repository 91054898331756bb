"""Examples, batches and models of a run that trains on a folder of records, and its measures.

The folder is from `mate-tf data`, or it is one of TAPAS's release, with a vocabulary beside it
(records/splits.py). Table questions have checks and measures of their own (table_qa.py).

Shapes: B batch, S sequence, N examples or spans, P predictions.
"""

import dataclasses
import itertools
import pathlib
import statistics
import timeit
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
from absl import logging

from mate_tf.answers.inference import divided
from mate_tf.dataclass_json import differences
from mate_tf.evaluation.predictions import NUM_SHOWN, ShownAnswer, answers_table, confusion_table
from mate_tf.features.config import FeatureConfig
from mate_tf.features.token_features import PART_OF_SPEECH, TokenFeatures
from mate_tf.features.wordpiece import Wordpiece
from mate_tf.models import make_model
from mate_tf.models.classification import SequenceClassification
from mate_tf.models.encoder_task import EncoderTask
from mate_tf.models.masked_lm import MaskedLanguageModel
from mate_tf.models.span_reading import SpanReading, answer_spans, body_cells
from mate_tf.paths import as_path
from mate_tf.records.batches import batch_by_length, read_records, training_batches
from mate_tf.records.conversion_file import (
    Conversion,
    check_vocabulary,
    file_sha256,
    has_conversion,
    read_conversion,
    write_conversion,
)
from mate_tf.records.records import check_records, name_example, schemas
from mate_tf.records.splits import has_questions, read_questions, split_files
from mate_tf.task_configs import SpanReadingConfig, span_bounds
from mate_tf.training.config import (
    ClassificationTrainingConfig,
    MaskedLMTrainingConfig,
    RunConfig,
    SpanReadingTrainingConfig,
    TableQATrainingConfig,
    TrainingConfig,
)
from mate_tf.training.distribution import Batch, check_batch_size, on_workers
from mate_tf.training.trainer import Task

SPLITS = ("train", "dev")
_FILLING = b"EMPTY-0_0"  # the release's examples that fill up the last batch of a test split
_SAMPLED = 200  # examples whose length is looked at
_CLASS = "classification_class_index"
_MASKED = ("masked_lm_positions", "masked_lm_ids", "masked_lm_weights", "is_random_table")
# Of each split and length, since a corpus may take hours to read.
_EXAMPLES_CHECKED = 20_000


def check_examples(
    config: TrainingConfig,
    data_dir: str | pathlib.Path,
    task: str,
    features: Collection[str],
    check_example: Callable[[str, tf.train.Example, str], None] | None = None,
    at_most: int | None = None,
) -> None:
    """Refuses a folder that this config cannot be trained on: FileNotFoundError or ValueError.

    Examples need the features beside the token features; `task` names them in messages.
    `check_example` raises ValueError for an example that does not suit the task; it gets the split,
    the example and its place. Of each split `at_most` examples are checked, or all.
    """
    data_dir = as_path(data_dir)
    if not (data_dir / "vocab.txt").is_file():
        raise FileNotFoundError(
            f"expected vocab.txt in {data_dir}; `mate-tf data` writes such a folder, and beside "
            "records of TAPAS's release belongs the vocabulary that they were made with"
        )
    needed = {*features, *(["table_id_hash"] if config.perturbed_copies else [])}
    vocab_size = config.encoder.vocab_size
    check_vocabulary(data_dir)
    is_of_release = not has_conversion(data_dir)
    for split, files in record_files(config, data_dir).items():
        if is_of_release:
            more = f" and {len(files) - 1} more" if files[1:] else ""
            logging.info("TAPAS's release: the split %s is %s%s", split, files[0], more)
        schema, _ = schemas(files, config.skip_corrupt)
        if missing := ", ".join(sorted(needed - set(schema))):
            raise ValueError(f"expected examples of {task} in {files[0]}, which lack {missing}")
        if config.encoder.attention.is_grammar_guided and PART_OF_SPEECH not in schema:
            raise ValueError(
                f"expected {PART_OF_SPEECH} in {files[0]} for architecture "
                f"{config.encoder.attention.architecture!r}; make the examples with --tagger"
            )
        (length,) = schema["input_ids"].shape
        if length != config.max_seq_length:
            raise ValueError(
                f"expected examples of {config.max_seq_length} tokens (max_seq_length), got "
                f"{length} in {files[0]}"
            )

        def check(example: tf.train.Example, where: str, split: str = split) -> None:
            ids = example.features.feature["input_ids"].int64_list.value
            check_range("input_ids", ids, vocab_size, example, where, "encoder.vocab_size")
            if check_example is not None:
                check_example(split, example, where)

        check_records(files, config.skip_corrupt, check, at_most)
    Wordpiece(data_dir / "vocab.txt").check_fits(vocab_size)


def record_files(config: TrainingConfig, data_dir: str | pathlib.Path) -> dict[str, list[str]]:
    """The record files of each split; errors as `split_files`."""
    return {split: split_files(data_dir, config.record_name(split)) for split in SPLITS}


def check_range(
    name: str,
    values: Sequence[int],
    limit: int,
    example: tf.train.Example,
    where: str,
    option: str = "",  # that sets the limit
) -> None:
    """ValueError for an example with a value of a feature below 0, or not below a limit."""
    if values and not (min(values) >= 0 and max(values) < limit):
        wrong = max(values) if min(values) >= 0 else min(values)
        raise ValueError(
            f"expected {name} from 0 to {limit - 1}{option and f' ({option})'}, got {wrong} "
            f"{name_example(example, where)}"
        )


def records_conversion(config: TrainingConfig, data_dir: str | pathlib.Path) -> Conversion:
    """How accepted records were made; where a folder does not say, as the release does it."""
    if has_conversion(data_dir):
        return read_conversion(data_dir)
    features = FeatureConfig(config.max_seq_length, trim_cells=True, original_conversion=True)
    vocabulary = file_sha256(as_path(data_dir) / "vocab.txt")
    return Conversion(None, features, None, vocabulary)


def save_conversion(
    config: TrainingConfig, data_dir: str | pathlib.Path, model_dir: str | pathlib.Path
) -> None:
    """Writes to a run's folder how the records were made; ValueError if it says otherwise."""
    here = records_conversion(config, data_dir)
    if has_conversion(model_dir):
        there = read_conversion(model_dir)
        if different := differences(dataclasses.asdict(there), dataclasses.asdict(here)):
            raise ValueError(
                f"expected records made like those of the run in {model_dir}, got others in "
                f"{data_dir}: {', '.join(different)}; choose another folder for the run or make "
                "the records again"
            )
        return
    write_conversion(model_dir, here)


def build_model(config: RunConfig) -> Any:
    """The model of a config, with first weights that follow from Keras's random seed."""
    model = make_model(config.encoder, config.task, config.dtype)
    model.encoder.recompute = config.recompute
    return model


class Evaluation(NamedTuple):
    """How a model is measured while it trains; as `Task` says."""

    evaluate: Callable[[], Mapping[str, float | str]]
    best_by: str


def make_task(
    config: TrainingConfig,
    data_dir: str | pathlib.Path,
    model: EncoderTask,
    evaluation: Evaluation,
    known: str | None = None,
) -> Task:
    """The model's training on the train split.

    Batches of a file of known questions take config.known_share of the turns.
    """
    check_batch_size(config.batch_size, config.gradient_accumulation_steps)
    share = config.known_share if known and isinstance(config, TableQATrainingConfig) else 0.0

    def train_dataset(skip: int, file: str | None = None) -> tf.data.Dataset:
        batches = training_batches(
            file or split_files(data_dir, config.record_name("train")),
            config.batch_size,
            config.seed,
            config.length_buckets,
            skip=skip,
            skip_corrupt=config.skip_corrupt,
            perturbed_copies=config.perturbed_copies,
        )
        return batches.map(without_texts)

    def with_known(step: int) -> tf.data.Dataset:
        num_known = int(share * step)

        def turn(number: tf.Tensor) -> tf.Tensor:
            number = tf.cast(number, tf.float64)
            return tf.cast(share * (number + 1), tf.int64) - tf.cast(share * number, tf.int64)

        datasets = [train_dataset(step - num_known), train_dataset(num_known, known)]
        turns = tf.data.Dataset.counter(step).map(turn)
        return tf.data.Dataset.choose_from_datasets(datasets, turns)

    batches = with_known if share else train_dataset
    return Task(model, batches, evaluation.evaluate, evaluation.best_by, share)


def dev_examples(config: TrainingConfig, data_dir: str | pathlib.Path) -> tf.data.Dataset:
    """The examples of the dev split, without those that fill up the last batch of the release."""
    files = split_files(data_dir, config.record_name("dev"))
    examples = read_records(files, config.skip_corrupt)
    if "question_id" not in examples.element_spec:
        return examples
    return examples.filter(lambda features: features["question_id"][0] != _FILLING)


def dev_batches(
    config: TrainingConfig,
    data_dir: str | pathlib.Path,
    question_ids: Collection[str] | None = None,
) -> tf.data.Dataset:
    """The examples of the dev split in batches, all or those of some questions."""
    examples = dev_examples(config, data_dir)
    if question_ids is not None:
        ids = tf.constant([id_.encode() for id_ in question_ids])
        examples = examples.filter(lambda features: tf.reduce_any(features["question_id"] == ids))
    return batch_by_length(examples, config.eval_batch_size, config.length_buckets)


def joined(batches: Iterable[Mapping[str, list]]) -> dict[str, list]:
    """The lists of all batches, one after the other, by their names."""
    lists: dict[str, list] = defaultdict(list)
    for batch in batches:
        for name, values in batch.items():
            lists[name] += values
    return lists


def expected_seconds(config: TrainingConfig, data_dir: str | pathlib.Path) -> float:
    """About how long training takes on this device: within a factor of two, measured on CPUs.

    A step took four times its bare matrix products on two CPU cores, and each length of batches ten
    seconds to compile. The products of one token are timed here.
    """
    examples = read_records(split_files(data_dir, config.record_name("train")), config.skip_corrupt)
    lengths = [int(tf.reduce_sum(e["input_mask"])) for e in examples.take(_SAMPLED)]
    ends = (*config.length_buckets, config.max_seq_length)
    padded = [next(end for end in ends if length <= end) for length in lengths]
    tokens = config.batch_size * sum(padded) / len(padded)
    sizes = config.encoder
    width, inner, num_tokens = sizes.hidden_size, sizes.intermediate_size, 2_048
    dtype = tf.bfloat16 if config.dtype == "mixed_bfloat16" else tf.float32
    left, right = tf.ones([num_tokens, width], dtype), tf.ones([width, inner], dtype)
    tf.matmul(left, right)[0, 0].numpy()  # the first one takes longer
    times = timeit.repeat(lambda: tf.matmul(left, right)[0, 0].numpy(), number=1, repeat=5)
    products = 2 + 4 * width / inner  # of this size: two of them inner, four square ones
    # Forward and backward.
    per_token = 3 * sizes.num_layers * products * statistics.median(times) / num_tokens
    return 10 * len(set(padded)) + 4 * config.num_steps * tokens * per_token


def predict_function(
    model: EncoderTask,
) -> Callable[[Batch], tuple[Mapping[str, tf.Tensor], tf.Tensor]]:
    """From a batch to the model's outputs and the losses of its examples, float [B]."""

    def predict(batch: Batch) -> tuple[Mapping[str, tf.Tensor], tf.Tensor]:
        outputs = model(TokenFeatures.from_dict(batch), training=False)
        return outputs, model.compute_task_loss(batch, outputs)["example_loss"]

    on_replicas = divided(predict)
    return lambda batch: on_replicas(without_texts(batch))


def question_texts(batch: Batch, wordpiece: Wordpiece) -> list[str]:
    """The questions or sentences of a batch, B texts, joined from their pieces."""
    ids = batch["input_ids"].numpy()  # [B, S]
    is_text = batch["input_mask"].numpy().astype(bool) & (batch["segment_ids"].numpy() == 0)
    return [piece_text(pieces[mask], wordpiece) for pieces, mask in zip(ids, is_text, strict=True)]


def piece_text(pieces: Iterable[int], wordpiece: Wordpiece) -> str:
    """Pieces joined to words, without [CLS] and [SEP]."""
    texts = (wordpiece.vocabulary[piece] for piece in pieces)
    return " ".join(text for text in texts if text not in ("[CLS]", "[SEP]")).replace(" ##", "")


def without_texts(batch: Batch) -> dict[str, tf.Tensor]:
    """Features that a model may use: no ids as text."""
    return {name: values for name, values in batch.items() if values.dtype != tf.string}


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
        return {
            "losses": example_loss.numpy().tolist(),
            "predictions": predictions.tolist(),
            "golds": labels.tolist(),
            "shown": shown,
        }

    def evaluate() -> dict[str, float | str]:
        lists = joined(on_workers(batches, measured))
        predictions, golds = lists["predictions"], lists["golds"]
        return {
            "loss": float(np.mean(lists["losses"])),
            **classification_metrics(predictions, golds),
            "confusion": _confusion(golds, predictions, names),
            "answers": answers_table(lists["shown"][:NUM_SHOWN]),
        }

    return Evaluation(evaluate, "accuracy")


def _confusion(golds: Sequence[int], predictions: Sequence[int], names: Sequence[str]) -> str:
    """Which class was taken for which, from their indices."""
    right, found = ([names[index] for index in indices] for indices in (golds, predictions))
    return confusion_table(right, found, tuple(names))


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
        shown = _shown_answers(config.task, batch, best, is_hit, wordpiece)
        result = {
            "losses": example_loss.numpy()[labelled].tolist(),
            "hits": is_hit[labelled].tolist(),
            "shown": [*itertools.islice(itertools.compress(shown, labelled), NUM_SHOWN)],
        }
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
            names = [*map(str, range(config.task.num_classes))]
            results["confusion"] = _confusion(gold_classes, classes, names)
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
