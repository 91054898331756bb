"""Columns of a fixed width, as programs print them: what is blank in all lines separates them."""

import itertools
import re

from mate_tf.reading.header import is_value
from mate_tf.reading.layout import MOST_CELLS
from mate_tf.tables.units import UNITS
from mate_tf.tables.values import read_cell

RUN = re.compile(r"\S {2,}(?=\S)")  # of blanks
_RUN_OF_NAMES = re.compile(r"[^\s,.:] {2,}(?=\S)")  # not "5 days,  2:15"
_RULE = re.compile(r" *[-=\u2500-\u257f]{2}[-=\u2500-\u257f ]*")
_RULES = re.compile(r" *-+(?: +-+)+ *")  # below the names of columns
_BOX = re.compile("[\u2500-\u257f]")
_WORD = re.compile("[^ ]+")
_LONGEST_LINE = 10_000  # characters
_MOST_TITLES = 6
_LEAST_SHARE = 0.6  # of the lines that have runs of blanks
_LINES_LOOKED_AT = 200


def cut_by_rule(text: str) -> list[list[str]]:
    """Rows of columns as wide as the dashes in the second line; none for other texts."""
    lines = text.splitlines()
    if len(lines) < 3 or not _RULES.fullmatch(lines[1]) or "\t" in text:
        return []
    starts = [column.start() for column in re.finditer("-+", lines[1])]
    if len(lines) * len(starts) > MOST_CELLS:
        return []
    lines[1] = ""
    last = max(number for number, line in enumerate(lines) if line.strip())
    notes = [lines.pop(last).strip()] if last > 3 and not lines[last - 1].strip() else []
    if any(line[start - 1 : start].strip() for line in lines for start in starts[1:]):
        return []  # a cell is longer
    return [*_cut(lines, list(itertools.zip_longest(starts, starts[1:]))), *([it] for it in notes)]


def cut_by_blanks(text: str) -> list[list[str]]:
    """Rows of columns that are separated by places that are blank in all lines.

    Each line has a row, blank lines an empty one, titles and notes one of one cell. None where
    fewer than two columns are found, or a cell has two blanks in it.
    """
    lines = ["" if _RULE.fullmatch(line) else line.rstrip() for line in text.splitlines()]
    filled = [number for number, line in enumerate(lines) if line.strip()]
    shown = [lines[number] for number in filled]
    is_short = max(map(len, shown), default=0) <= _LONGEST_LINE
    if len(shown) < 2 or not is_short or "\t" in text or not _has_runs(shown):
        return []
    first, last, spans = 0, len(shown), _spans(shown)
    for number in range(1, min(_MOST_TITLES, len(shown) - 1)):
        title = shown[number - 1]
        below = _spans(shown[number:])
        if _RUN_OF_NAMES.search(title.strip()):
            break
        is_comment = title.startswith("#") and len(title.split()) != len(below)
        if (len(below) > len(spans) or is_comment) and _is_title(title, len(below)):
            first, spans = number, below
    while last > first + 2 and not RUN.search(shown[last - 1].strip()):
        above = _spans(shown[first : last - 1])
        if len(above) <= len(spans):
            break
        last, spans = last - 1, above
    shown[first], spans = _with_last_name_apart(shown[first:last], spans)
    rows = _cut(shown, spans)
    cells = (cell for row in rows[first:last] for cell in row[:-1])
    if len(spans) < 2 or any(map(RUN.search, cells)) or _has_runs([row[-1] for row in rows]):
        return []
    for number in (*range(first), *range(last, len(shown))):
        rows[number] = [shown[number].strip()]
    by_line = dict(zip(filled, rows, strict=True))
    return [by_line.get(number, []) for number in range(len(lines))]


def check_single(text: str) -> None:
    """Raises ValueError if a text of a single column was printed in several."""
    lines = [line for line in text.splitlines()[:_LINES_LOOKED_AT] if line.strip()]
    if len(lines) > 1 and (_has_runs(lines) or any(map(_BOX.search, lines))):
        raise ValueError(
            "expected columns that a delimiter or blanks below each other separate, got runs of "
            "blanks or boxes; put a delimiter such as a tab between the columns and set delimiter, "
            "or set skip_rows if other lines are above the table"
        )


def _has_runs(lines: list[str]) -> bool:
    lines = lines[:_LINES_LOOKED_AT]
    runs = sum(RUN.search(line) is not None for line in lines)
    return runs >= _LEAST_SHARE * len(lines)


def _is_title(line: str, num_columns: int) -> bool:
    words = line.split()
    has_numbers = any(word[0].isdigit() for word in words)
    is_list = line.count(", ") > 2  # as above the columns of `w`
    return len(words) < num_columns or line.startswith("#") or not has_numbers or is_list


def _spans(lines: list[str]) -> list[tuple[int, int]]:
    """Where columns begin and end; a part of a name, or of cells, belongs to the one before it."""
    taken = 0  # bits of the places that are not blank, the first one last
    for line in lines:
        for word in _WORD.finditer(line):
            taken |= (1 << word.end()) - (1 << word.start())
    spans = [part.span() for part in re.finditer("1+", f"{taken:b}"[::-1])]
    rows = _cut(lines, spans)
    is_header = (2 * sum(map(bool, row)) >= len(spans) for row in rows)
    header = next((number for number, is_one in enumerate(is_header) if is_one), 0)
    merged = spans[:1]
    is_before = False  # whether the last one is a part of the next one
    for index in range(1, len(spans)):
        begin, end = spans[index]
        is_near = begin == merged[-1][1] + 1
        is_part = not rows[header][index] or not any(row[index] for row in rows[header + 1 :])
        if is_near and (is_part or is_before):
            merged[-1] = (merged[-1][0], end)
        else:
            merged.append((begin, end))
        is_before = is_part and not is_near
    return merged


def _with_last_name_apart(
    lines: list[str], spans: list[tuple[int, int]]
) -> tuple[str, list[tuple[int, int]]]:
    """The first line, and columns of which the last is cut in two where its names are a place off.

    So `w` prints "PCPU WHAT" above "0.05s vim": values end where the second name begins.
    """
    header, *body = lines
    begin, end = spans[-1]
    place = header.rstrip().rfind(" ") + 1
    is_pair = place > begin and "" not in header[begin:place].split(" ")[:-1]
    values, others = zip(*((it[begin:place], it[place + 1 :].strip()) for it in body), strict=True)
    are_apart = is_pair and all(others) and {line[place : place + 1] for line in body} == {" "}
    if not are_apart or not all(is_value(read_cell(value)) for value in values):
        return header, spans
    if UNITS.issuperset(others) or any(is_value(read_cell(other)) for other in others):
        return header, spans
    header = f"{header[: place - 1]} {header[place - 1 :]}"
    return header, [*spans[:-1], (begin, place), (place, end)]


def _cut(lines: list[str], spans: list[tuple[int, int]]) -> list[list[str]]:
    return [[line[begin:end].strip() for begin, end in spans] for line in lines]
