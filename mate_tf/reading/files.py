"""From a file of any kind to a Table. The content says what a file is."""

import codecs
import contextlib
import gc
import gzip
import io
import itertools
import json
import os
import re
import sys
import warnings
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

from mate_tf.reading import markups, sandbox, workbooks
from mate_tf.reading.delimited import read_delimited_rows
from mate_tf.reading.html import declared_encoding, read_html_rows
from mate_tf.reading.layout import MOST_CELLS, Rows, Source, lay_out
from mate_tf.reading.structures import read_json_line_rows, read_json_rows, read_parquet_rows
from mate_tf.reading.text_files import decode, open_bytes
from mate_tf.tables.cell_texts import are_texts
from mate_tf.tables.notations import DIRECTIONS
from mate_tf.tables.table import Table

STANDARD_INPUT = "-"


class Format(NamedTuple):
    """A kind of file. Its options are fields of `ReadOptions`."""

    title: str  # in sentences
    endings: str  # of names
    options: str
    read: Callable[[Source], Rows]
    is_one: Callable[[str], bool] | None = None  # by which a text is known
    in_sandbox: bool = False
    member: str | None = None  # of a zip archive, by which it is known


def is_workbook_named(path: str) -> bool:
    """Whether a file is a workbook by the ending of its name."""
    return _FORMAT_OF_ENDING.get(Path(path).suffix.lower()) in WORKBOOKS


def _workbooks(title: str, endings: str, open_book: Callable, member: str | None = None) -> Format:
    def read(source: Source) -> Rows:
        book = open_book(source.content, source.name)
        return workbooks.read_sheet_rows(book, source.sheet, source.show_hidden)

    return Format(
        title, endings, "header_rows skip_rows sheet show_hidden", read, None, True, member
    )


