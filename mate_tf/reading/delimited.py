"""Delimited text: CSV, TSV and their relatives, and columns of a fixed width as programs print.

The whole head decides what separates columns: a character, or what is blank in all lines. Running
text, such as a letter, is no table although some of its lines have commas.
"""

import csv
import io
import itertools
import re
from collections import Counter
from typing import Any

from mate_tf.reading.header import is_value
from mate_tf.reading.layout import MOST_CELLS, Rows, Source, check_size
from mate_tf.reading.text_files import check_delimiter, parsed_csv
from mate_tf.tables.units import UNITS
from mate_tf.tables.values import read_cell

_DELIMITERS = ("\t", ";", "|", ",", "^", "~", "\x01")  # of equally good ones the first
_LINES_LOOKED_AT = 100
_CHARACTERS_LOOKED_AT = 100_000
_LEAST_SHARE = 0.6  # of the lines looked at
_PER_LINE = 1e-3  # what a line at an end that has no delimiter takes from the share
_LEAST_TO_TRIM = 0.4  # of them, from which on lines at both ends may be others
_DELIMITER_LINE = re.compile(r'"?sep=([^"\r\n])"?\r?\n')  # Excel reads and writes such a line
_APART = re.compile(r"(?<=\S)(?: {2,}|\t)(?=\S)")
_RULE = re.compile(r" *[-=]{2}[-= ]*")
_LINE = re.compile(r"[^\r\n]*+(?:\r\n|\r|\n)|[^\r\n]++")
_OF_R = re.compile(r'(?:"[^"\r\n]*" )+"[^"\r\n]*"\r?\n"?[^\s",;|]+"? ')  # by write.table
_COMMENTS = re.compile(r"(?:[ \t]*(?:#|//)[^\r\n]*[\r\n]+)+(?=[^\r\n])")  # above the header
_BLANK = re.compile(" ")
_ALONE = re.compile(r"\r\n|\r|\n")
_BLANK_BEFORE_QUOTE = re.compile(r'(?m)^(?:"[^"\n]*"|[^"\n]*)[,;|\t] +"[^"\n]*"')
_AS_TEXT = re.compile(r'^="(.*)"$')  # ="007" keeps its zeros in Excel
_THOUSANDS = re.compile(r"(?m)^[^\d\n]?\d{1,3}(?:\n\d{3})+(?=\.\d+$|$)")  # in two cells
_NONE = "\x1f"  # a character that no text has, for a single column

# Columns of a fixed width.
RUN = re.compile(r"\S {2,}(?=\S)")  # of blanks
_RUN_OF_NAMES = re.compile(r"[^\s,.:] {2,}(?=\S)")  # not "5 days,  2:15"
_BOX_RULE = re.compile(r" *[-=\u2500-\u257f]{2}[-=\u2500-\u257f ]*")
_RULES = re.compile(r" *-+(?: +-+)+ *")  # below the names of columns
_BOX = re.compile("[\u2500-\u257f]")
_LONGEST_LINE = 10_000  # characters
_MOST_TITLES = 6
_LEAST_RUNS = 0.6  # of the lines that have runs of blanks
_LINES_WITH_RUNS = 200

# Running text.
_LINES_OF_PROSE = 60
_WORD = re.compile(r"[^\W\d_]{2,}")
_APART_OR_SIGN = re.compile(r"[\t;|^~]|\S {2,}\S")  # what separates columns, apart from commas
_TIGHT_COMMA = re.compile(r",(?=[^\s\d])|\d,\d+,|\"")
_SALUTATION = re.compile(
    r"(dear|hello|hi|hey|to whom|sehr geehrte[rs]?|liebe[rs]?|guten tag|estimad[oa]s?|querid[oa]s?|"
    r"cher|chère|madame|monsieur|bonjour|gentile|egregio|beste|geachte)\b[^.;,|\t]{0,60}[,!:]?",
    re.IGNORECASE,
)
_TWO_SENTENCES = re.compile(r"[a-zß-ÿ]{2}[.?!] [^\W\d_]")
_LEAST_WORDS = 4  # a line, on average
_WRAPPED, _SENTENCES, _LIKE = 0.3, 0.5, 0.7  # shares of the lines


