"""Tables as databases and libraries print them: in boxes, or each row below the other."""

import re
from typing import Any

from mate_tf.reading.fixed_width import cut_by_blanks
from mate_tf.reading.layout import Rows

_BARS = re.compile("[\u2502\u2503\u2506\u2507\u250a\u250b\u2551\u254e\u254f]")
_RULE = re.compile(r"(?m)^[ \t]*[\u2500-\u257f][\u2500-\u257f ]*[\u2500-\u257f][ \t]*$")
_NAMED_RULE = re.compile("[\u250c\u250f]\u2500*(.*\\w.*?)\u2500*[\u2510\u2513]")
_ASCII = {ord(bar): "|" for bar in "\u2502\u2503"} | {ord("\u2500"): "-", ord("\u253c"): "+"}
_DASHES = re.compile(r"-+|\u2500+|")
_HIDDEN = re.compile(r"\.\.\.|[\u2026\u00b7\u22ee]|")
_OPEN_RULE = re.compile(r"[ \t]*[|+]?-[-+|]+-[|+]?[ \t]*")
_RUN = re.compile(r"\S {2,}(?=\S)")
_NUMBER = re.compile(r"^ *\d+\.(?= \|)")
_PAIR = re.compile(r"[ \t]*([^\W\d][^:=|,;\t]{0,60}?)[ \t]*[:=|](?:[ \t]+(.*))?")
_BLANK_LINES = re.compile(r"\n(?:[ \t\r]*\n)+")
_RECORD = re.compile(r"(?m)^(?:\+?-\[ RECORD \d+ \][-+]*|\*{5,} *\d+\. row *\*{5,})[ \t]*$")


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
        elif names := _NAMED_RULE.fullmatch(line.strip()):  # of ClickHouse
            groups += [[re.split("\u2500*[\u252c\u2533]\u2500*", names[1])], []]
        elif _BARS.search(line):
            cells = [cell.strip() for cell in _BARS.split(line)]
            groups[-1].append(cells[1:-1] if _BARS.match(line.strip()) else cells)
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


def is_open_box(text: str) -> bool:
    """Whether blanks separate the columns within a box, as Stata and Julia print tables."""
    lines = text[:20_000].translate(_ASCII).splitlines()
    rows = [line for line in lines if "|" in line and not _OPEN_RULE.fullmatch(line)]
    has_rule = any(_OPEN_RULE.fullmatch(line) and not line.isspace() for line in lines)
    have_runs = [any(map(_RUN.search, line.split("|"))) for line in rows]
    return has_rule and len(rows) > 1 and 2 * sum(have_runs) > len(rows)


def read_open_box_rows(text: str, name: str) -> Rows:
    """The rows of a table in a box that has no bars between its columns, without their numbers.

    ValueError if places that are blank in all lines do not separate the columns.
    """
    titles, lines = [], []
    for line in text.translate(_ASCII).splitlines():
        if line.startswith(". "):  # a command
            titles.append(line.removeprefix(". ").strip())
        elif not _OPEN_RULE.fullmatch(line):
            lines.append(_NUMBER.sub(lambda it: " " * len(it[0]), line).replace("|", " "))
    filled = list(filter(str.strip, lines))
    while len(filled) > 2 and not _RUN.search(filled[0].strip()) and _RUN.search(filled[1]):
        titles.append(filled.pop(0).strip())  # a name over several columns
    rows = cut_by_blanks("\n".join(filled))
    if not rows:
        raise ValueError("expected columns that blanks separate in a box, got others; print bars")
    assumed = [f"'{title}' above it is the title." for title in titles[:1]]
    numbers = range(1, len(rows) + 1)
    return Rows(rows, numbers, name, "row", True, title=" ".join(titles[:1]), assumed=assumed)


def _joined(rows: list[list[str]]) -> list[str]:
    return [" ".join(filter(None, cells)) for cells in zip(*rows, strict=True)]


def is_records(text: str) -> bool:
    """Whether a text has a name and a value in each line, of one row below the other.

    So print psql -x and MySQL, with a line above each row, and PowerShell and DuckDB, with a blank
    line between two.
    """
    if _RECORD.match(text.lstrip()):
        return True
    if not _PAIR.match(text.lstrip("\r\n")):
        return False
    blocks = _BLANK_LINES.split(text[:20_000].strip())
    pairs = [list(map(_PAIR.fullmatch, block.splitlines())) for block in blocks]
    firsts = {block[0] and block[0][1] for block in pairs}
    return len(pairs) > 1 and len(pairs[0]) > 1 and len(firsts) == 1 and all(map(all, pairs[:-1]))


def read_record_rows(text: str, name: str) -> Rows:
    """The rows of a table that is printed as a name and a value in each line."""
    has_lines = _RECORD.match(text.lstrip()) is not None
    blocks = _RECORD.split(text)[1:] if has_lines else _BLANK_LINES.split(text.strip())
    records = []
    for block in blocks:
        pairs = (_PAIR.fullmatch(line.strip("| ")) for line in block.splitlines())
        records.append({pair[1]: (pair[2] or "").strip() for pair in pairs if pair})
    header = list(dict.fromkeys(key for record in records for key in record))
    rows: list[list[Any]] = [header, *([record.get(key) for key in header] for record in records)]
    return Rows(rows, range(1, len(rows) + 1), name, header_rows=1)