_OF_TEXT = "encoding header_rows"  # options
# Texts are of the first kind below by which they are known, or CSV.
FORMATS = {
    "csv": Format(
        "text with a delimiter",
        ".csv .tsv .tab .txt .dat",
        f"{_OF_TEXT} delimiter skip_rows",
        read_delimited_rows,
    ),
    "json": Format("JSON", ".json .geojson", "encoding which", read_json_rows),
    "jsonl": Format("JSON Lines", ".jsonl .ndjson", "encoding", read_json_line_rows),
    "html": Format(
        "a page of HTML",
        ".html .htm",
        f"{_OF_TEXT} skip_rows which",
        read_html_rows,
        in_sandbox=True,
    ),
    "latex": Format(
        "LaTeX", ".tex", f"{_OF_TEXT} which", markups.read_latex_rows, markups.is_latex
    ),
    "jira": Format("a table of Jira", "", _OF_TEXT, markups.read_jira_rows, markups.is_jira),
    "open box": Format(
        "a printed box without bars", "", _OF_TEXT, markups.read_open_box_rows, markups.is_open_box
    ),
    "box": Format("a printed box", "", _OF_TEXT, markups.read_box_rows, markups.is_box),
    "records": Format(
        "printed records", "", "encoding", markups.read_record_rows, markups.is_records
    ),
    "markdown": Format(
        "Markdown",
        ".md .markdown .org",
        f"{_OF_TEXT} which",
        markups.read_markdown_rows,
        markups.is_markdown,
    ),
    "parquet": Format("a Parquet file", ".parquet", "", read_parquet_rows, in_sandbox=True),
    "excel": _workbooks(
        "a workbook of Excel", ".xlsx .xlsm", workbooks.open_excel, "xl/workbook.xml"
    ),
    "excel 97": _workbooks("a workbook of Excel 97", ".xls", workbooks.open_excel_97),
    "excel binary": _workbooks(
        "a binary workbook of Excel", ".xlsb", workbooks.open_excel_binary, "xl/workbook.bin"
    ),
    "opendocument": _workbooks(
        "a workbook of OpenDocument", ".ods", workbooks.open_opendocument, "content.xml"
    ),
}
_FORMAT_OF_ENDING = {it: kind for kind, one in FORMATS.items() for it in one.endings.split()}
ENDINGS = tuple(_FORMAT_OF_ENDING)
WORKBOOKS = [kind for kind, one in FORMATS.items() if "sheet" in one.options]
_GZIP, _OLE = b"\x1f\x8b", b"\xd0\xcf\x11\xe0"  # what packed files and .xls begin with
# What files that hold no table begin with.
_OTHERS = {
    b"%PDF": "a PDF",
    b"\x89PNG": "a picture",
    b"\xff\xd8\xff": "a picture",
    b"GIF8": "a picture",
    b"PK\x03\x04": "a zip archive",
    b"7z\xbc\xaf": "an archive",
    b"Rar!": "an archive",
    b"BZh": "an archive of bzip2",
    b"\xfd7zXZ": "an archive of xz",
    b"\x28\xb5\x2f\xfd": "an archive of zstd",
    b"SQLite format 3": "a database of SQLite",
    b"ARROW1": "an Arrow file",
    b"FEA1": "a Feather file",
    b"{\\rtf": "a text of Word",
    b"%!PS": "PostScript",
    b"version https://git-lfs": "a pointer of Git LFS",
}
# What texts that hold no table, or one in a notation that is not read, begin with.
_OTHER_TEXTS = {
    "a dump of SQL": r"(?:(?:--|/\*|SET |BEGIN|PRAGMA |USE \w+;).*\n\s*)*"
    r"(?:CREATE (?:TABLE|DATABASE|SCHEMA|INDEX)\b|(?:INSERT|REPLACE) INTO\b|(?:DROP|ALTER) TABLE\b"
    r"|COPY .* FROM stdin\b|WITH \w+ AS \("
    r"|SELECT\s[\w*`\".,()\s]{1,500}?\sFROM\s+[\w`\".]+\s*(?:;|\n|(?:WHERE|JOIN|ORDER|GROUP)\b))",
    "ARFF": r"(?:%.*\n\s*)*@relation\b",
    "MediaWiki": r"(?:.*\n){0,50}\{\|.*\n[|!]|\{\|",
    "AsciiDoc": r"(?:\[.*\]\n|\.\w.*\n|=+ .*\n\s*)*\|===",
    "an ini file": r"(?:(?:[#;].*|[\w.-]+ *=.*)\n\s*)*\[{1,2}[\w .:-]+\]{1,2}[ \t]*\n"
    r"(?:[#;].*\n)*[\w. -]+=",
    "a log": r"(?:#.*\n){0,5}#Fields: |#separator |\[ *\d+\.\d{6}\] "
    r"|\S+ \S+ \S+ \[\d\d/\w{3}/\d{4}:|[a-z]{3} [ \d]\d \d\d:\d\d:\d\d \S+ [\w./-]+(?:\[\d+\])?:"
    r"|\[?\d{4}-\d\d-\d\d[T ][\d:.,]+\S* +\W*(?:DEBUG|INFO|WARN|WARNING|ERROR|FATAL|CRITICAL)\b"
    r"|(?:DEBUG|INFO|WARN|WARNING|ERROR|CRITICAL):[\w.]+:"
    r"|\[?(?:\d{4}[-/]\d\d[-/]\d\d[T ])?\d\d:\d\d:\d\d[\d:.,]*(?:Z|[+-][\d:]+)?\]? "
    r"[ \[\]\w.:#-]{0,40}(?:(?-i:\b(?:DEBUG|INFO|WARN|WARNING|ERROR|FATAL|CRITICAL)\b)"
    r"|\[(?:debug|info|notice|warn|error|crit)\])"
    r"|\d{4}-\d\d-\d\dT[\d:.+Z-]+ [\w.-]+ [\w./-]+(?:\[\d+\])?: "
    r"|(?-i:[IWEF])\d{4} [\d:.]+ +\d+ \S+:\d+\]"
    r"|(?:\w+=(?:\"[^\"\n]*\"|[^\s\",;]+) ){2}\w+=",
    "an e-mail": r"From \S+@.*\d{4}\n|(?:(?:From|To|Subject|Date|Received|Return-Path|Message-ID|"
    r"MIME-Version|Cc|Delivered-To|Reply-To|X-[\w-]+): .*\n(?:[ \t].*\n)*){3}",
    "a patch": r"diff --git |--- .+\n\+\+\+ ",
    "a program or its output": r"Traceback \(most recent|#!|#include\b|<\?php|def \w+\("
    r"|(?-i:import [\w., ]+\n\s*(?:import|from|def|class) |from [\w.]+ import )",
    "subtitles": r"WEBVTT|\d+\r?\n\d\d:\d\d:\d\d,\d{3} --> ",
    "FASTA": r">\S.*\n(?-i:[A-Z*-]{4,})\n",
    "an answer of HTTP": r"HTTP/\d\S* \d{3}\b",
    "reStructuredText with a directive": r"(?:.*\n){0,50}\.\. (?:csv-|list-)table::",
    "BibTeX": r"(?:%.*\n\s*)*@(?:article|book|inproceedings|misc|phdthesis|incollection)\{",
    "a calendar": r"BEGIN:VCALENDAR",
    "an address book": r"BEGIN:VCARD",
}
_OTHER_TEXTS_BEGIN = {what: re.compile(rf"\s*(?:{it})", re.I) for what, it in _OTHER_TEXTS.items()}
_PAIRS = "a name and a value in each line"
_YAML_COMMENT = re.compile(r"\s*(?:#.*)?|---\s*|%YAML.*")
_YAML_FIRST = re.compile(r"- +(?:[\w -]+: |\{).*|[\w-]+:\s*(?:&\w+)?")
_PAIR = re.compile(r"([^\W\d][\w.-]*(?: [\w.-]+)*) ?(?:= ?|: |:$)(?:[^\s=,;|]+(?: [^\s=,;|]+)*)?")
_YAML_LINE = re.compile(r" *(?:- +)*(?:[\w. <-]+:(?:\s.*)?|(?<=- ).*)")
_TWICE = re.compile(r'\s*"\s*[\[{]')  # JSON in a text of JSON
_HTML = re.compile(
    r"\s*(?:<\?xml[^>]*>\s*)?(?:<!--.*?-->\s*)*<(?:!doctype html|html|head|body|table)", re.I | re.S
)
_XML = re.compile(r"\s*<[?a-z]", re.I)
_EXCEL_2003 = re.compile(rb"<Workbook[^>]+schemas-microsoft-com:office:spreadsheet")
_BEGIN = 5000  # characters by which a notation is known
_MOST_UNPACKED = 2**28  # bytes of a gzip file, and characters of a table
_ROWS_AT_ONCE = 10_000  # that come from another process, by columns


