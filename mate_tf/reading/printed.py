"""Tables as databases and libraries print them: in boxes, or each row below the other."""

import re
from typing import Any

from mate_tf.reading.layout import Rows

_BARS = re.compile("[\u2502\u2503\u2506\u2507\u250a\u250b\u2551\u254e\u254f]")
_RULE = re.compile(r"(?m)^[ \t]*[\u2500-\u257f][\u2500-\u257f ]*[\u2500-\u257f][ \t]*$")
_DASHES = re.compile(r"-+|\u2500+|")
_HIDDEN = re.compile(r"\.\.\.|[\u2026\u00b7\u22ee]|")
_RECORD = re.compile(r"(?m)^(?:-\[ RECORD \d+ \][-+]*|\*{5,} *\d+\. row *\*{5,})[ \t]*$")


def is_box(text: str) -> bool:
    """Whether a text has lines with upright bars, and others that are rules between them."""
    head = text[:20_000]
    return bool(_RULE.search(head)) and len(_BARS.findall(head)) > 2


def read_box_rows(text: str, name: str) -> Rows:
    """The rows of a table in a box, whose header is above its first inner rule.

    A row that is written in several lines, between rules, becomes one.
    """
    groups: list[list[list[str]]] = [[]]
    titles, assumed = [], []
    for line in text.splitlines():
        if _RULE.match(line):
            groups.append([])
        elif _BARS.search(line):
            cells = _BARS.split(line.strip())
            groups[-1].append([cell.strip() for cell in cells[1:-1]])
        elif line.strip() and not any(groups):
            titles.append(line.strip())
    header, *bodies = list(filter(None, groups)) or [[]]
    header = [row for row in header if not all(map(_DASHES.fullmatch, row))]
    width = len(header[0]) if header else 0
    parts = [[row for row in body if len(row) == width] for body in bodies]
    notes = [" ".join(row) for body in bodies for row in body if len(row) != width]
    is_wrapped = sum(map(bool, parts)) > 1 and any("" in row for body in parts for row in body[1:])
    rows = [
        row
        for body in filter(None, parts)
        for row in ([_joined(body)] if is_wrapped else body)
        if not all(map(_HIDDEN.fullmatch, row)) or not any(row)
    ]
    if len(rows) < sum(map(len, parts)) and not is_wrapped:
        assumed.append("Some rows are left out where the table was printed.")
    if titles:
        assumed.append(f"'{titles[0]}' above it is the title.")
    assumed += [f"The note '{note}' below the table is left out." for note in notes]
    kept: list[list[Any]] = [*header, *rows]
    return Rows(
        kept, range(1, len(kept) + 1), name, "row", True, len(header), "".join(titles[:1]), assumed
    )


def _joined(rows: list[list[str]]) -> list[str]:
    return [" ".join(filter(None, cells)) for cells in zip(*rows, strict=True)]


def is_records(text: str) -> bool:
    """Whether a text begins with the line above a row of psql -x or of MySQL's output in rows."""
    return _RECORD.match(text.lstrip()) is not None


def read_record_rows(text: str, name: str) -> Rows:
    """The rows of a table that is printed as a name and a value in each line."""
    records = []
    for block in _RECORD.split(text)[1:]:
        mark = "|" if "|" in block else ":"
        pairs = (line.split(mark, 1) for line in block.splitlines() if mark in line)
        records.append({key.strip(): value.strip() for key, value in pairs})
    header = list(dict.fromkeys(key for record in records for key in record))
    rows: list[list[Any]] = [header, *([record.get(key) for key in header] for record in records)]
    return Rows(rows, range(1, len(rows) + 1), name, header_rows=1)