def read_delimited_rows(source: Source) -> Rows:
    """The rows of delimited text, with quotes as in RFC 4180.

    An option, a first line such as "sep=;" or the text says the delimiter; the endings .tsv and
    .tab mean tabs if nothing else is as good. ValueError if quotes do not match, the delimiter is
    not one character, there are more than MOST_CELLS, or it is running text.
    """
    text, ending, delimiter = source.text, source.ending, source.delimiter
    if delimiter is not None:
        check_delimiter(delimiter)
    if first := _DELIMITER_LINE.match(text):
        text = f"\n{text[first.end() :]}"  # the lines keep their numbers
        delimiter = delimiter or first[1]
    elif delimiter is None and _is_prose(text):
        raise ValueError("expected a table, got running text; set delimiter if it is one")
    assumed: list[str] = []
    usual = "\t" if ending in (".tsv", ".tab") else ","
    if delimiter is None and _OF_R.match(text):
        delimiter = " "
        assumed.append("The columns are separated by blanks.")
    elif delimiter is None and (rows := _cut_by_rule(text)):
        return _as_rows(rows, "The columns are as wide as the dashes below their names.")
    elif delimiter is None:
        delimiter = _find_delimiter(text, usual)
        if delimiter in ("", " ") and (rows := cut_by_blanks(text)):
            how = "two or more blanks" if delimiter else "places that are blank in all lines"
            return _as_rows(rows, f"The columns are separated by {how}.")
        if delimiter == " ":
            apart, how = (_APART, "two or more ") if _APART.search(text) else (_BLANK, "")
            lines = (
                "" if _RULE.fullmatch(line) else apart.sub("\t", line.strip())
                for line in _ALONE.split(text)
            )
            text, delimiter = "\n".join(lines), "\t"
            assumed.append(f"The columns are separated by {how}blanks.")
        elif not delimiter:
            _check_single(text)
            delimiter = _NONE
        elif delimiter != usual and (ending or delimiter != "\t"):  # spreadsheets paste tabs
            named = "a tab" if delimiter == "\t" else f"'{delimiter}'"
            assumed.append(f"The columns are separated by {named}.")
    has_blanks = _BLANK_BEFORE_QUOTE.search(text[:_CHARACTERS_LOOKED_AT]) is not None
    dialect: dict[str, Any] = {"delimiter": delimiter, "skipinitialspace": has_blanks}
    try:
        numbers, rows = _parsed(text, dialect)
    except csv.Error as error:
        try:
            if '\\"' not in text:
                raise
            numbers, rows = _parsed(text, dialect | {"escapechar": "\\"})  # by MySQL
        except csv.Error:
            reason, _, line = error.args
            raise ValueError(
                f"expected delimited text, got: {reason} (file '{source.name}', line {line}); "
                "write a quote within quotes twice, or set delimiter"
            ) from None
    if delimiter == "|":
        rows = [[cell.strip() for cell in row] for row in rows]
    if '="' in text:
        rows = [[_AS_TEXT.sub(r"\1", cell) for cell in row] for row in rows]
    if "\\N" in text:
        rows = [["" if cell == "\\N" else cell for cell in row] for row in rows]
    if delimiter == ",":
        _check_thousands(rows, numbers, source.name)
    return Rows(rows, numbers, "line", is_ragged=True, assumed=assumed)


def _parsed(text: str, dialect: dict[str, Any]) -> tuple[list[int], list[list[Any]]]:
    """The lines where the rows that are not blank begin, and these rows; as `parsed_csv`."""
    lines = (line[0] for line in _LINE.finditer(text))  # io.StringIO takes 4 bytes a character
    numbers, rows = [], []
    num_cells = 0
    for number, row in parsed_csv(lines, dialect):
        num_cells += len(row)
        check_size(num_cells)
        rows.append(row)
        numbers.append(number)
    return numbers, rows


