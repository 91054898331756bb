"""Tables of HTML pages, by lxml."""

import itertools
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

from mate_tf.private_apis import import_extra
from mate_tf.reading.header import is_value
from mate_tf.reading.layout import Rows, Source, check_size, chosen_table
from mate_tf.tables.drawing import cut
from mate_tf.tables.values import read_cell

_DECLARED = re.compile(rb"(?:charset|encoding)\s*=\s*[\"']?\s*([\w.:-]+)", re.IGNORECASE)
_WITHIN = 1024  # the first bytes, which declare the encoding
# HTML reads these labels as windows-1252, in which a few bytes have no meaning.
_WINDOWS_1252 = {
    *("ascii", "us-ascii", "iso-8859-1", "iso8859-1", "latin-1", "latin1"),
    *("windows-1252", "cp1252"),
}
_HIDDEN = re.compile(r"display\s*:\s*none", re.IGNORECASE)
_UNSEEN = re.compile(r"visibility\s*:\s*(?:hidden|collapse)", re.IGNORECASE)  # but takes its place
_FIELDS = ("text", "number", "date", "time", "email", "tel", "url", "search", "month", "week")
_NOT_TEXT = {"button", "script", "style", "table", "template"}
_APART = {"br", "dd", "div", "dt", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "li", "p"}
_SPAN = re.compile(r"\s*(\d{1,9})")
_MOST_COLUMNS_SPANNED = 1000  # as in browsers
_LONGEST_NAME = 30


def read_html_rows(source: Source) -> Rows:
    """Reads the rows of a table on a page, the header first.

    The header is the rows of the first <thead>, otherwise the first row and those after it that
    have only <th>; several become one. A cell that spans others is repeated in all of them within
    its <thead>, <tbody> or <tfoot>, whose rows come last. Texts are as a page shows them. Tables
    without cells do not count, nor hidden tables beside visible ones; those inside a cell do.

    ModuleNotFoundError without lxml. ValueError if there is no table, none with the number `which`,
    from 0, or several and no number; for more than MOST_CELLS; or for what libxml2 cannot read.
    """
    html = import_extra("lxml.html", "formats", f"to read '{source.name}'")
    parser = html.HTMLParser(encoding="utf-8", huge_tree=True)
    page = html.document_fromstring(source.text.encode("utf-8", "replace"), parser=parser)
    for problem in parser.error_log:
        if problem.level_name == "FATAL":  # libxml2 leaves out what follows
            raise ValueError(f"{problem.message}, in line {problem.line}")
    all_tables = [(table, rows) for table in page.iter("table") if (rows := _rows(table))]
    shown = [rows for table, rows in all_tables if not _is_in_hidden(table)]
    tables = shown or [rows for _, rows in all_tables]
    # Frames around a table, and boxes of one text, are passed over where there is one other.
    real = [number for number, rows in enumerate(tables) if _has_cells(rows)]
    if source.which is None and len(real) > 1:
        real = [number for number in real if not _is_within(tables[number], tables)]
    which = real[0] if source.which is None and len(real) == 1 else source.which
    if not tables:
        raise ValueError("expected a table, got a page without one")
    return _with_header(tables[chosen_table(which, map(_described, tables))])


def _has_cells(rows: list[Any]) -> bool:
    """Whether there are several cells, and texts in them that are not in a table of their own."""
    cells = [cell for row in rows for cell in _cells(row)]
    return len(cells) > 1 and any(cell.find(".//table") is None and _text(cell) for cell in cells)


