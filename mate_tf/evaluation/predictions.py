"""Questions of a file, a model's answers to them, and these in files, by kinds and in tables.

A file of predictions is JSON Lines: of each question, in the data's order, the answer's JSON form
(mate_tf/answers/answer.py) with the question's "id". Tables are in Markdown.
"""

import dataclasses
import itertools
import json
import pathlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from mate_tf.answers.answer import Answer
from mate_tf.datasets.supervision import parse_number
from mate_tf.datasets.tasks import TASKS, find_task
from mate_tf.datasets.wtq import split_question_id
from mate_tf.features.english import normalize_denotation, says
from mate_tf.reading.text_files import complete_text_file, read_json, read_json_values
from mate_tf.records.conversion_file import task_of
from mate_tf.records.splits import QUESTIONS, read_questions
from mate_tf.tables.operators import ABSENT
from mate_tf.tables.table import Question, Table

Pairs = Iterable[tuple[Table, Question]]
Answered = Iterator[tuple[Table, Question, Answer | ValueError]]


class Asked(NamedTuple):
    """The questions of a file with their tables, the name of their reader, and the file's stem."""

    task: str
    split: str
    pairs: list[tuple[Table, Question]]


def read_asked(
    path: str | pathlib.Path, task: str | None = None, limit: int | None = None
) -> Asked:
    """Reads the questions of a JSON Lines file, or of all shards of one, at most `limit`.

    The task is by default what conversion.json beside the file says, or else JSONL.
    FileNotFoundError, or ValueError for another ending, no questions, or a task without tables.
    """
    file = pathlib.Path(path)
    if file.suffix != QUESTIONS:
        raise ValueError(f"expected a {QUESTIONS} file of questions, got {file}")
    task = task or task_of(file.parent)
    if task not in TASKS or not TASKS[task].has_tables:
        known = ", ".join(name for name, reader in TASKS.items() if reader.has_tables)
        raise ValueError(f"expected a task about tables, one of {known}, got {task} ({file})")
    pairs = list(itertools.islice(read_questions(file.parent, file.stem), limit))
    if not pairs:
        raise ValueError(f"expected questions in {file}, found none")
    return Asked(task, file.stem, pairs)


def answer_asked(
    predictor: Any,
    asked: Asked,
    history: str | None = None,
    pairs: Pairs | None = None,
) -> Answered:
    """Yields each table and question with its answer, or with the error why there is none.

    With the history "predicted" the model's own answers come before a question of a sequence, with
    "gold", by default for tasks without sequences, those that the data has. `pairs` are asked in
    place of those of `asked`.
    """
    pairs = asked.pairs if pairs is None else pairs
    history = history or ("predicted" if find_task(asked.task).in_sequences else "gold")
    if history == "predicted":
        return answer_sequences(predictor.answer_all, pairs)
    return iter(predictor.answer_all(pairs))


def answer_sequences(answer_all: Callable[[Pairs], Answered], pairs: Pairs) -> Answered:
    """Answers each question with the model's answer to the question before it as its history.

    The first questions of all sequences are answered together by `answer_all`, as that of
    `Predictor`, then the second, and so on. Their ids say sequence and position, such as
    "nt-639-0_1"; positions may be missing. After a question that was refused or not answered there
    is no history. ValueError if an id says no position or comes twice, or a sequence is about
    several tables.
    """
    previous: dict[str, Answer] = {}
    for turns in _rounds(pairs):
        asked = (
            (table, _with_history(question, previous.get(_sequence(question), Answer())))
            for table, question in turns
        )
        for table, question, answer in answer_all(asked):
            yield table, question, answer
            # Only now: each question of a round is of another sequence.
            previous[_sequence(question)] = Answer.of(answer)


def _with_history(question: Question, previous: Answer) -> Question:
    return dataclasses.replace(
        question, previous_coordinates=previous.coordinates, previous_answers=previous.items
    )


def _sequence(question: Question) -> str:
    return split_question_id(question.question_id)[0]


