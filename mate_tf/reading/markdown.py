"""Tables in Markdown, and as databases print them: +----+----+."""

import re

from mate_tf.reading.layout import Rows, chosen_table

_RULE = re.compile(
    r"(?m)^[ \t]*+(?:[|+][ \t]*+)?:?[-=]++:?[ \t]*+(?:[|+][ \t]*+:?[-=]++:?[ \t]*+)*+"
    r"(?:[|+][ \t]*+)?$"
)
_ALIGNED = re.compile(r"\s*\|(?:\s*<[lrc]?\d*>\s*\|)+\s*")  # widths of Org
_STYLE = re.compile(r"\*\*(.+?)\*\*|`(.+?)`|\[([^\[\]]+)\]\([^()]*\)|<br */?>")
_NOTE = re.compile(r"\[\^[^\[\]]*\]|<sup>[^<>]{1,6}</sup>|\^[^\s^|]{1,4}\^")


def is_markdown(text: str) -> bool:
    """Whether a rule of bars follows a line with bars."""
    rule = _RULE.search(text[:20_000])
    if rule and rule[0].lstrip()[0] in "+|" and "|" not in text[: rule.start()]:  # above the header
        rule = _RULE.search(text[:20_000], rule.end())
    return bool(rule and re.search(r"[|+]", rule[0]) and "|" in text[: rule.start()])


def read_markdown_rows(text: str, name: str, which: int | None) -> Rows:
    """The rows of a table: a header, a rule such as |---|---|, and rows with bars."""
    lines = [line for line in text.splitlines() if not _ALIGNED.fullmatch(line)]
    tables: list[tuple[int, list[list[str]]]] = []
    end = 0  # of the last table
    for number, line in enumerate(lines[1:], start=1):
        if number > end and _RULE.match(line) and "|" in lines[number - 1]:
            body = []
            for end in range(number + 1, len(lines)):
                below = lines[end]
                if _RULE.fullmatch(below):
                    continue
                if "|" in below:
                    body.append(_cells(below))
                elif not below.lstrip().startswith("+"):  # a rule between rows
                    break
            body = [row for row in body if any(row)] or body
            tables.append((number, [_cells(lines[number - 1]), *body]))
    barred = [line for line in lines if line.lstrip().startswith("|")]
    if not tables and len(barred) > 1:  # of Org, without a rule
        return Rows(list(map(_cells, barred)), range(1, 1 + len(barred)), name, "row", True)
    if not tables:
        raise ValueError("expected a table with bars, such as |a|b|, got none")
    described = [f"{len(rows)} rows, {', '.join(rows[0])!r}" for _, rows in tables]
    first, rows = tables[chosen_table(which, described)]
    numbers = [first, *range(first + 2, first + 1 + len(rows))]
    return Rows(rows, numbers, name, "line", True, header_rows=1)


def _cells(line: str) -> list[str]:
    line = line.strip().removeprefix("|")
    if line.endswith("|") and not line.endswith("\\|"):
        line = line[:-1]
    cells = (
        cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", _NOTE.sub("", line))
    )
    return [_STYLE.sub(lambda it: next(filter(None, it.groups()), " "), cell) for cell in cells]
