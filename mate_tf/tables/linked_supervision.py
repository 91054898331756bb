"""Weak supervision where answers may stand in a cell or in the text that it links to."""

import functools
import re
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from mate_tf.tables.linked_table import LinkedTable
from mate_tf.tables.normalization import normalize_for_match, normalize_words
from mate_tf.tables.supervision import SupervisionError
from mate_tf.tables.table import Question

_TABLES_REMEMBERED = 128


class _Texts(NamedTuple):
    """What a cell may answer with."""

    row: int
    column: int
    cell: str
    words: tuple[str, ...]  # of the cell and of its passages, normalized


def supervise_linked(linked: LinkedTable, question: Question, original: bool = False) -> Question:
    """Finds the cells that hold an answer, in their own text or anywhere in their passages.

    Cells and answers are compared by whole words, lower-case and without punctuation and articles
    (Eisenschlos et al., 2021, section 5). Every cell counts that holds one of the answers; more
    than one is no error, unlike in `supervise`, since one passage may be linked from many cells.
    Coordinates that the question already has are kept.

    Args:
        linked: the table and its passages.
        question: a question with answers.
        original: whether, as in the authors' release, an answer of articles and punctuation alone
            ("A") is in every cell with a word, instead of in those that are nothing else; and one
            that begins or ends in a sign that is no letter, digit or ASCII punctuation ("5 €") is
            not found at a text's begin or end.

    Returns:
        The question with `answer_coordinates`, row by row.

    Raises:
        SupervisionError: if the question has no answer ("no answer given"), or no cell or passage
            holds it ("answer not found").
    """
    if question.answer_coordinates:
        return question
    where = f"(table '{linked.table.table_id}', question '{question.question_id}')"
    if not question.answers:
        raise SupervisionError("no answer given", f"expected an answer, got none {where}")
    holds = [_holder_of(answer, original) for answer in question.answers]
    coordinates = tuple(
        (texts.row, texts.column)
        for texts in _texts_of_cells(linked)
        if any(holds_answer(texts) for holds_answer in holds)
    )
    if not coordinates:
        detail = f"no cell or passage holds any of {list(question.answers)} {where}"
        raise SupervisionError("answer not found", detail)
    return replace(question, answer_coordinates=coordinates)


def _holder_of(answer: str, original: bool) -> Callable[[_Texts], bool]:
    """Says of a cell's texts whether one of them holds the answer."""
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


@functools.lru_cache(_TABLES_REMEMBERED)
def _texts_of_cells(linked: LinkedTable) -> tuple[_Texts, ...]:
    normalized = {passage: normalize_words(passage.text) for passage in linked.distinct_passages()}
    return tuple(
        _Texts(i, j, cell, (normalize_words(cell), *map(normalized.__getitem__, passages)))
        for i, (row, passages_of_row) in enumerate(
            zip(linked.table.rows, linked.passages, strict=True)
        )
        for j, (cell, passages) in enumerate(zip(row, passages_of_row, strict=True))
    )