def _rounds(pairs: Pairs) -> Iterator[list[tuple[Table, Question]]]:
    """The first questions of all sequences, then the second ones, ..."""
    sequences: defaultdict[str, dict[int, tuple[Table, Question]]] = defaultdict(dict)
    for table, question in pairs:
        sequence, position = split_question_id(question.question_id)
        turns = sequences[sequence]
        where = f"(question '{question.question_id}')"
        if position in turns:
            raise ValueError(f"expected each question of a sequence once, got one again {where}")
        for first, _ in list(turns.values())[:1]:
            if first.table_id != table.table_id:
                raise ValueError(
                    f"expected a sequence about one table, '{first.table_id}', got "
                    f"'{table.table_id}' {where}"
                )
        turns[position] = table, question
    in_order = [[turns[position] for position in sorted(turns)] for turns in sequences.values()]
    for number in range(max(map(len, in_order), default=0)):
        yield [turns[number] for turns in in_order if number < len(turns)]


def match_predictions(
    predictions: Mapping[str, Answer],
    pairs: Pairs,
    file: str | pathlib.Path = "predictions",
) -> list[tuple[Answer, Table, Question]]:
    """Pairs answers by question id with their questions, in the questions' order.

    ValueError if there is no question, one without answer, or an answer to another question.
    """
    pairs = list(pairs)
    if not pairs:
        raise ValueError("expected at least 1 question, got 0")
    questions = {question.question_id for _, question in pairs}
    counts = (
        f"expected predictions for {len(questions)} questions, got {len(predictions)} in '{file}'"
    )
    if unknown := [id_ for id_ in predictions if id_ not in questions]:
        raise ValueError(
            f"{counts}, {len(unknown)} of them for other questions, the first '{unknown[0]}'; "
            "predict the same file of questions"
        )
    if missing := [q.question_id for _, q in pairs if q.question_id not in predictions]:
        raise ValueError(
            f"{counts}, and none for {len(missing)} questions, the first '{missing[0]}'; "
            "predict all of them"
        )
    return [(predictions[question.question_id], table, question) for table, question in pairs]


def write_predictions(path: str | pathlib.Path, answers: Iterable[tuple[str, Answer]]) -> None:
    """Writes answers with their questions' ids; the file appears once it is complete."""
    # Half a surrogate pair, which UTF-8 cannot hold, is escaped as JSON escapes it.
    with complete_text_file(path, errors="backslashreplace") as file:
        for id_, answer in answers:
            record = {"id": id_} | answer.to_dict()
            file.write(json.dumps(record, ensure_ascii=False, allow_nan=False) + "\n")


def read_predictions(path: str | pathlib.Path) -> dict[str, Answer]:
    """Reads answers by question id, in the file's order; also files of the first version.

    FileNotFoundError, or ValueError if a line is malformed, or a question has two.
    """
    predictions: dict[str, Answer] = {}
    for number, record in read_json_values(path):
        where = f"(file '{path}', line {number})"
        id_ = record.pop("id", None) if isinstance(record, dict) else ""
        if not isinstance(id_, str):
            raise ValueError(f"expected a text as 'id', got {id_!r} {where}")
        try:
            answer = Answer.from_dict(record)
        except ValueError as error:
            raise ValueError(f"{error} {where}") from None
        if id_ in predictions:
            raise ValueError(f"expected one prediction a question, got two for '{id_}' {where}")
        predictions[id_] = answer
    return predictions


NUM_SHOWN = 10  # answers of an evaluation
# The first of which the words have a meaning is the kind.
_MEANINGS = {
    "yes or no": ("yes or no",),
    "average": ("average",),
    "difference": ("difference",),
    "A or B": ("one of two",),
    "total": ("total",),
    "how many": ("how many",),
    "next or previous": ("next", "previous"),
    "superlative": ("superlative",),
    "first, last or nth": ("first", "last", "second or so"),
}


class KindCounts(NamedTuple):
    """How many questions of a kind there are, and how many were answered rightly."""

    questions: int
    right: int