def _check_thousands(rows: list[list[Any]], numbers: list[int], name: str) -> None:
    """Raises ValueError if rows are longer than the header by commas within their numbers."""
    width = len(rows[0]) if rows else 0
    longer = [(number, row) for number, row in zip(numbers, rows, strict=True) if len(row) > width]
    if width < 2 or not longer or any(cell[:1].isdigit() for cell in rows[0]):
        return
    for _, row in longer[:_LINES_LOOKED_AT]:
        if len(_THOUSANDS.sub("", "\n".join(row)).split("\n")) > width:
            return
    number, row = longer[0]
    example = _THOUSANDS.search("\n".join(row))
    if example:
        raise ValueError(
            f"expected {width} cells as in the header, got {len(row)} (file '{name}', line "
            f"{number}); '{example[0].replace(chr(10), ',')}' may be one number, so put it in "
            "quotes, or give each column a name"
        )


def _as_rows(rows: list[list[str]], assumed: str) -> Rows:
    numbers = [number for number, row in enumerate(rows, start=1) if row]
    return Rows(list(filter(None, rows)), numbers, "line", is_ragged=True, assumed=[assumed])


def _find_delimiter(text: str, usual: str) -> str:
    """The one of _DELIMITERS by which most lines agree; " " for blanks, "" for a single column."""
    head = text[:_CHARACTERS_LOOKED_AT]
    if len(text) > len(head):
        head = head[: max(head.rfind("\n"), head.rfind("\r")) + 1] or head
    if comments := _COMMENTS.match(head):
        head = head[comments.end() :]
    lines = [line for line in _ALONE.split(head)[:_LINES_LOOKED_AT] if line.strip()]
    best, best_share = usual, 0.0
    for delimiter in sorted(_DELIMITERS, key=lambda it: it != usual or it == ","):
        is_rare = delimiter in "^~\x01" and delimiter not in "".join(lines[:1])  # ~5 is about 5
        share = 0.0 if is_rare else _share(head, delimiter)
        if share > best_share:
            best, best_share = delimiter, share
    # Decimal commas and those of thousands are not in the names of columns.
    if best_share < _LEAST_SHARE or best not in lines[0]:
        sizes = [len(_APART.findall(it.strip())) for it in lines if not _RULE.fullmatch(it)]
        sizes = list(itertools.dropwhile(lambda size: size == 0, sizes))  # titles
        while sizes and sizes[-1] == 0:  # notes
            sizes.pop()
        # The first line may lack a name for the labels of the rows.
        if len(sizes) > 2 and len(set(sizes[1:])) == 1 and sizes[1] - sizes[0] in (0, 1):
            return " "
    if best_share < _LEAST_SHARE:
        if _has_words_in_columns(lines):
            return " "
        is_usual = bool(lines) and usual in lines[0] and not cut_by_blanks(head)
        return usual if is_usual else ""
    return best


def _has_words_in_columns(lines: list[str]) -> bool:
    """Whether single blanks separate columns, of which one after the first is of numbers."""
    words = [line.split(" ") for line in lines]
    if len(words) < 3 or len(set(map(len, words))) != 1 or any("" in row for row in words):
        return False
    header, *body = [[is_value(read_cell(word)) for word in row] for row in words]
    columns = [all(column) for column in zip(*body, strict=True)]
    if len(columns) < 3 or any(header) or not (all(columns) or any(columns[1:])):
        return False
    return not any(is_value(read_cell(line)) for line in lines)  # 5 May 2024


