r"""Tables of LaTeX, from \begin{tabular} on, and of Jira and Confluence: ||name||age||."""

import re

from mate_tf.reading.layout import Rows, chosen_table

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
_LINK = re.compile(r"\[([^\[\]|]+)\|[^\[\]]*\]")
_STRONG = re.compile(r"(?<!\w)([*_+])(\S(?:[^|]*?\S)?)\1(?!\w)")


def is_latex(text: str) -> bool:
    """Whether a text has the begin of a table of LaTeX."""
    return _BEGIN.search(text) is not None


def read_latex_rows(text: str, name: str, which: int | None = None) -> Rows:
    r"""The rows of a tabular; those above its first inner rule are the header.

    Commands are left out, but not their texts. A cell over several columns stands in the first.
    """
    text = _COMMENT.sub("", text)
    tables = [_tabular(found[1], found[2]) for found in _TABULAR.finditer(text)]
    tables = [table for table in tables if table[0]]
    if not tables:
        raise ValueError("expected a tabular with rows and its end, got none")
    described = [f"{len(rows)} rows, {', '.join(rows[0])!r}" for rows, _ in tables]
    rows, header_rows = tables[chosen_table(which, described)]
    captions = [_plain(found[1]) for found in _CAPTION.finditer(text)]
    title = captions[0] if len(captions) == len(tables) == 1 else ""
    return Rows(rows, range(1, len(rows) + 1), name, header_rows=header_rows, title=title)


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
    """The text of a cell without its commands."""
    text = _ROWS_SPANNED.sub(r"\1", text)
    while (simpler := _COMMAND.sub(r"\1", text)) != text:
        text = simpler
    text = re.sub(r"(?<!\\)[${}]", "", text.replace("~", " ").replace(r"\,", " "))
    return " ".join(re.sub(r"\\([&%$_#{}])", r"\1", text).split())


def is_jira(text: str) -> bool:
    """Whether a text begins with a line such as ||name||age||, in DokuWiki ^ name ^ age ^."""
    return re.match(r"\s*(\|\||\^)[^\n]*\1[ \t]*\r?\n[ \t]*\|", text) is not None


def read_jira_rows(text: str, name: str) -> Rows:
    """The rows of a table of Jira, Confluence or DokuWiki; links and bold cells are their texts."""
    rows = []
    for line in text.splitlines():
        if line.strip().startswith(("|", "^")):
            line = line.replace("^", "|") if line.strip().startswith("^") else line
            line = _LINK.sub(r"\1", line.strip()).replace("||", "|")
            cells = line.removeprefix("|").removesuffix("|").split("|")
            rows.append([_STRONG.sub(r"\2", cell.strip()) for cell in cells])
    return Rows(rows, range(1, len(rows) + 1), name, "line", True, header_rows=1)
