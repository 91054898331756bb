r"""Tables within texts: Markdown and Org, LaTeX, Jira, and those that programs print.

Databases and libraries print boxes, with bars or blanks between the columns, or each row below the
other. LaTeX is read from \begin{tabular} on; Jira, Confluence and DokuWiki have ||name||age||.
"""

import re
from typing import Any

from mate_tf.reading.delimited import RUN, cut_by_blanks
from mate_tf.reading.layout import Rows, Source, chosen_table

_LOOKED_AT = 20_000  # characters by which a notation is known

# Markdown and Org.
_MARKDOWN_RULE = re.compile(
    r"(?m)^[ \t]*+(?:[|+][ \t]*+)?:?[-=]++:?[ \t]*+(?:[|+][ \t]*+:?[-=]++:?[ \t]*+)*+"
    r"(?:[|+][ \t]*+)?$"
)
_ALIGNED = re.compile(r"\s*\|(?:\s*<[lrc]?\d*>\s*\|)+\s*")  # widths of Org
_EMPHASIS = re.compile(r"\*\*(.+?)\*\*|`(.+?)`|\[([^\[\]]+)\]\([^()]*\)|<br */?>")
_FOOTNOTE = re.compile(r"\[\^[^\[\]]*\]|<sup>[^<>]{1,6}</sup>|\^[^\s^|]{1,4}\^")


def is_markdown(text: str) -> bool:
    """Whether a rule of bars follows a line with bars."""
    rule = _MARKDOWN_RULE.search(text[:_LOOKED_AT])
    if rule and rule[0].lstrip()[0] in "+|" and "|" not in text[: rule.start()]:  # above the header
        rule = _MARKDOWN_RULE.search(text[:_LOOKED_AT], rule.end())
    return bool(rule and re.search(r"[|+]", rule[0]) and "|" in text[: rule.start()])


def read_markdown_rows(source: Source) -> Rows:
    """The rows of a table: a header, a rule such as |---|---|, and rows with bars."""
    lines = [line for line in source.text.splitlines() if not _ALIGNED.fullmatch(line)]
    tables: list[tuple[int, list[list[str]]]] = []
    end = 0  # of the last table
    for number, line in enumerate(lines[1:], start=1):
        if number > end and _MARKDOWN_RULE.match(line) and "|" in lines[number - 1]:
            body = []
            for end in range(number + 1, len(lines)):
                below = lines[end]
                if _MARKDOWN_RULE.fullmatch(below):
                    continue
                if "|" in below:
                    body.append(_barred_cells(below))
                elif not below.lstrip().startswith("+"):  # a rule between rows
                    break
            body = [row for row in body if any(row)] or body
            tables.append((number, [_barred_cells(lines[number - 1]), *body]))
    barred = [line for line in lines if line.lstrip().startswith("|")]
    if not tables and len(barred) > 1:  # of Org, without a rule
        return Rows(list(map(_barred_cells, barred)), is_ragged=True)
    if not tables:
        raise ValueError("expected a table with bars, such as |a|b|, got none")
    first, rows = tables[chosen_table(source.which, (_described(rows) for _, rows in tables))]
    numbers = [first, *range(first + 2, first + 1 + len(rows))]
    return Rows(rows, numbers, "line", is_ragged=True, header_rows=1)


def _described(rows: list[list[str]]) -> str:
    return f"{len(rows)} rows, {', '.join(rows[0])!r}"


def _barred_cells(line: str) -> list[str]:
    line = line.strip().removeprefix("|")
    if line.endswith("|") and not line.endswith("\\|"):
        line = line[:-1]
    cells = re.split(r"(?<!\\)\|", _FOOTNOTE.sub("", line))
    return [
        _EMPHASIS.sub(
            lambda it: next(filter(None, it.groups()), " "), cell.strip().replace("\\|", "|")
        )
        for cell in cells
    ]


# LaTeX.
_BEGIN = re.compile(r"\\begin\{(tabular[xy]?\*?|longtable|tblr|array)\}")
_TABULAR = re.compile(rf"{_BEGIN.pattern}(.*?)\\end\{{\1\}}", re.DOTALL)
_GROUP = r"\{(?:[^{}]|\{[^{}]*\})*\}"
_COLUMNS = re.compile(rf"\s*(?:\[[^\]]*\])?\s*{_GROUP}")
_CAPTION = re.compile(rf"\\caption(?:\[[^\]]*\])?({_GROUP})")
_COMMENT = re.compile(r"(?<!\\)%.*")
_RULE = re.compile(r"\\(?:hline|(?:top|mid|bottom)rule(?:\[[^\]]*\])?|endhead|endfirsthead)")
_NOTHING = re.compile(
    r"\\(?:cmidrule(?:\([^)]*\))?\{[^}]*\}|cline\{[^}]*\}|addlinespace(?:\[[^\]]*\])?|label\{[^}]*\}|"
    r"endfoot|endlastfoot|centering|bfseries|itshape|small|rowcolor(?:\[[^\]]*\])?\{[^}]*\})"
)
_ROW_END = re.compile(r"\\\\\*?(?:\[[^\]]*\])?|\\tabularnewline")
_CELL_END = re.compile(r"(?<!\\)&")
_SPANNING = re.compile(rf"\s*\\multicolumn\{{(\d{{1,3}})\}}\s*{_GROUP}\s*({_GROUP})")
_ROWS_SPANNED = re.compile(rf"\\multirow(?:\[\w\])?\{{[^}}]*\}}\s*(?:{_GROUP}|\*)\s*({_GROUP})")
_COMMAND = re.compile(r"\\[a-zA-Z]+\*?\s*\{([^{}]*)\}")


