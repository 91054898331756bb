"""Turns questions and tables into examples, or says why there is none."""

import dataclasses
import itertools
import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
from absl import logging

from mate_tf.datasets.supervision import SupervisionError, derived, found_by_value
from mate_tf.datasets.tasks import Task
from mate_tf.features.builder import QUESTIONS_AT_ONCE, ConversionReport, FeatureBuilder
from mate_tf.features.config import ConversionError
from mate_tf.records.batches import bucket_length
from mate_tf.tables.linked_table import LinkedTable
from mate_tf.tables.table import Question, Table

_LEFT_OUT, _KEPT_WITH = "left out: ", "kept with "
_TOO_LARGE = ("too long", "too many columns", "too many rows")
_CUT = ("columns pruned", "rows dropped", "cells trimmed")
_MESSAGES_KEPT = 3
_REMEDIES = {
    "no answer given": "add the answer's text to 'answers'",
    "answer not found": "write the answer as a cell of the table has it, or give answer_coordinates"
    " or answer_number",
    "some answers not found": "write each answer as a cell of the table has it, or give"
    " answer_coordinates",
    "ambiguous answer": "give answer_coordinates, which say the cells that are meant",
    "answer cut off": "raise --max-seq-length, or leave rows or columns out of the table",
    "too long": "raise --max-seq-length, or set --drop-rows-to-fit, --trim-cells or"
    " --prune-columns",
    "too many rows": "set --drop-rows-to-fit, or divide the table",
    "too many columns": "leave columns out of the table",
}


class Outcome(NamedTuple):
    """The result of converting a question and its table.

    Attributes:
        table, question: None for a sentence without one; with the supervision that was found.
        features: by name, as records hold them; None if the question was left out.
        reason: why it was left out (see ConversionError, SupervisionError); "" if it was not.
        message: the same in a sentence, with the names of table and question and the limit.
        notes: if the question was kept, what its example or its table lacks.
        num_tokens: tokens of the sequence, without padding; 0 if the question was left out.
    """

    table: Table | None
    question: Question
    features: Mapping[str, np.ndarray] | None = None
    reason: str = ""
    message: str = ""
    notes: tuple[str, ...] = ()
    num_tokens: int = 0


def convert_all(
    task: Task, builder: FeatureBuilder, pairs: Iterable[tuple[Any, Question]], is_training: bool
) -> Iterator[Outcome]:
    """Finds the answers in the tables and makes the features, question by question.

    It reads a few hundred pairs ahead, which the builder tokenizes together. Training leaves out a
    question whose answer is not in the table, is in too many cells, or is cut off; otherwise the
    question is kept and the outcome notes it.
    """
    pairs = iter(pairs)
    original = builder.config.original_conversion
    while chunk := list(itertools.islice(pairs, QUESTIONS_AT_ONCE)):
        found = [_supervised(task, *pair, is_training, original) for pair in chunk]
        if builder.config.label_answer_spans:  # an answer may be a part of a cell's text
            found = [(table, question, None) for table, question, _ in found]
        examples = builder.build_all(
            ((table, question) for table, question, error in found if not (error and is_training)),
            require_answers=is_training,
        )
        for (item, before), (table, question, error) in zip(chunk, found, strict=True):
            example = error if error and is_training else next(examples)
            if isinstance(example, ConversionError):
                logging.debug("left out: %s", example)
                yield Outcome(table, question, reason=example.reason, message=str(example))
                continue
            notes = [f"no labels ({error.reason})"] if error else []
            if not original and found_by_value(item, before, question):
                notes.append("answers found by value")
            notes += _operator(item, before, question)
            notes += _lacking(example.report, item)
            num_tokens = example.report.num_tokens
            yield Outcome(table, question, example.features, "", "", tuple(notes), num_tokens)


def _supervised(
    task: Task, item: Any, question: Question, is_training: bool, original: bool
) -> tuple[Table | None, Question, SupervisionError | None]:
    """The table, and the question with the cells of its answer, or the reason why it has none."""
    error = None
    if task.supervise is not None:
        try:
            question = task.supervise(item, question, strict=is_training, original=original)
        except SupervisionError as reason:
            error = reason
    table = task.expand(item, question, original=original) if task.expand else item
    return table, question, error


