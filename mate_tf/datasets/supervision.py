"""Weak supervision: finds the cells and the number that the texts of an answer stand for."""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any, NamedTuple

from mate_tf.datasets.operators import Derived, derive, derive_from_cells
from mate_tf.features.config import ConversionError
from mate_tf.features.english import (
    normalize_denotation,
    normalize_for_match,
    normalize_words,
)
from mate_tf.features.numeric import is_single
from mate_tf.tables.columns import Convention, date_of, number_of
from mate_tf.tables.linked_table import LinkedTable
from mate_tf.tables.notations import CURRENCY_UNITS
from mate_tf.tables.operators import OPERATORS
from mate_tf.tables.table import Coordinates, Question, Table, remember
from mate_tf.tables.values import Cell, read_cell

_NUMBER = re.compile(r"[+-]?(?:\d{1,3}(?:,\d{3})+|\d+)?(?:(?<=\d)\.|\.\d+)?", re.ASCII)
_WORD_OR_SIGNS = re.compile(r"\w+|[^\w\s]+")

_TABLES_REMEMBERED = 128
_NONE_GIVEN = "expected an answer, got none"
_ORIGINAL_DENOTATION = partial(normalize_denotation, original=True)


class SupervisionError(ConversionError):
    """An answer does not say which cells or number it stands for.

    Its reason is "no answer given", "answer not found", "ambiguous answer" or "some answers not
    found".
    """

    def __init__(self, reason: str, detail: str, table: Table, question: Question) -> None:
        where = f"(table '{table.table_id}', question '{question.question_id}')"
        super().__init__(reason, f"{reason}: {detail} {where}")


def supervise(
    table: Table, question: Question, strict: bool = True, original: bool = False
) -> Question:
    """Finds the cells and the number of a question's answer (Herzig et al., 2020, section 3).

    Supervision that the question has is kept. Otherwise the operator and its cells are derived from
    what the question mentions, or from its cells (operators.py). Where nothing decides them, each
    answer is searched in the body cells: by the texts, compared as WikiTableQuestions compares
    denotations; by the first line of one cell of several lines, if it is no number; by its value,
    as each column is read: "10151" for "10,151", "$5.00" for "5", but not "3" for "3 km". A single
    answer that is a number also sets `answer_number`, even if no cell holds it.

    With `strict`, as in training, an answer in more cells than the times it is given is an error;
    otherwise its last cells are taken. With `original` all is as in the authors' release: texts are
    compared as they are, without case, without white space, and as denotations. SupervisionError if
    there is no answer, or one is not found or in too many cells.
    """
    if question.aggregation and not OPERATORS[question.aggregation].needs_cells:
        return question
    known = None if original or question.aggregation else derived(table, question)
    if known is not None:
        answers, number = question.answers, question.answer_number
        return replace(
            question,
            aggregation=known.aggregation,
            answer_coordinates=known.coordinates,
            answer_number=_number_of(answers) if number is None else number,
        )
    if _has_supervision(question, original):
        return question
    if not question.answers:
        raise SupervisionError("no answer given", _NONE_GIVEN, table, question)
    find = _find_as_original if original else _find
    number = _number_of(question.answers, original)
    try:
        coordinates = find(table, question, strict)
    except SupervisionError as error:
        if number is None or (strict and error.reason != "answer not found"):
            raise
        coordinates = ()
    return replace(question, answer_coordinates=coordinates, answer_number=number)


def derived(table: Table, question: Question) -> Derived | None:
    """The operator and the cells of a question, from its cells or else its answers; or None.

    The last questions are remembered: records are made of what was derived, and then say how.
    """
    return _derived((table, question))


@partial(remember, size_of=lambda key, _: key[0].num_rows * key[0].num_columns)
def _derived(key: tuple[Table, Question]) -> Derived | None:
    table, question = key
    answers, number = question.answers, question.answer_number
    if number is None:
        number = _number_of(answers)
    if question.answer_coordinates:
        return derive_from_cells(table, question.answer_coordinates, answers, number)
    candidates = [
        tuple(_cells_with(table, text) or _cells_of_value(table, text))
        for text in map(_denotation, answers)
    ]
    return derive(table, question, candidates, number) if answers else None


def _number_of(answers: Sequence[str], original: bool = False) -> float | None:
    return parse_number(answers[0], original) if len(answers) == 1 else None