def kind_of(table: Table, question: Question) -> str:
    """The kind of a question with answers, by its words; or that it has none."""
    if question.aggregation == ABSENT:
        return "not in the table"
    text = question.text.lower()
    kind = next((kind for kind, meanings in _MEANINGS.items() if says(text, *meanings)), "")
    if kind == "how many":
        answers = set(map(normalize_denotation, question.answers))
        cells = (normalize_denotation(cell) for row in table.rows for cell in row)
        return f"{kind}, {'' if any(cell in answers for cell in cells) else 'not '}in a cell"
    if not kind and len(question.answers) > 1:
        return "list"
    is_number = len(question.answers) == 1 and parse_number(question.answers[0]) is not None
    return kind or ("look-up, a number" if is_number else "look-up")


def find_kinds(name: str, predictions: Mapping[str, Answer]) -> dict[str, str]:
    """The kind of each question by its id.

    The name is "confidence" for how sure its answer is said to be, or "refused"; "ids" for what
    stands behind its id's last colon; or a JSON file with an object of ids and kinds, or else a
    ValueError.
    """
    if name == "confidence":
        return {id_: it.confidence if it.answered else "refused" for id_, it in predictions.items()}
    if name == "ids":
        return {id_: id_.rpartition(":")[2] for id_ in predictions}
    kinds = read_json(name)
    if not isinstance(kinds, dict) or not all(isinstance(kind, str) for kind in kinds.values()):
        raise ValueError(f"expected an object of question ids and kinds in {name}")
    return kinds


def by_kind(
    right: Mapping[str, bool],
    pairs: Iterable[tuple[Table, Question]],
    kinds: Mapping[str, str] | None = None,
) -> dict[str, KindCounts]:
    """How many questions of each kind there are and are right, the most frequent kind first.

    `right` and `kinds` are by question id; without kinds they are those of the words.
    """
    verdicts: defaultdict[str, list[bool]] = defaultdict(list)
    for table, question in pairs:
        id_ = question.question_id
        kind = kind_of(table, question) if kinds is None else kinds.get(id_, "other")
        verdicts[kind].append(right[id_])
    counts = {kind: KindCounts(len(each), sum(each)) for kind, each in verdicts.items()}
    return dict(sorted(counts.items(), key=lambda item: -item[1].questions))


class ShownAnswer(NamedTuple):
    """A question's text, right answer and predicted one, for a person to judge."""

    question: str
    gold: str
    predicted: str
    cells: Iterable[tuple[int, int]]  # (row, column) of the body, counted from zero
    is_right: bool


def answers_table(answers: Iterable[ShownAnswer]) -> str:
    """A row for each answer, which may also be the list that JSON makes of it."""
    rows = []
    for question, gold, predicted, cells, is_right in answers:
        coordinates = ", ".join(f"({row}, {column})" for row, column in cells)
        rows.append((question, gold, predicted, coordinates, "yes" if is_right else "no"))
    return _table(("question", "gold", "predicted", "cells (row, column)", "right"), rows)


def confusion_table(
    golds: Sequence[str], predicted: Sequence[str], names: Sequence[str] = ()
) -> str:
    """How often each gold name (rows) was taken for each name (columns).

    Rows and columns are in the order of `names`; other names follow.
    """
    names = list(dict.fromkeys([*names, *golds, *predicted]))
    counts = Counter(zip(golds, predicted, strict=True))
    rows = [(gold, *(str(counts[gold, name]) for name in names)) for gold in names]
    return _table((r"gold \ predicted", *names), rows)


def evaluations_table(evaluations: Sequence[Mapping[str, float]]) -> str:
    """A row for each evaluation of a run, each with its "step" and some of the metrics."""
    names = [name for name in dict.fromkeys(itertools.chain(*evaluations)) if name != "step"]
    rows = [
        (str(one["step"]), *(f"{one[name]:.4f}" if name in one else "" for name in names))
        for one in evaluations
    ]
    return _table(("step", *names), rows)


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    texts = ([" ".join(text.split()).replace("|", r"\|") for text in line] for line in lines)
    return "".join(f"| {' | '.join(line)} |\n" for line in texts)