def _share(head: str, delimiter: str) -> float:
    """The share of lines with the commonest number of cells, from the first to the last of them."""
    has_blanks = _BLANK_BEFORE_QUOTE.search(head) is not None
    reader = csv.reader(
        io.StringIO(head, newline=""), delimiter=delimiter, skipinitialspace=has_blanks
    )
    sizes: list[int] = []
    is_prose = True  # "red, or blue"
    try:
        for row in reader:
            if any(cell.strip() for cell in row):
                sizes.append(len(row))
                is_prose &= all(cell.startswith(" ") for cell in row[1:])
            if len(sizes) == _LINES_LOOKED_AT:
                break
    except csv.Error:
        return 0.0
    several = Counter(size for size in sizes if size > 1)
    if not several or (is_prose and sizes[0] == 1):
        return 0.0
    commonest, number = several.most_common(1)[0]
    first, last = sizes.index(commonest), len(sizes) - sizes[::-1].index(commonest)
    is_block = number == last - first > 2 and delimiter != ","  # prose has commas
    if is_block or number >= _LEAST_TO_TRIM * len(sizes):  # titles and notes have no delimiter
        share = number / (last - first)
        return share - _PER_LINE * (len(sizes) - (last - first))
    return number / len(sizes)


def _is_prose(text: str) -> bool:
    """Whether its lines are wrapped, or have several sentences each, or a salutation above."""
    given = text[: 200 * _LINES_OF_PROSE].splitlines()[:_LINES_OF_PROSE]
    lines = [line.strip() for line in given if line.strip()]
    words = sum(len(_WORD.findall(line)) for line in lines)
    if len(lines) < 3 or words < _LEAST_WORDS * len(lines):
        return False
    if any(_APART_OR_SIGN.search(line) or _TIGHT_COMMA.search(line) for line in lines):
        return False
    if _SALUTATION.fullmatch(lines[0]):
        return True
    commas = [line.count(",") for line in lines]
    if commas[0] and commas.count(commas[0]) >= _LIKE * len(lines):
        return False
    wrapped = [
        above.strip()[-1:] not in ".?!" and below[:1].islower()
        for above, below in itertools.pairwise(given)
        if above.strip() and below.strip()
    ]
    if sum(wrapped) >= _WRAPPED * len(lines):
        return True
    has_name = len(lines[0].split()) < _LEAST_WORDS  # that of a column of comments
    sentences = [_TWO_SENTENCES.search(line) is not None for line in lines]
    return not has_name and sum(sentences) >= _SENTENCES * len(lines)


def _cut_by_rule(text: str) -> list[list[str]]:
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
    """A row for each line, of columns that are separated by places that are blank in all lines.

    Titles and notes are rows of one cell. [] for fewer than two columns, or two blanks in a cell.
    """
    lines = ["" if _BOX_RULE.fullmatch(line) else line.rstrip() for line in text.splitlines()]
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


def _check_single(text: str) -> None:
    """Raises ValueError if a text of a single column was printed in several."""
    lines = [line for line in text.splitlines()[:_LINES_WITH_RUNS] if line.strip()]
    if len(lines) > 1 and (_has_runs(lines) or any(map(_BOX.search, lines))):
        raise ValueError(
            "expected columns that a delimiter or blanks below each other separate, got runs of "
            "blanks or boxes; put a delimiter such as a tab between the columns and set delimiter, "
            "or set skip_rows if other lines are above the table"
        )


def _has_runs(lines: list[str]) -> bool:
    lines = lines[:_LINES_WITH_RUNS]
    runs = sum(RUN.search(line) is not None for line in lines)
    return runs >= _LEAST_RUNS * len(lines)


def _is_title(line: str, num_columns: int) -> bool:
    words = line.split()
    has_numbers = any(word[0].isdigit() for word in words)
    is_list = line.count(", ") > 2  # as above the columns of `w`
    return len(words) < num_columns or line.startswith("#") or not has_numbers or is_list


def _spans(lines: list[str]) -> list[tuple[int, int]]:
    """Where columns begin and end; a part of a name, or of cells, belongs to the one before it."""
    taken = 0  # bits of the places that are not blank, the first one last
    for line in lines:
        for word in re.finditer("[^ ]+", line):
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