def check_supervision(
    table: Table, question: Question, strict: bool = True, original: bool = False
) -> Question:
    """Checks that a question has supervision, for data sets that give it (SQA, WikiSQL).

    It takes the place of `supervise`; `strict` has no effect. With `original` a question without
    any answer, not even a text, is kept. SupervisionError ("no answer given") if there is none.
    """
    has_class = question.class_index is not None
    if _has_supervision(question, original) or has_class or (original and not question.answers):
        return question
    detail = "expected an answer's cells or number, got none"
    raise SupervisionError("no answer given", detail, table, question)


def _has_supervision(question: Question, original: bool) -> bool:
    number = question.answer_number
    has_number = number is not None and (original or is_single(number))
    return bool(question.answer_coordinates) or has_number


def parse_number(text: str, original: bool = False) -> float | None:
    """Reads a text that is one plain number, finite in single precision; None for others.

    With `original` whatever Python reads as a number ("nan", "1e3") is one, after commas, or
    several full stops, are removed; "1,23" is 1.23.
    """
    if original:
        return _original_number(text)
    text = text.strip()
    if not _NUMBER.fullmatch(text) or not any(map(str.isdigit, text)):
        return None
    number = float(text.replace(",", ""))
    return number if is_single(number) else None


def _find(table: Table, question: Question, strict: bool) -> Coordinates:
    coordinates: list[tuple[int, int]] = []
    missing = []
    for text, count in Counter(map(_denotation, question.answers)).items():
        cells = _cells_with(table, text)
        if strict and len(cells) > count:
            detail = f"{text!r} is in {len(cells)} cells"
            raise SupervisionError("ambiguous answer", detail, table, question)
        if not cells:
            by_value = [cell for cell in _cells_of_value(table, text) if cell not in coordinates]
            cells = by_value if len(by_value) <= count else ()
        coordinates += cells[-count:]
        if not cells:
            missing.append(text)
    if not coordinates:
        detail = f"no cell holds any of {list(question.answers)}"
        raise SupervisionError("answer not found", detail, table, question)
    if missing:
        raise SupervisionError(
            "some answers not found", f"no cell holds {missing}", table, question
        )
    return tuple(coordinates)


def _cells_with(table: Table, text: str | None) -> Sequence[tuple[int, int]]:
    """The cells of a text, or else the only one of several lines of which it is the first."""
    cells = _cells_by((_denotation, table)).get(text, ())
    if cells or parse_number(text or "0") is not None:
        return cells
    named = _cells_by((_first_line, table)).get(text, ())
    return named if len(named) == 1 else ()


def found_by_value(table: Any, before: Question, after: Question) -> bool:
    """Whether `supervise` found a cell by its value alone; `before` is the question without it."""
    is_computed = after.aggregation not in ("", "NONE")
    if before.answer_coordinates or is_computed or not isinstance(table, Table):
        return False
    texts = set(map(_denotation, before.answers))
    cells = (table.rows[row][column] for row, column in after.answer_coordinates)
    return any(not texts & {_denotation(cell), _first_line(cell)} for cell in cells)


def _cells_of_value(table: Table, text: str | None) -> list[tuple[int, int]]:
    """The cells that say the value of a text, each read as its column is."""
    answer = read_cell(text or "")
    cells = []
    for j in range(table.num_columns):
        convention = table.column(j).convention
        value, unit = _value(answer, convention)
        if value is None:
            continue
        for i, row in enumerate(table.rows):
            other, other_unit = _value(read_cell(row[j]), convention)
            if other == value and _is_same_unit(unit, other_unit):
                cells.append((i, j))
    return cells


def _value(cell: Cell, convention: Convention) -> tuple[Hashable, str]:
    """The date or number of a cell with a digit, and the number's unit; None without one."""
    if not any(map(str.isdigit, cell.text)):  # "first" and "one" are no values
        return None, ""
    date = date_of(cell, convention)
    if date is not None:
        return (date[:3], date.time or 0.0), ""
    return number_of(cell, convention)


def _is_same_unit(unit: str, other: str) -> bool:
    # An answer may leave out the unit, but not %; a bare number of a cell may be money, no length.
    is_left_out = not unit and other != "%"
    return unit == other or is_left_out or (not other and unit in CURRENCY_UNITS)


def _find_as_original(table: Table, question: Question, strict: bool) -> Coordinates:
    answers, problem = question.answers, ("", "")
    for comparable in (str, str.lower, words_and_signs, _ORIGINAL_DENOTATION):
        texts = list(map(comparable, answers))
        cells = [_cells_by((comparable, table)).get(text, ()) for text in texts]
        if not cells or not all(cells):
            problem = "answer not found", f"not every one of {list(answers)} is in a cell"
        elif len(set(texts)) < len(texts) or (strict and max(map(len, cells)) > 1):
            problem = "ambiguous answer", f"several cells hold one of {list(answers)}"
        else:
            return tuple(answer_cells[-1] for answer_cells in cells)
    raise SupervisionError(*problem, table, question)