@dataclass(frozen=True)
class ReadOptions:
    """Options of a file that holds a table. None lets the file decide.

    Attributes:
        delimiter: of delimited text, the character that separates the columns.
        encoding: of text, a name that Python knows, such as cp1252.
        header_rows: how many rows are the header; 0 for a file without one.
        skip_rows: rows at the top to pass over; 0 for none, not even titles.
        sheet: of a workbook, its name; without it the first visible one.
        which: of HTML, JSON or Markdown with several tables: one, from 0.
        show_hidden: whether hidden rows and columns of a workbook are read.

    ValueError if a number is negative.
    """

    delimiter: str | None = None
    encoding: str | None = None
    header_rows: int | None = None
    skip_rows: int | None = None
    sheet: str | None = None
    which: int | None = None
    show_hidden: bool = False

    def __post_init__(self) -> None:
        if self.delimiter in ("tab", "\\t"):
            object.__setattr__(self, "delimiter", "\t")
        for name in ("header_rows", "skip_rows", "which"):
            value = getattr(self, name)
            if value is not None and value < 0:
                raise ValueError(f"expected {name} from 0, got {value}")

    def check(self, kind: str, name: str) -> None:
        """Raises ValueError if an option is given that files of this kind do not have."""
        for option, value in asdict(self).items():
            is_given = value is not None and value is not False  # 0 is given
            if is_given and option not in FORMATS[kind].options.split():
                having = [one.title for one in FORMATS.values() if option in one.options.split()]
                raise ValueError(
                    f"expected {option} only for {' or '.join(having)}, got {option}={value!r} for "
                    f"{name}, which is {FORMATS[kind].title}"
                )


DEFAULTS = ReadOptions()


def read_file(path: str | os.PathLike[str], options: ReadOptions = DEFAULTS) -> Table:
    """Reads a table from a file of any kind.

    The kinds are delimited text, columns as programs print them, JSON, JSON Lines, HTML, Markdown,
    Org, LaTeX, Jira, Excel (.xlsx, .xlsm, .xls, .xlsb), OpenDocument and Parquet, also packed by
    gzip. The content says which it is. The last four and HTML need the packages of the extra
    "formats". Cells are texts as the file has them or as its program shows them; a cell without a
    value is empty. `Table.assumed` says what was assumed.

    The table is named after its file. The path "-" reads standard input. FileNotFoundError if there
    is no such file; ModuleNotFoundError if the package that reads such files is not installed;
    ValueError if the file is of no known kind, is broken or holds no table, or if an option does
    not fit it.
    """
    if str(path) == STANDARD_INPUT:
        return read_content(sys.stdin.buffer.read(), "standard input", options)
    if re.match(r"[a-z][a-z\d+.-]+://", str(path), re.I):
        raise ValueError(f"expected a file, got the address '{path}'; download it first")
    with open_bytes(Path(path)) as file:
        return read_content(file.read(), Path(path).name, options)


