"""An answer as HTML in which every text is escaped: of the page, and of notebooks.

Shapes: R body rows, C columns.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING

import numpy as np

from mate_tf.tables.cell_texts import format_number
from mate_tf.tables.drawing import Marks, count, cut, marked_table_html, rows_shown, short
from mate_tf.tables.operators import OPERATORS
from mate_tf.tables.table import Table

if TYPE_CHECKING:
    from mate_tf.answers.answer import Answer, SelectedCell

_MOST_ATTENDED_ROWS = 10
_MOST_TERMS = 12
_CELL_SCORE = "how likely this cell is one of the answer’s, from 0 to 1"
_LEAST_SHARE = 0.005  # a smaller one would be labelled 0 %


def error_html(message: str) -> str:
    """An error as one sentence."""
    return f'<p class="error" role="alert">{_sentence(message)}</p>'


def note_html(message: str) -> str:
    """A note below an answer as one sentence."""
    return f'<p class="note facts">{_sentence(message)}</p>'


def result_html(
    table: Table,
    answer: "Answer",
    groups: Mapping[str, np.ndarray],
    question: Mapping[str, float],
    asked: Collection[int] | None = None,
) -> str:
    """An answer, and its table with chosen cells or with attended cells, one view at a time.

    `groups` and `question` say where its attention goes, as in `AttendedCells`: float [R+1, C] with
    the header as row 0, and float; they are empty where it is not known. `asked` are the rows that
    the question was about; None for all.
    """
    chosen = answer.guess
    marks = {
        (cell.row, cell.column): (cell.score, f"cell {cell.score:.2f}", _CELL_SCORE)
        for cell in chosen.cells
    }
    origin = "the answer’s cells" if chosen.cells else "the first token"
    ranked = [cell.row for cell in sorted(chosen.cells, key=lambda cell: -cell.score)]
    legend = "Coloured: the answer’s cells" if marks else "No cell is chosen"
    rows = rows_shown(table.num_rows, ranked or sorted(asked or ()))
    views = {"answer": marked_table_html(table, legend, marks, rows, marks, asked)}
    for name, shares in groups.items():
        rows = rows_shown(table.num_rows, [*ranked, *_most_attended(shares)])
        legend = (
            f"Coloured: where {origin} looked, {name}; "
            f"{_percent(question[name])} went to the question and special tokens"
        )
        attended = _attention_marks(shares, rows)
        views[name] = marked_table_html(table, legend, attended, rows, marks, asked)
    return f"{answer_html(answer, table.header)}{_views(views)}"


def answer_html(answer: "Answer", header: Sequence[str] = ()) -> str:
    """An answer without its table; with the header, columns are named too."""
    shown, others = answer.guess, answer.alternatives[not answer.answered :]
    verdict = escape(answer.verdict[:1].upper() + answer.verdict[1:])
    facts = [source(header, shown)]
    if shown.number is not None and format_number(shown.number) != shown.text:
        facts.append(f"as a number {format_number(shown.number)}")
    state = answer.confidence.replace(" ", "-") if answer.answered else "none"
    headline = f'<p class="text">{short(shown.text)}</p>' if shown.items else ""
    score = (
        f'<p class="score" title="how likely the answer is right, from 0 to 1">score '
        f'{answer.score:.2f} <span class="bar" style="--share: {answer.score:.2f}"></span></p>'
    )
    computed = _computation(shown)
    lines = [
        " · ".join(escape(fact) for fact in facts if fact),
        f'<span class="computed">{short(computed)}</span>' if computed else "",
        _sentence(answer.coverage) if answer.coverage else "",
        _sentence(shown.note) if shown.note else "",
        *map(escape, shown.assumed),
    ]
    details = "".join(f'<p class="facts">{line}</p>' for line in lines if line)
    return (
        f'<div class="answer {state}"><div class="top"><p class="verdict">{verdict}</p>{score}'
        f"</div>{headline}{details}</div>{_others(header, others)}"
    )


def _computation(answer: "Answer") -> str:
    """How the answer came from the cells, such as "2 + 3 = 5"; "" where nothing was computed."""
    terms_of = OPERATORS[answer.aggregation].terms
    if terms_of is None or len(answer.cells) < 2:
        return ""
    before, between, after = terms_of
    if answer.aggregation == "COUNT":
        terms = [str(row) for row in dict.fromkeys(cell.row + 1 for cell in answer.cells)]
        if len(terms) == 1:  # along a row
            return ""
    else:
        terms = [cut(" ".join(cell.text.split()), 24) or "empty" for cell in answer.cells]
    if len(terms) > _MOST_TERMS:
        terms[_MOST_TERMS - 1 :] = [f"… ({len(terms) - _MOST_TERMS + 1} more)"]
    result = "" if answer.aggregation == "COUNT" else f" = {answer.text}"
    return f"{before}{between.join(terms)}{after.format(len(answer.cells))}{result}"


def _others(header: Sequence[str], others: Sequence["Answer"]) -> str:
    if not others:
        return ""
    items = "".join(
        f'<li><span class="other">{short(other.text)}</span> '
        f'<span class="facts">score {other.score:.2f}, {escape(source(header, other))}</span></li>'
        for other in others
    )
    summary = f"<summary>{count(len(others), 'other answer')}</summary>"
    return f'<details class="others">{summary}<ol>{items}</ol></details>'


def source(header: Sequence[str], answer: "Answer") -> str:
    """The operation and its cells, such as "count of 3 rows"; "" where there are none."""
    if answer.class_index is not None:
        return f"class {answer.class_index}"
    if not answer.cells:
        return ""
    words, cells = OPERATORS[answer.aggregation].source, answer.cells
    if len(cells) == 1:
        return f"{words} {place(header, cells[0])}"
    is_of_rows = answer.aggregation == "COUNT" and len({cell.column for cell in cells}) == 1
    return f"{words} {count(len(cells), 'row' if is_of_rows else 'cell')}"


def place(header: Sequence[str], cell: "SelectedCell") -> str:
    """Where a cell is, counted from 1 as people do."""
    named = f" ({cut(header[cell.column], 40)})" if header and header[cell.column] else ""
    return f"row {cell.row + 1}, column {cell.column + 1}{named}"


def _attention_marks(shares: np.ndarray, rows: Iterable[int]) -> Marks:
    """The marks of the header and the shown rows; the largest share has the strongest colour."""
    largest = float(shares.max(initial=0.0)) or 1.0
    return {
        (row, column): (
            float(share) / largest,
            _percent(share) if share >= _LEAST_SHARE else "",
            f"{share:.2%} of the attention",
        )
        for row in (-1, *rows)
        for column, share in enumerate(shares[row + 1])
    }


def _most_attended(shares: np.ndarray) -> list[int]:
    """The body rows with the largest share of one cell, the largest first."""
    largest = shares[1:].max(axis=1)  # [R]
    order = np.argsort(-largest, kind="stable")[:_MOST_ATTENDED_ROWS]
    return [int(row) for row in order if largest[row] > 0]


def _views(views: Mapping[str, str]) -> str:
    if len(views) == 1:
        return "".join(views.values())
    parts = "".join(
        f'<input type="radio" name="view" id="view-{index}"{" checked" if index == 0 else ""}>'
        f'<label for="view-{index}">{escape(name[:1].upper() + name[1:])}</label>'
        f'<div class="view">{body}</div>'
        for index, (name, body) in enumerate(views.items())
    )
    return f'<div class="views" role="group" aria-label="What the colours show">{parts}</div>'


def _sentence(message: str) -> str:
    sentence = message.strip().partition("\n")[0].rstrip(".")
    return f"{escape(sentence[:1].upper() + sentence[1:])}."


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"