@partial(remember, size_of=lambda key, _: key[1].num_rows * key[1].num_columns)
def _cells_by(
    key: tuple[Callable[[str], Hashable], Table],
) -> Mapping[Hashable, Sequence[tuple[int, int]]]:
    """The cells of each text in table order, without those that the function makes None."""
    comparable, table = key
    keys: dict[str, Hashable] = {}
    cells: defaultdict[Hashable, list[tuple[int, int]]] = defaultdict(list)
    for i, row in enumerate(table.rows):
        for j, text in enumerate(row):
            if text not in keys:
                keys[text] = comparable(text)
            if keys[text] is not None:
                cells[keys[text]].append((i, j))
    return dict(cells)


def _denotation(text: str) -> str | None:
    # A note may have its own line.
    return normalize_denotation(" ".join(text.split())) or None


def _first_line(text: str) -> str | None:
    lines = text.strip().splitlines()
    return _denotation(lines[0]) if len(lines) > 1 else None


def words_and_signs(text: str) -> tuple[str, ...]:
    """The words of a text and the runs of signs between them, in lower case."""
    return tuple(_WORD_OR_SIGNS.findall(text.lower()))


def _original_number(text: str) -> float | None:
    parts = text.split(",")
    if len(parts) == 2 and "." not in text and 3 not in map(len, parts):
        text = ".".join(parts)
    elif len(parts) > 1:
        text = "".join(parts)
    elif text.count(".") > 1:
        text = text.replace(".", "")
    try:
        return float(text)
    except ValueError:
        return None


class _Texts(NamedTuple):
    """A cell, and the normalized texts of it and of its passages, which may hold an answer."""

    at: tuple[int, int]
    cell: str
    words: tuple[str, ...]


def supervise_linked(
    linked: LinkedTable, question: Question, strict: bool = True, original: bool = False
) -> Question:
    """Finds the cells that hold an answer, in their own text or anywhere in their passages.

    Cells and answers are compared by whole words, in lower case and without punctuation and
    articles (Eisenschlos et al., 2021, section 5). Every cell with one of the answers counts, row
    by row, `strict` or not. Coordinates that the question already has are kept.

    With `original` an answer of articles and punctuation alone ("A") is in every cell with a word,
    instead of in cells that equal it; one that begins or ends in a sign other than ASCII
    punctuation ("5 €") is not found at the begin or end of a text. SupervisionError: "no answer
    given", or "answer not found".
    """
    if question.answer_coordinates:
        return question
    if not question.answers:
        raise SupervisionError("no answer given", _NONE_GIVEN, linked.table, question)
    tests = [_test_for(answer, original) for answer in question.answers]
    cells = _texts_of_cells(linked)
    coordinates = tuple(cell.at for cell in cells if any(holds(cell) for holds in tests))
    if not coordinates:
        detail = f"no cell or passage holds any of {list(question.answers)}"
        raise SupervisionError("answer not found", detail, linked.table, question)
    return replace(question, answer_coordinates=coordinates)


def _test_for(answer: str, original: bool) -> Callable[[_Texts], bool]:
    """A function that says whether one of a cell's texts holds the answer."""
    words = normalize_words(answer)
    if not words and not original:
        whole = normalize_for_match(answer)
        return lambda texts: bool(whole) and normalize_for_match(texts.cell) == whole
    begin, end = r"(?:\b|\s)", r"(?:\s|\b)"
    if not original:
        begin = r"(?<!\w)" if re.match(r"\w", words) else ""
        end = r"(?!\w)" if re.search(r"\w\Z", words) else ""
    pattern = re.compile(begin + re.escape(words) + end)
    return lambda texts: any(words in text and pattern.search(text) for text in texts.words)


@lru_cache(_TABLES_REMEMBERED)
def _texts_of_cells(linked: LinkedTable) -> tuple[_Texts, ...]:
    normalized = {passage: normalize_words(passage.text) for passage in linked.distinct_passages()}
    return tuple(
        _Texts(
            (i, j), cell, (normalize_words(cell), *(normalized[p] for p in linked.passages[i][j]))
        )
        for i, row in enumerate(linked.table.rows)
        for j, cell in enumerate(row)
    )