def is_latex(text: str) -> bool:
    """Whether a text has the begin of a table of LaTeX."""
    return _BEGIN.search(text) is not None


def read_latex_rows(source: Source) -> Rows:
    r"""The rows of a tabular; those above its first inner rule are the header.

    Commands are left out, but not their texts. A cell over several columns stands in the first.
    """
    text = _COMMENT.sub("", source.text)
    tables = [_tabular(found[1], found[2]) for found in _TABULAR.finditer(text)]
    tables = [table for table in tables if table[0]]
    if not tables:
        raise ValueError("expected a tabular with rows and its end, got none")
    described = (_described(rows) for rows, _ in tables)
    rows, header_rows = tables[chosen_table(source.which, described)]
    captions = [_plain(found[1]) for found in _CAPTION.finditer(text)]
    title = captions[0] if len(captions) == len(tables) == 1 else ""
    return Rows(rows, header_rows=header_rows, title=title)


def _tabular(kind: str, body: str) -> tuple[list[list[str]], int | None]:
    for _ in range(2 if kind in ("tabularx", "tabular*", "tabulary") else 1):
        body = _COLUMNS.sub("", body, count=1)
    body = _RULE.sub("\0", _NOTHING.sub("", _CAPTION.sub("", body)))
    rows: list[list[str]] = []
    header_rows = None
    for line in _ROW_END.split(body):
        if line.strip("\0 \t\n"):
            if rows and line.lstrip().startswith("\0") and header_rows is None:
                header_rows = len(rows)
            cells: list[str] = []
            for cell in _CELL_END.split(line.replace("\0", "")):
                spanning = _SPANNING.match(cell)
                cells.append(_plain(spanning[2] if spanning else cell))
                cells += [""] * (int(spanning[1]) - 1 if spanning else 0)
            rows.append(cells)
    return rows, header_rows


def _plain(text: str) -> str:
    text = _ROWS_SPANNED.sub(r"\1", text)
    while (simpler := _COMMAND.sub(r"\1", text)) != text:
        text = simpler
    text = re.sub(r"(?<!\\)[${}]", "", text.replace("~", " ").replace(r"\,", " "))
    return " ".join(re.sub(r"\\([&%$_#{}])", r"\1", text).split())


# Jira, Confluence and DokuWiki.
_LINK = re.compile(r"\[([^\[\]|]+)\|[^\[\]]*\]")
_STRONG = re.compile(r"(?<!\w)([*_+])(\S(?:[^|]*?\S)?)\1(?!\w)")


def is_jira(text: str) -> bool:
    """Whether a text begins with a line such as ||name||age||, in DokuWiki ^ name ^ age ^."""
    return re.match(r"\s*(\|\||\^)[^\n]*\1[ \t]*\r?\n[ \t]*\|", text) is not None


def read_jira_rows(source: Source) -> Rows:
    """The rows of a table of Jira, Confluence or DokuWiki; links and bold cells are their texts."""
    rows = []
    for line in source.text.splitlines():
        if line.strip().startswith(("|", "^")):
            line = line.replace("^", "|") if line.strip().startswith("^") else line
            line = _LINK.sub(r"\1", line.strip()).replace("||", "|")
            cells = line.removeprefix("|").removesuffix("|").split("|")
            rows.append([_STRONG.sub(r"\2", cell.strip()) for cell in cells])
    return Rows(rows, unit="line", is_ragged=True, header_rows=1)


# Boxes and records.
_BARS = re.compile("[\u2502\u2503\u2506\u2507\u250a\u250b\u2551\u254e\u254f]")
_BOX_RULE = re.compile(r"(?m)^[ \t]*[\u2500-\u257f][\u2500-\u257f ]*[\u2500-\u257f][ \t]*$")
_NAMED_RULE = re.compile("[\u250c\u250f]\u2500*(.*\\w.*?)\u2500*[\u2510\u2513]")
_ASCII = {ord(bar): "|" for bar in "\u2502\u2503"} | {ord("\u2500"): "-", ord("\u253c"): "+"}
_DASHES = re.compile(r"-+|\u2500+|")
_HIDDEN = re.compile(r"\.\.\.|[\u2026\u00b7\u22ee]|")
_OPEN_RULE = re.compile(r"[ \t]*[|+]?-[-+|]+-[|+]?[ \t]*")
_NUMBER = re.compile(r"^ *\d+\.(?= \|)")
_PAIR = re.compile(r"[ \t]*([^\W\d][^:=|,;\t]{0,60}?)[ \t]*[:=|](?:[ \t]+(.*))?")
_BLANK_LINES = re.compile(r"\n(?:[ \t\r]*\n)+")
_RECORD = re.compile(r"(?m)^(?:\+?-\[ RECORD \d+ \][-+]*|\*{5,} *\d+\. row *\*{5,})[ \t]*$")