def _operator(table: Any, before: Question, after: Question) -> list[str]:
    """Names the operator of a question, and what it was derived from."""
    if not after.aggregation or not isinstance(table, Table):
        return []
    derivation = None if before.aggregation else derived(table, before)
    how = "given" if before.aggregation else derivation and derivation.how
    return [f"operator {after.aggregation} ({how})"] if how else []


def _lacking(report: ConversionReport, item: Any) -> list[str]:
    """Names what an example and its table's passages lack."""
    cut = (report.columns_dropped, report.rows_dropped, report.tokens_trimmed)
    lacks = dict(zip(_CUT, map(bool, cut), strict=True))
    lacks["answers cut off"] = bool(report.answers_dropped)
    if isinstance(item, LinkedTable):
        lacks["links without a passage"] = bool(item.dead_links)
        texts = (passage.text.strip() for passage in item.distinct_passages())
        lacks["passages without text"] = not all(texts)
    return [note for note, is_so in lacks.items() if is_so]


def left_out_line(outcome: Outcome) -> str:
    """The line of {split}.left_out.jsonl on a question that was left out."""
    record = {
        "question_id": outcome.question.question_id,
        "question": outcome.question.text,
        "reason": outcome.reason,
        "message": outcome.message,
        "remedy": _REMEDIES[outcome.reason],
    }
    return json.dumps(record) + "\n"


def outcome_counts(outcome: Outcome) -> Counter[str]:
    """The counts that an outcome adds to a Summary."""
    if outcome.features is None:
        return Counter({"read": 1, _LEFT_OUT + outcome.reason: 1})
    counts = kept_counts(outcome.num_tokens, len(outcome.features["input_ids"]))
    if not any(note in _CUT for note in outcome.notes):
        counts["whole"] = 1
    counts.update(_KEPT_WITH + note for note in outcome.notes)
    return counts


def kept_counts(num_tokens: int, length: int) -> Counter[str]:
    """The counts of an example with so many tokens, padded to a length."""
    by_length = bucket_length(num_tokens, length)
    counts = {"read": 1, "kept": 1, "tokens": num_tokens, "positions": length}
    return Counter(counts | {"positions by length": by_length})


@dataclasses.dataclass
class Summary:
    """The sums of a split's `outcome_counts`; its text is the report."""

    unit: str = "questions"
    counts: Counter[str] = dataclasses.field(default_factory=Counter)
    left_out_file: str = ""
    _messages: defaultdict[str, list[str]] = dataclasses.field(
        default_factory=lambda: defaultdict(list), init=False
    )

    @property
    def num_kept(self) -> int:
        return self.counts["kept"]

    @property
    def num_sized(self) -> int:
        """How many tables were checked against the limits, including those that are too large."""
        return self.num_kept + sum(self.counts[_LEFT_OUT + reason] for reason in _TOO_LARGE)

    def add(self, outcome: Outcome) -> None:
        self.counts.update(outcome_counts(outcome))
        if outcome.message and len(self._messages[outcome.reason]) < _MESSAGES_KEPT:
            self._messages[outcome.reason].append(outcome.message)

    def __str__(self) -> str:
        lines = [f"{self.num_kept} of {self.counts['read']} {self.unit} kept"]
        kept_with = []
        for name, count in self.counts.most_common():
            if name.startswith(_KEPT_WITH):
                kept_with.append(f"  {name}: {count}")
            elif name.startswith(_LEFT_OUT):
                reason = name.removeprefix(_LEFT_OUT)
                lines.append(f"  left out: {count} {reason}")
                lines += [f"    {message}" for message in self._messages[reason]]
        if self.left_out_file and len(lines) > 1:
            lines.append(f"  all that were left out, with remedies: {self.left_out_file}")
        lines += kept_with
        if self.num_kept:
            full, by_length = (
                1 - self.counts["tokens"] / self.counts[name]
                for name in ("positions", "positions by length")
            )
            lines.append(f"  padding: {full:.0%} of the records, {by_length:.0%} batched by length")
        return "\n".join(lines)