def read_content(content: bytes, name: str, options: ReadOptions = DEFAULTS) -> Table:
    """Reads a table from the bytes of a file; arguments and errors as of `read_file`.

    The ending of the file's name decides between kinds that the content leaves open.
    """
    was_enabled = gc.isenabled()
    gc.disable()  # the search for cycles takes longer than to read a million cells
    try:
        with _broken_named("a table", name):
            return _read_content(content, name, options)
    finally:
        if was_enabled:
            gc.enable()


def read_in_sandbox(
    content: bytes, name: str, options: ReadOptions = DEFAULTS, most_cells: int = MOST_CELLS
) -> Table:
    """Reads a table as `read_content` does, but of whatever kind in a process of its own.

    ValueError also if the table has more than `most_cells`, or as `sandbox.run`.
    """
    arguments = (name, asdict(options), most_cells)
    (header, title, assumed), *parts = sandbox.run(_table_in_parts, content, *arguments, name=name)
    rows = tuple(itertools.chain.from_iterable(zip(*part, strict=True) for part in parts))
    return Table(tuple(header), rows, name, title, assumed=tuple(assumed))


def _table_in_parts(
    content: bytes, name: str, options: dict[str, Any], most_cells: int
) -> Iterator[Any]:
    table = read_content(content, name, ReadOptions(**options))
    size = table.num_rows * table.num_columns
    if size > most_cells:
        message = f"expected at most {most_cells:,} cells, got {size:,} (file '{name}')"
        raise ValueError(f"{message}; choose fewer rows")  # raised outside of `read_content`
    yield table.header, table.document_title, table.assumed
    for begin in range(0, table.num_rows, _ROWS_AT_ONCE):
        yield list(zip(*table.rows[begin : begin + _ROWS_AT_ONCE], strict=True))


@contextlib.contextmanager
def _broken_named(kind: str, name: str) -> Iterator[None]:
    """Turns whatever is raised while a file is read into a ValueError that names the file."""
    try:
        with warnings.catch_warnings(action="ignore"):  # packages warn of parts that they skip
            yield
    except (ModuleNotFoundError, MemoryError):
        raise
    except Exception as error:  # those of archives, XML and types have no common class
        reason = str(error.__cause__ or error).strip().split("\n")[0] or type(error).__name__
        is_ours = isinstance(error, OSError | ValueError) and reason.startswith("expected ")
        if is_ours and f"'{name}'" in reason:
            raise
        reason = reason if is_ours else f"expected {kind}, got: {reason}"
        raise ValueError(f"{reason} (file '{name}')") from None


def _read_content(content: bytes, name: str, options: ReadOptions) -> Table:
    ending = Path(name).suffix.lower()
    if content.startswith(_GZIP):
        if not sandbox.is_inside:
            return read_in_sandbox(content, name, options)
        with _broken_named("a gzip file", name), gzip.open(io.BytesIO(content)) as file:
            content = file.read(_MOST_UNPACKED + 1)
        _check_bytes(len(content))
        ending = Path(Path(name).stem).suffix.lower() if ending in (".gz", ".gzip") else ending
    if not content.strip():
        raise ValueError("expected a table, got an empty file")
    if _EXCEL_2003.search(content[:2000]):
        got = "a workbook in the XML of Excel 2003"
        raise ValueError(f"expected a table, got {got}; save it as .xlsx")
    named = _FORMAT_OF_ENDING.get(ending)
    kind = _kind_of_bytes(content, named)
    assumed: list[str] = []
    text = ""
    if kind == "text":
        is_page = named == "html" or content[:1024].lstrip().startswith(b"<")
        declared = declared_encoding(content) if is_page else None
        text, assumed = decode(content, name, options.encoding or declared)
        text = DIRECTIONS.sub("", text.rstrip("\0\x1a"))  # of Hebrew and Arabic; of old systems
        if _TWICE.match(text) and _is_json(text):
            text = json.loads(text)
        if options.delimiter is None:
            _refuse_other_texts(text[:_BEGIN])
        kind = kind_of_text(text, named)
        is_xml = _XML.match(text) and text.rstrip().endswith(">")
        if kind == "csv" and (is_xml or "\x00" in text[:1000]):
            raise _other("XML" if is_xml else "no text")
    options.check(kind, f"'{name}'")
    if FORMATS[kind].in_sandbox and not sandbox.is_inside:
        return read_in_sandbox(content, name, options)
    format_options = (options.delimiter, options.sheet, options.which, options.show_hidden)
    with _broken_named(FORMATS[kind].title, name):
        rows = FORMATS[kind].read(Source(name, content, text, ending, *format_options))
    rows.name = name
    # A few bytes of a file may say that a text stands in all cells.
    cells = itertools.chain.from_iterable(rows.rows)
    texts = cells if are_texts(rows.rows) else (cell for cell in cells if type(cell) is str)
    _check_bytes(sum(map(len, texts)))
    is_named = not FORMATS[kind].endings or kind == named or (kind, named) == ("jsonl", "json")
    if named and not is_named:
        read_as = f"The file was read as {FORMATS[kind].title}"
        assumed.insert(0, f"{read_as}, although its name ends in {ending}.")
    rows.assumed = [*assumed, *rows.assumed]
    return lay_out(rows, options.header_rows, options.skip_rows)