def is_box(text: str) -> bool:
    """Whether a text has lines with upright bars, and others that are rules between them."""
    head = text[:_LOOKED_AT]
    return bool(_BOX_RULE.search(head)) and len(_BARS.findall(head)) > 2


def read_box_rows(source: Source) -> Rows:
    """The rows of a table in a box, whose header is above its first inner rule.

    A row that is written in several lines, between rules, becomes one.
    """
    groups: list[list[list[str]]] = [[]]
    titles, assumed = [], []
    for line in source.text.splitlines():
        if _BOX_RULE.match(line):
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
    rows = [row for body in parts for row in body]
    if is_wrapped:
        columns = (zip(*body, strict=True) for body in filter(None, parts))
        rows = [[" ".join(filter(None, cells)) for cells in row] for row in columns]
    kept = [row for row in rows if not all(map(_HIDDEN.fullmatch, row)) or not any(row)]
    if len(kept) < len(rows) and not is_wrapped:
        assumed.append("Some rows are left out where the table was printed.")
    if titles:
        assumed.append(f"'{titles[0]}' above it is the title.")
    assumed += [f"The note '{note}' below the table is left out." for note in notes]
    kept = [*header, *kept]
    title = "".join(titles[:1])
    return Rows(kept, is_ragged=True, header_rows=len(header), title=title, assumed=assumed)


def is_open_box(text: str) -> bool:
    """Whether blanks separate the columns within a box, as Stata and Julia print tables."""
    lines = text[:_LOOKED_AT].translate(_ASCII).splitlines()
    rows = [line for line in lines if "|" in line and not _OPEN_RULE.fullmatch(line)]
    has_rule = any(_OPEN_RULE.fullmatch(line) and not line.isspace() for line in lines)
    have_runs = [any(map(RUN.search, line.split("|"))) for line in rows]
    return has_rule and len(rows) > 1 and 2 * sum(have_runs) > len(rows)


def read_open_box_rows(source: Source) -> Rows:
    """The rows of a table in a box that has no bars between its columns, without their numbers.

    ValueError if places that are blank in all lines do not separate the columns.
    """
    titles, lines = [], []
    for line in source.text.translate(_ASCII).splitlines():
        if line.startswith(". "):  # a command
            titles.append(line.removeprefix(". ").strip())
        elif not _OPEN_RULE.fullmatch(line):
            lines.append(_NUMBER.sub(lambda it: " " * len(it[0]), line).replace("|", " "))
    filled = list(filter(str.strip, lines))
    while len(filled) > 2 and not RUN.search(filled[0].strip()) and RUN.search(filled[1]):
        titles.append(filled.pop(0).strip())  # a name over several columns
    rows = cut_by_blanks("\n".join(filled))
    if not rows:
        raise ValueError("expected columns that blanks separate in a box, got others; print bars")
    assumed = [f"'{title}' above it is the title." for title in titles[:1]]
    return Rows(rows, is_ragged=True, title=" ".join(titles[:1]), assumed=assumed)


def is_records(text: str) -> bool:
    """Whether a text has a name and a value in each line, of one row below the other.

    So print psql -x, MySQL, PowerShell and DuckDB, with a line or a blank one between two rows.
    """
    if _RECORD.match(text.lstrip()):
        return True
    if not _PAIR.match(text.lstrip("\r\n")):
        return False
    blocks = _BLANK_LINES.split(text[:_LOOKED_AT].strip())
    pairs = [list(map(_PAIR.fullmatch, block.splitlines())) for block in blocks]
    firsts = {block[0] and block[0][1] for block in pairs}
    return len(pairs) > 1 and len(pairs[0]) > 1 and len(firsts) == 1 and all(map(all, pairs[:-1]))


def read_record_rows(source: Source) -> Rows:
    """The rows of a table that is printed as a name and a value in each line."""
    if _RECORD.match(source.text.lstrip()):
        blocks = _RECORD.split(source.text)[1:]
    else:
        blocks = _BLANK_LINES.split(source.text.strip())
    records = []
    for block in blocks:
        pairs = (_PAIR.fullmatch(line.strip("| ")) for line in block.splitlines())
        records.append({pair[1]: (pair[2] or "").strip() for pair in pairs if pair})
    header = list(dict.fromkeys(key for record in records for key in record))
    rows: list[list[Any]] = [header, *([record.get(key) for key in header] for record in records)]
    return Rows(rows, header_rows=1)