def _is_within(rows: list[Any], tables: list[list[Any]]) -> bool:
    """Whether a table is in a cell of one that has more cells, of which most hold no table."""
    own = {id(table) for table in rows[0].iterancestors("table")}
    for others in tables:
        cells = [cell for row in others for cell in _cells(row)]
        is_around = others is not rows and id(next(others[0].iterancestors("table"))) in own
        alone = [cell for cell in cells if cell.find(".//table") is None and _text(cell)]
        if is_around and len(alone) > max(3, len(cells) // 2, sum(map(len, map(_cells, rows)))):
            return True
    return False


def declared_encoding(content: bytes) -> str | None:
    """The encoding that a page declares, in the names of Python; None if it declares none."""
    declared = _DECLARED.search(content[:_WITHIN])
    if not declared:
        return None
    encoding = declared[1].decode().lower()
    return "cp1252" if encoding in _WINDOWS_1252 else encoding


def _is_in_hidden(table: Any) -> bool:
    """Whether an element around the table is hidden. Some pages are hidden until they load."""
    return any(_is_hidden(it) for it in table.iterancestors() if it.tag not in ("html", "body"))


def _rows(table: Any) -> list[Any]:
    """The visible <tr> with cells that are the table's own, not those of a table in a cell."""
    rows = [
        row
        for row in table.iter("tr")
        if next(row.iterancestors("table")) is table
        and _cells(row)
        and not any(map(_is_hidden, (row, row.getparent(), table)))
    ]
    # The foot may stand before the body, and the head after it.
    order = {table.find("thead"): 0, table.find("tfoot"): 2}
    return sorted(rows, key=lambda row: order.get(row.getparent(), 1))


def _cells(row: Any) -> list[Any]:
    return [cell for cell in row if cell.tag in ("td", "th") and not _is_hidden(cell)]


def _is_hidden(element: Any) -> bool:
    return element.get("hidden") is not None or _HIDDEN.search(element.get("style", "")) is not None


def _described(rows: list[Any]) -> str:
    name = ", ".join(map(_text, _cells(rows[0])))
    return f"{len(rows)} rows, {cut(name, _LONGEST_NAME)!r}"


def _with_header(rows: list[Any]) -> Rows:
    lines = _expanded(rows)
    width = len(lines[0])
    title = ""
    while len(rows) > 2 and _spans_all(rows[0], width):  # a title over all columns
        title = title or lines[0][0]
        rows, lines = rows[1:], lines[1:]
    caption = next(rows[0].iterancestors("table")).find("caption")
    title = title if caption is None else _text(caption)
    first = rows[0].getparent()
    in_head = sum(row.getparent() is first for row in rows) if first.tag == "thead" else 0
    if not in_head:
        while (
            in_head < len(rows)
            and _has_only_headings(rows[in_head])
            and not _spans_all(rows[in_head], width)
            and (in_head == 0 or _is_header(lines[in_head], lines[0]))
        ):
            in_head += 1
    # Without any heading the rows decide, as in a spreadsheet.
    has_headings = in_head or any(cell.tag == "th" for row in rows for cell in _cells(row))
    are_facts = all([cell.tag for cell in _cells(row)] == ["th", "td"] for row in rows)
    if not in_head and width == 2 and len(rows) > 1 and are_facts:  # as beside an article
        lines = [["key", "value"], *lines]
        return Rows(lines, range(len(lines)), header_rows=1, title=title)
    if in_head in (0, len(rows)):
        in_head = 1
    columns = zip(*lines[:in_head], strict=True)
    header = [" ".join(text for text, _ in itertools.groupby(filter(None, c))) for c in columns]
    heads = [lines[0]] if _has_only_headings(rows[0]) else []
    body = [
        [line[0], *[""] * (width - 1)] if _spans_all(row, width) else line  # a section's heading
        for row, line in zip(rows[in_head:], lines[in_head:], strict=True)
        if line not in heads or not _has_only_headings(row)  # not the header again
    ]
    table = [header, *(filter(any, body) if any(map(any, body)) else body)]
    return Rows(table, header_rows=1 if has_headings else None, title=title)


def _spans_all(row: Any, width: int) -> bool:
    cells = _cells(row)
    is_one = width > 1 and len(cells) == 1 and _text(row) != ""
    return is_one and _span(cells[0], "colspan") >= width


def _has_only_headings(row: Any) -> bool:
    return all(cell.tag == "th" for cell in _cells(row))


def _is_header(line: list[str], first: list[str]) -> bool:
    """Whether a row of headings below the first belongs to them: not "Assets" or "Total, 6, 8"."""
    if line[0] and set(line[1:]) <= {line[0], ""}:
        return False
    cells = [read_cell(text) for text in line[1:]]
    has_amounts = bool(cells) and all(is_value(it) and not it.is_year for it in cells)
    return not has_amounts or len(set(first)) < len(first)


def _expanded(rows: list[Any]) -> list[list[str]]:
    """The texts of all cells in rows of the same width; spanning cells are repeated."""
    lines: list[list[str]] = []
    spanning: dict[int, tuple[str, int]] = {}  # by column: a text, and how many rows it still spans
    num_cells = 0
    left_in_group = Counter(row.getparent() for row in rows)
    for row in rows:
        left = left_in_group[row.getparent()]
        left_in_group[row.getparent()] -= 1
        line: list[tuple[str, int]] = []  # texts, and how many rows each spans from here on
        for cell in _cells(row):
            while len(line) in spanning:
                line.append(spanning.pop(len(line)))
            text, rowspan = _text(cell), _span(cell, "rowspan") or left  # 0 spans to the end
            for _ in range(min(max(1, _span(cell, "colspan")), _MOST_COLUMNS_SPANNED)):
                spanning.pop(len(line), None)
                line.append((text, min(rowspan, left)))
            check_size(num_cells + len(line))
        while spanning:
            line.append(spanning.pop(len(line), ("", 0)))
        num_cells += len(line)
        check_size(num_cells)
        lines.append([text for text, _ in line])
        spanning = {column: (text, n - 1) for column, (text, n) in enumerate(line) if n > 1}
    width = max(map(len, lines))
    check_size(width * len(lines))
    return [line + [""] * (width - len(line)) for line in lines]


def _span(cell: Any, name: str) -> int:
    number = _SPAN.match(cell.get(name, "1"))
    return int(number[1]) if number else 1


def _text(cell: Any) -> str:
    text = " ".join("".join(_pieces(cell)).split())
    return text or " ".join(filter(None, map(_sign, cell.iter("img", "input"))))


def _sign(element: Any) -> str:
    """The text of a picture or of a box to tick that is alone in a cell."""
    if element.tag == "img":
        return str(element.get("alt", "")).strip()
    if element.get("type", "").lower() != "checkbox":
        return ""
    return "no" if element.get("checked") is None else "yes"


def _field(element: Any) -> str:
    """The text in a field of a form: of a list the option that is chosen."""
    if element.tag == "input":
        kind = element.get("type", "text").lower()
        is_chosen = kind == "radio" and element.get("checked") is not None
        return str(element.get("value", "")) if kind in _FIELDS or is_chosen else ""
    options = list(element.iter("option"))
    chosen = [option for option in options if option.get("selected") is not None]
    shown = chosen or ([] if element.get("multiple") is not None else options[:1])
    return ", ".join("".join(option.itertext()).strip() for option in shown)


def _pieces(element: Any) -> Iterator[str]:
    """The texts in an element, with a blank for each new line on the page."""
    left = [element]  # no recursion: elements may be nested deeper than calls
    last = ""  # the last characters that are no blanks
    while left:
        piece = left.pop()
        if not isinstance(piece, str):
            if piece is not element and _is_raised(piece):
                piece = _superscript("".join(piece.itertext()).strip(), last)
            else:
                left.extend(reversed(_inside(piece)))
                continue
        yield piece
        last = (last + " ".join(piece.split()))[-_CHARACTERS_BEFORE:]


def _is_raised(element: Any) -> bool:
    classes = f"{element.get('class', '')} {element.get('role', '')}"
    is_raised = _RAISED_STYLE.search(element.get("style", "")) or _NOTE_CLASS.search(classes)
    return element.tag == "sup" or (element.tag in ("span", "a") and bool(is_raised))


def _inside(element: Any) -> list[Any]:
    parts: list[Any] = [element.text or ""]
    for child in element:
        apart = " " if child.tag in _APART else ""
        parts.append(apart)
        # The tag of a comment is no text.
        is_text = isinstance(child.tag, str) and child.tag not in _NOT_TEXT
        if child.tag in ("input", "select"):
            parts.append(_field(child))
        elif is_text and not (_is_hidden(child) or _UNSEEN.search(child.get("style", ""))):
            parts.append(child)
        parts.append(apart + (child.tail or ""))
    return parts


def _superscript(text: str, last: str) -> str:
    """The value of a raised text after others: marks of footnotes have none."""
    is_of_roman = text.lower() in ("e", "o", "a") and last[-1:] in ("I", "V", "X")  # XXe
    if is_of_roman or _CENTS.fullmatch(text) or text.lower() in _KEPT_RAISED:
        return text
    if _HAS_POWERS.search(last) and _POWER_OF_UNIT.fullmatch(text):
        return text.translate(_RAISED)
    if _TIMES_TEN.search(last) and _POWER.fullmatch(text):
        return f"^{text}"
    return "" if _MARK.fullmatch(text) else f" {text}"


_RAISED_STYLE = re.compile(r"vertical-align\s*:\s*super", re.IGNORECASE)
_NOTE_CLASS = re.compile(r"foot-?note|noteref", re.IGNORECASE)
_CHARACTERS_BEFORE = 12
_KEPT_RAISED = {"st", "nd", "rd", "th", "er", "re", "ème", "tm", "®", "™"}
_HAS_POWERS = re.compile(r"(?:^|[^^a-zA-Z])(?:[a-zA-Z]|[kcdm]?m|ft|in|mi|yd)$")
_TIMES_TEN = re.compile(r"[×x·*] ?10$")
_CENTS = re.compile(r"[.,]\d\d")
_POWER = re.compile(r"[-−+]?\d{1,3}")
_POWER_OF_UNIT = re.compile(r"[23]|[-−][1-4]")
_RAISED = str.maketrans("-−1234", "⁻⁻¹²³⁴")
_MARK = re.compile(r".{1,6}|(?:\[[^\[\]]*\]\s*)+|(?:note|nb|fn) ?\w{1,3}", re.IGNORECASE)
