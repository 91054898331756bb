"""A table as HTML for page and notebooks; which of its rows to show; texts safe to print."""

import itertools
import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mate_tf.tables.table import Table

MOST_ROWS = 40
_MOST_CHARACTERS = 300
_MOST_ON_HOVER = 1000
_MOST_OF_ERROR = 2_000
_SHORT = 28  # characters of a cell that stands on one line
_CONTEXT = 3  # rows before and after one that is shown for its cells
_FIRST_ROWS = 3

# By (row, column), with the header as row -1: the strength of the colour from 0 to 1, a label
# beside the text, and a title for the pointer.
Marks = Mapping[tuple[int, int], tuple[float, str, str]]


def table_html(table: "Table") -> str:
    """A table without a question, and what was assumed about it."""
    items = "".join(f"<li>{escape(sentence)}</li>" for sentence in table.all_assumed)
    assumed = f'<ul class="note facts assumed">{items}</ul>' if items else ""
    return marked_table_html(table, "", {}, rows_shown(len(table.rows), ())) + assumed


def rows_shown(num_rows: int, ranked: Iterable[int], most: int = MOST_ROWS) -> list[int]:
    """Which `most` rows to show, in order: `ranked` by their importance, neighbours, the first."""
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
    table: "Table",
    legend: str,
    marks: Marks,
    rows: Sequence[int],
    chosen: Iterable[tuple[int, int]] = (),
    asked: Collection[int] | None = None,
) -> str:
    """Some rows of a table with marked cells, whose legend says what they mean.

    A line says where others are left out. Cells in `chosen` are outlined. Rows are pale unless a
    question was `asked` about them, or None is given.
    """
    outlined = set(chosen)
    is_numeric = [table.column(index).kind == "number" for index in range(len(table.header))]

    def cell(row: int, column: int, text: str) -> str:
        kinds = ["chosen"] * ((row, column) in outlined) + ["number"] * is_numeric[column]
        given = f' class="{" ".join(kinds)}"' if kinds else ""
        if row < 0:
            return _cell("th", text, marks.get((row, column)), f'{given} scope="col"')
        return _cell("td", text, marks.get((row, column)), given)

    head = "".join(cell(-1, column, text) for column, text in enumerate(table.header))
    body = []
    for row, gap in with_gaps(rows, len(table.rows)):
        if gap:
            hidden = sum(row in gap for row, _ in outlined)
            also = f", with {count(hidden, 'chosen cell')}" if hidden else ""
            cell_of_gap = f'<td colspan="{len(table.header) + 1}">{count(len(gap), "row")} left out'
            body.append(f'<tr class="gap">{cell_of_gap}{also}</td></tr>')
        if row is None:
            continue
        cells = "".join(cell(row, column, text) for column, text in enumerate(table.rows[row]))
        pale = "" if asked is None or row in asked else ' class="pale"'
        body.append(f'<tr{pale}><th scope="row">{row + 1}</th>{cells}</tr>')
    name = escape(cut(table.table_id, 80))
    return (
        f'<div class="above"><p class="size"><b>{name}</b>: {count(len(table.rows), "row")}, '
        f'{count(len(table.header), "column")}</p><p class="legend">{escape(legend)}</p></div>'
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
    if title := escape("\n".join(titles)):
        attributes += f' title="{title}"'
    return f"<{tag}{attributes}>{shown}</{tag}>"


def with_gaps(rows: Sequence[int], num_rows: int) -> Iterator[tuple[int | None, range]]:
    """Each row with those left out before it; finally None, with those left out at the end."""
    before = -1
    for row in rows:
        yield row, range(before + 1, row)
        before = row
    yield None, range(before + 1, num_rows)


def count(number: int, noun: str) -> str:
    """Such as "1 row" or "2,000 rows"."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def up_to(last: int) -> str:
    """Such as "from 0 to 3" or "0 alone"."""
    return f"from 0 to {last}" if last else "0 alone"


def short(text: str) -> str:
    """A text escaped, cut where it is very long."""
    return escape(cut(text, _MOST_CHARACTERS))


_JOINERS = "\u200c\u200d"  # of letters in Persian and of emoji; they are not printable


def quoted(text: str) -> str:
    """A text in one line that no terminal, log or JSON takes for anything else.

    Whatever comes from a table, a file's name or a client is quoted before it is printed. Blanks
    and newlines become single blanks; other characters that control something are escaped.
    """
    return escaped(" ".join(text.split()))


def escaped(text: str) -> str:
    """A text in which characters that control something, newlines too, are as JSON writes them."""
    if text.isprintable():
        return text
    return "".join(
        letter if letter.isprintable() or letter in _JOINERS else json.dumps(letter)[1:-1]
        for letter in text
    )


def with_names(message: str, names: Mapping[str, str]) -> str:
    """A message with the options of Python that it names in the words of another interface."""
    if not names:  # the pattern would take nothing for a name
        return message
    verbs = "as|expected|got|or|raise|[Ss]et"
    known = "|".join(map(re.escape, names))
    return re.sub(
        rf"\b({verbs})(?: its)? ({known})\b", lambda it: f"{it[1]} {names[it[2]]}", message
    )


def error_text(error: Exception | str) -> str:
    """The text of an error in at most 2,000 characters: it may name a key or cell of any length."""
    return cut(str(error), _MOST_OF_ERROR)


def cut(text: str, most: int) -> str:
    """A text of at most so many characters."""
    return text if len(text) <= most else text[: most - 1] + "…"