def _check_bytes(num_bytes: int) -> None:
    if num_bytes > _MOST_UNPACKED:
        raise ValueError(f"expected at most {_MOST_UNPACKED:,} bytes once unpacked, got more")


def _kind_of_bytes(content: bytes, named: str | None) -> str:
    """The kind of a file; "text" where its text has to be looked at."""
    if content.startswith(b"PAR1"):
        return "parquet"
    if content.startswith(_OLE):
        if "EncryptedPackage".encode("utf-16-le") in content:
            raise ValueError("expected a workbook without a password")
        return "excel 97"
    if content.startswith(b"PK\x03\x04"):
        try:
            members = zipfile.ZipFile(io.BytesIO(content)).namelist()
        except Exception:  # of whatever is broken in it
            members = []
        if named in WORKBOOKS and not members:
            return named  # its reader says what is wrong
        for kind, one in FORMATS.items():
            if one.member in members:
                return kind
    is_orc = content.startswith(b"ORC") and content[-4:-1] == b"ORC"
    begins = (other for begin, other in _OTHERS.items() if content.startswith(begin))
    if other := "an ORC file" if is_orc else next(begins, ""):
        raise _other(other)
    is_utf16 = content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    if named in ("parquet", *WORKBOOKS) and b"\x00" in content[:1024] and not is_utf16:
        raise ValueError(f"expected {FORMATS[named].title}, got something else")
    return "text"


def _refuse_other_texts(begin: str) -> None:
    for what, expression in _OTHER_TEXTS_BEGIN.items():
        if expression.match(begin.lstrip()):
            raise _other(what)
    lines = [line for line in begin.split("\n")[:-1] if not _YAML_COMMENT.fullmatch(line)]
    if len(lines) > 1 and _YAML_FIRST.fullmatch(lines[0]) and all(map(_YAML_LINE.fullmatch, lines)):
        raise _other("YAML")
    pairs = [_PAIR.fullmatch(line) for line in lines if line.strip()]
    if len(pairs) > 1 and all(pairs) and len({pair[1] for pair in pairs if pair}) == len(pairs):
        raise _other(_PAIRS)


def _other(what: str) -> ValueError:
    remedy = "; unpack it first" if "archive" in what else ""
    if what in (*_OTHER_TEXTS, "YAML", _PAIRS):
        return ValueError(f"expected a table, got what looks like {what}; write it as CSV first")
    expected = f"expected a table in {', '.join(ENDINGS)}"
    return ValueError(f"{expected}, got what looks like {what}{remedy}")


def kind_of_text(text: str, named: str | None = None) -> str:
    """The kind of a text, of FORMATS; the name of its file says which one it may be."""
    begin = text[:2000].lstrip()
    if _HTML.match(begin) or (begin.startswith("<") and "<table" in text[:100_000].lower()):
        return "html"
    is_json = begin[:1] in ("{", "[")
    if (named in ("json", "jsonl") and (is_json or not begin)) or (named is None and is_json):
        lines = [line for line in text.split("\n", 3)[:3] if line.strip()]
        ends = [(line.strip()[0], line.strip()[-1]) for line in lines[:2]]
        are_values = len(lines) > 1 and all(pair in (("{", "}"), ("[", "]")) for pair in ends)
        is_pretty = len(lines) > 1 and not are_values and _is_json(text)  # one value, in lines
        return "jsonl" if are_values or (named == "jsonl" and not is_pretty) else "json"
    if is_json and _is_json(text):
        return "json"
    if is_json and all(_is_json(line) for line in text.split("\n", 2)[:2]):
        return "jsonl"
    for kind, one in FORMATS.items():
        if one.is_one and ((kind == named == "markdown") or one.is_one(text)):
            return kind
    return "html" if named == "html" else "csv"


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True
