"""A table and an answer as the page shows them: HTML in which every text is escaped.

Shapes: R body rows, C columns.
"""

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape

import numpy as np

from mate_tf.answers.answer import Answer, SelectedCell, format_number
from mate_tf.tables.table import Table

MOST_ROWS = 40
_MOST_CHARACTERS = 300
_CONTEXT = 3  # rows before and after one that is shown for its cells
_FIRST_ROWS = 3
_MOST_ATTENDED_ROWS = 10
_LEAST_SHARE = 0.005  # a smaller one would be labelled 0 %
_COMPUTED = {"NONE": "read from", "SUM": "sum of", "AVERAGE": "average of", "COUNT": "count of"}

# By (row, column), with the header as row -1: the strength of the colour from 0 to 1, a label
# beside the text, and a title for the pointer.
Marks = Mapping[tuple[int, int], tuple[float, str, str]]


def error_html(message: str) -> str:
    """An error as one sentence."""
    return f'<p class="error" role="alert">{_sentence(message)}</p>'


def note_html(message: str) -> str:
    """A note below an answer as one sentence."""
    return f'<p class="note facts">{_sentence(message)}</p>'


def table_html(table: Table) -> str:
    """A table without a question."""
    return _table(table, "", {}, rows_shown(table.num_rows, ()))


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
    views = {"answer": _table(table, legend, marks, rows, marks)}
    for name, shares in groups.items():
        rows = rows_shown(table.num_rows, [*ranked, *_most_attended(shares)])
        legend = (
            f"Share of the attention of {origin}, {name}; "
            f"{_percent(question[name])} goes to the question and special tokens"
        )
        views[name] = _table(table, legend, _attention_marks(shares, rows), rows, marks)
    return f"{_answer(table, answer)}{_views(views)}"


def rows_shown(num_rows: int, ranked: Iterable[int], most: int = MOST_ROWS) -> list[int]:
    """Which rows of a table to show: those that matter, their neighbours and the first rows.

    Args:
        num_rows: of the table.
        ranked: rows that matter, the most important first.
        most: the most rows to show.

    Returns:
        Rows in their order: all of them if they are few enough; the first ones if none matters.
    """
    if num_rows <= most:
        return list(range(num_rows))
    mattering = list(dict.fromkeys(ranked))
    around = [
        row + sign * distance
        for distance in range(1, _CONTEXT + 1)
        for row in mattering
        for sign in (-1, 1)
        if 0 <= row + sign * distance < num_rows
    ]
    first = range(_FIRST_ROWS if mattering else most)
    kept = dict.fromkeys(itertools.chain(mattering, around, first))
    return sorted(itertools.islice(kept, most))


def _shown(answer: Answer) -> Answer:
    """The answer, or the one that was not given."""
    return answer if answer.answered or not answer.alternatives else answer.alternatives[0]


def _answer(table: Table, answer: Answer) -> str:
    shown, others = _shown(answer), answer.alternatives
    facts = [f"score {shown.score:.2f}", _source(table, shown)]
    if shown.number is not None and format_number(shown.number) != shown.text:
        facts.append(f"as a number {format_number(shown.number)}")
    if answer.answered:
        headline = f'<p class="text">{_short(answer.text)}</p>'
    else:
        headline = '<p class="text none">No answer</p>'
        if others:
            headline += f'<p class="guess">It would have been: {_short(shown.text)}</p>'
        others = others[1:]
    line = " · ".join(f"<span>{escape(fact)}</span>" for fact in facts if fact)
    if answer.rows_dropped:
        line += (
            f"<br><span>The last {answer.rows_dropped} of {table.num_rows} rows were not read"
            "</span>"
        )
    return (
        f'<div class="answer" role="status">{headline}<p class="facts">{line}</p></div>'
        f"{_others(table, others)}"
    )


def _others(table: Table, others: Sequence[Answer]) -> str:
    if not others:
        return ""
    items = "".join(
        f'<li><span class="other">{_short(other.text)}</span> '
        f'<span class="facts">{other.score:.2f}, {escape(_source(table, other))}</span></li>'
        for other in others
    )
    return f'<section class="others"><h2>Other answers</h2><ol>{items}</ol></section>'


def _source(table: Table, answer: Answer) -> str:
    """What was done with which cells."""
    if answer.class_index is not None:
        return f"class {answer.class_index}"
    if not answer.cells:
        return ""
    if len(answer.cells) > 1:
        return f"{_COMPUTED[answer.aggregation]} {len(answer.cells)} cells"
    (cell,) = answer.cells
    column = _cut(table.header[cell.column], 40)
    return f"{_COMPUTED[answer.aggregation]} row {cell.row}, column {cell.column} ({column})"


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


def _table(
    table: Table,
    legend: str,
    marks: Marks,
    rows: Sequence[int],
    chosen: Iterable[tuple[int, int]] = (),
) -> str:
    """A table with marked cells, chosen ones outlined, and a line where rows are left out."""
    outlined = set(chosen)
    head = "".join(
        _cell("th", text, marks.get((-1, column)), ' scope="col"')
        for column, text in enumerate(table.header)
    )
    body = []
    for row, gap in _with_gaps(rows, table.num_rows):
        if gap:
            body.append(_gap(gap, outlined, table.num_columns))
        if row is None:
            continue
        cells = "".join(
            _cell(
                "td",
                text,
                marks.get((row, column)),
                ' class="chosen"' if (row, column) in outlined else "",
            )
            for column, text in enumerate(table.rows[row])
        )
        body.append(f'<tr><th scope="row">{row}</th>{cells}</tr>')
    name = escape(_cut(table.table_id, 80))
    return (
        f'<div class="above"><p class="legend">{escape(legend)}</p><p class="size">{name}: '
        f"{_count(table.num_rows, 'row')}, {_count(table.num_columns, 'column')}</p></div>"
        f'<div class="scroll" tabindex="0" role="region" aria-label="Table {name}">'
        f'<table><thead><tr><th scope="col">row</th>{head}</tr></thead>'
        f"<tbody>{''.join(body)}</tbody></table></div>"
    )


def _cell(tag: str, text: str, mark: tuple[float, str, str] | None, attributes: str) -> str:
    if mark is None:
        return f"<{tag}{attributes}>{_short(text)}</{tag}>"
    strength, label, title = mark
    note = f" <small>{escape(label)}</small>" if label else ""
    return (
        f'<{tag}{attributes} style="--strength: {strength:.3f}" title="{escape(title)}">'
        f"{_short(text)}{note}</{tag}>"
    )


def _with_gaps(rows: Sequence[int], num_rows: int) -> Iterator[tuple[int | None, range]]:
    """Each row with those left out before it; finally None, with those left out at the end."""
    before = -1
    for row in rows:
        yield row, range(before + 1, row)
        before = row
    yield None, range(before + 1, num_rows)


def _gap(gap: range, chosen: Iterable[tuple[int, int]], num_columns: int) -> str:
    hidden = sum(row in gap for row, _ in chosen)
    also = f", with {_count(hidden, 'chosen cell')}" if hidden else ""
    return (
        f'<tr class="gap"><td colspan="{num_columns + 1}">{_count(len(gap), "row")} left out{also}'
        "</td></tr>"
    )


def _sentence(message: str) -> str:
    """The first line of a message as a sentence, escaped."""
    sentence = message.strip().partition("\n")[0].rstrip(".")
    return f"{escape(sentence[:1].upper() + sentence[1:])}."


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def _short(text: str) -> str:
    """A text escaped, cut where it is very long."""
    return escape(_cut(text, _MOST_CHARACTERS))


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"
