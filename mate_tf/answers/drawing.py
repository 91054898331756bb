"""An answer as HTML in which every text is escaped: of the page, and of notebooks.

Shapes: R body rows, C columns.
"""

from collections.abc import Iterable, Mapping, Sequence
from html import escape

import numpy as np

from mate_tf.answers.answer import NOT_IN_TABLE, Answer, SelectedCell, format_number
from mate_tf.tables.drawing import Marks, count, cut, marked_table_html, rows_shown, short
from mate_tf.tables.table import PAIRED, Table

_MOST_ATTENDED_ROWS = 10
_LEAST_SHARE = 0.005  # a smaller one would be labelled 0 %
_COMPUTED = {
    "NONE": "read from",
    "SUM": "sum of",
    "AVERAGE": "average of",
    "COUNT": "count of",
    "DISTINCT": "different texts of",
    "MAX": "largest of",
    "MIN": "smallest of",
    "DIFFERENCE": "difference of",
    **dict.fromkeys(PAIRED[1:], "comparison of"),
}


def error_html(message: str) -> str:
    """An error as one sentence."""
    return f'<p class="error" role="alert">{_sentence(message)}</p>'


def note_html(message: str) -> str:
    """A note below an answer as one sentence."""
    return f'<p class="note facts">{_sentence(message)}</p>'


def result_html(
    table: Table,
    answer: Answer,
    groups: Mapping[str, np.ndarray],
    question: Mapping[str, float],
) -> str:
    """An answer, and its table with chosen cells or with attended cells, one view at a time.

    Args:
        table: the table.
        answer: the answer to a question about it.
        groups, question: where its attention goes, as in `AttendedCells`: float [R+1, C] with the
            header as row 0, and float; empty where it is not known.
    """
    chosen = _shown(answer)
    marks = _chosen_marks(chosen.cells)
    origin = "the answer’s cells" if chosen.cells else "the first token"
    ranked = [cell.row for cell in sorted(chosen.cells, key=lambda cell: -cell.score)]
    legend = "Chosen cells by their score" if marks else "No cell is chosen"
    rows = rows_shown(table.num_rows, ranked)
    views = {"answer": marked_table_html(table, legend, marks, rows, marks)}
    for name, shares in groups.items():
        rows = rows_shown(table.num_rows, [*ranked, *_most_attended(shares)])
        legend = (
            f"Share of the attention of {origin}, {name}; "
            f"{_percent(question[name])} goes to the question and special tokens"
        )
        views[name] = marked_table_html(table, legend, _attention_marks(shares, rows), rows, marks)
    return f"{answer_html(answer, table.header)}{_views(views)}"


def _shown(answer: Answer) -> Answer:
    """The answer, or the one that was not given."""
    return answer if answer.answered or not answer.alternatives else answer.alternatives[0]


def answer_html(answer: Answer, header: Sequence[str] = ()) -> str:
    """An answer without its table; with the header, columns are named too."""
    shown, others = _shown(answer), answer.alternatives
    facts = [
        f"score {shown.score:.2f}",
        *(() if shown.sure else ("not sure",)),
        _source(header, shown),
    ]
    if shown.number is not None and format_number(shown.number) != shown.text:
        facts.append(f"as a number {format_number(shown.number)}")
    if answer.answered:
        headline = f'<p class="text">{short(answer.text)}</p>'
    else:
        said = _sentence(NOT_IN_TABLE) if answer.absent else "No answer"
        headline = f'<p class="text none">{said}</p>'
        if others:
            headline += f'<p class="guess">It would have been: {short(shown.text)}</p>'
        others = others[1:]
    line = " · ".join(f"<span>{escape(fact)}</span>" for fact in facts if fact)
    if answer.rows_dropped:
        line += f"<br><span>Not read: the last {count(answer.rows_dropped, 'row')}</span>"
    for sentence in filter(
        None, (shown.note and _sentence(shown.note), *map(escape, shown.assumed))
    ):
        line += f"<br><span>{sentence}</span>"
    return (
        f'<div class="answer" role="status">{headline}<p class="facts">{line}</p></div>'
        f"{_others(header, others)}"
    )


def _others(header: Sequence[str], others: Sequence[Answer]) -> str:
    if not others:
        return ""
    items = "".join(
        f'<li><span class="other">{short(other.text)}</span> '
        f'<span class="facts">{other.score:.2f}, {escape(_source(header, other))}</span></li>'
        for other in others
    )
    return f'<section class="others"><h2>Other answers</h2><ol>{items}</ol></section>'


def _source(header: Sequence[str], answer: Answer) -> str:
    """What was done with which cells."""
    if answer.class_index is not None:
        return f"class {answer.class_index}"
    if not answer.cells:
        return ""
    if len(answer.cells) > 1:
        return f"{_COMPUTED[answer.aggregation]} {len(answer.cells)} cells"
    (cell,) = answer.cells
    named = f" ({cut(header[cell.column], 40)})" if header else ""
    return f"{_COMPUTED[answer.aggregation]} row {cell.row}, column {cell.column}{named}"


def _chosen_marks(cells: Iterable[SelectedCell]) -> Marks:
    return {
        (cell.row, cell.column): (cell.score, f"{cell.score:.2f}", f"score {cell.score:.3f}")
        for cell in cells
    }


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
    """Tables by name; radio buttons show one of them."""
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
    """The first line of a message as a sentence, escaped."""
    sentence = message.strip().partition("\n")[0].rstrip(".")
    return f"{escape(sentence[:1].upper() + sentence[1:])}."


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"
