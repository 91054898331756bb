"""A table as HTML with every text escaped, for page and notebooks; which of its rows to show."""

import itertools
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from html import escape

from mate_tf.tables.table import Table

MOST_ROWS = 40
_MOST_CHARACTERS = 300
_MOST_ON_HOVER = 1000
_SHORT = 28  # characters of a cell that stands on one line
_CONTEXT = 3  # rows before and after one that is shown for its cells
_FIRST_ROWS = 3

# By (row, column), with the header as row -1: the strength of the colour from 0 to 1, a label
# beside the text, and a title for the pointer.
Marks = Mapping[tuple[int, int], tuple[float, str, str]]


def table_html(table: Table) -> str:
    """A table without a question, and what was assumed about it."""
    said = "".join(f"<li>{escape(sentence)}</li>" for sentence in table.all_assumed)
    assumed = f'<ul class="note facts assumed">{said}</ul>' if said else ""
    return marked_table_html(table, "", {}, rows_shown(table.num_rows, ())) + assumed


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


def marked_table_html(
    table: Table,
    legend: str,
    marks: Marks,
    rows: Sequence[int],
    chosen: Iterable[tuple[int, int]] = (),
    asked: Collection[int] | None = None,
) -> str:
    """A table with marked cells, and a line where rows are left out.

    Args:
        table: the table.
        legend: what the marks say.
        marks: the marked cells.
        rows: those to show.
        chosen: cells that are outlined.
        asked: the rows that a question was about, the others being pale; None for all.
    """
    outlined = set(chosen)
    head = "".join(
        _cell("th", text, marks.get((-1, column)), ' scope="col"')
        for column, text in enumerate(table.header)
    )
    body = []
    for row, gap in with_gaps(rows, table.num_rows):
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
        pale = "" if asked is None or row in asked else ' class="pale"'
        body.append(f'<tr{pale}><th scope="row">{row + 1}</th>{cells}</tr>')
    name = escape(cut(table.table_id, 80))
    return (
        f'<div class="above"><p class="size"><b>{name}</b>: {count(table.num_rows, "row")}, '
        f'{count(table.num_columns, "column")}</p><p class="legend">{escape(legend)}</p></div>'
        f'<div class="scroll" tabindex="0" role="region" aria-label="Table {name}">'
        f'<table><thead><tr><th scope="col">row</th>{head}</tr></thead>'
        f"<tbody>{''.join(body)}</tbody></table></div>"
    )


def _cell(tag: str, text: str, mark: tuple[float, str, str] | None, attributes: str) -> str:
    """A cell; what is long is cut by its style, and whole under the pointer."""
    shown, titles = short(text), []
    if len(text) > _SHORT or "\n" in text:
        shown, titles = f'<span class="long">{shown}</span>', [cut(text, _MOST_ON_HOVER)]
    if mark is not None:
        strength, label, title = mark
        attributes += f' style="--strength: {strength:.3f}"'
        shown += f" <small>{escape(label)}</small>" if label else ""
        titles.append(title)
    said = escape("\n".join(titles))
    return f"<{tag}{attributes}{f' title={chr(34)}{said}{chr(34)}' if said else ''}>{shown}</{tag}>"


def with_gaps(rows: Sequence[int], num_rows: int) -> Iterator[tuple[int | None, range]]:
    """Each row with those left out before it; finally None, with those left out at the end."""
    before = -1
    for row in rows:
        yield row, range(before + 1, row)
        before = row
    yield None, range(before + 1, num_rows)


def _gap(gap: range, chosen: Iterable[tuple[int, int]], num_columns: int) -> str:
    hidden = sum(row in gap for row, _ in chosen)
    also = f", with {count(hidden, 'chosen cell')}" if hidden else ""
    return (
        f'<tr class="gap"><td colspan="{num_columns + 1}">{count(len(gap), "row")} left out{also}'
        "</td></tr>"
    )


def count(number: int, noun: str) -> str:
    """Such as "1 row" or "2,000 rows"."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def short(text: str) -> str:
    """A text escaped, cut where it is very long."""
    return escape(cut(text, _MOST_CHARACTERS))


def cut(text: str, most: int) -> str:
    """A text of at most so many characters."""
    return text if len(text) <= most else text[: most - 1] + "…"
