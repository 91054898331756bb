"""Text files: reading with errors that name file and line, writing whole files or none.

`decode` finds a file's encoding. Before UTF-8 each region had its own, and files in them say
nothing of it. A wrong one gives characters that nobody writes, so the one is taken whose characters
are common; where two are about equally good, neither is.
"""

import codecs
import contextlib
import csv
import io
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, TextIO

from mate_tf.paths import as_path, complete_file
from mate_tf.tables.table import check_width

# The csv module limits cells to 131,072 characters, for the whole process. Real cells are longer.
csv.field_size_limit(max(csv.field_size_limit(), 2**31 - 1))


def read_text(path: str | Path) -> str:
    """Reads a UTF-8 file, with or without a byte order mark; line ends stay as they are.

    FileNotFoundError if there is no such file, ValueError if it is a directory or not UTF-8.
    """
    with open_bytes(path) as file:
        content = file.read()
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _wrong_byte(error, path) from None


def stream_lines(path: str | Path) -> Iterator[str]:
    """Yields each line with its end, without holding the whole file; errors as of `read_text`."""
    with open_bytes(path) as file:
        for number, line in enumerate(file, start=1):
            try:
                text = line.decode("utf-8-sig" if number == 1 else "utf-8")
            except UnicodeDecodeError as error:
                raise _wrong_byte(error, path, number) from None
            yield text


def read_csv_rows(path: str | Path, **dialect: Any) -> list[list[str]]:
    """Reads the rows of a delimited file without its blank lines; `dialect` is the csv module's.

    Errors as of `read_text`, and ValueError if quotes do not match or rows differ in length.
    """
    lines = io.StringIO(read_text(path), newline="")
    return [row for _, row in _csv_rows(lines, path, dialect)]


def parsed_csv(lines: Iterable[str], dialect: Mapping[str, Any]) -> Iterator[tuple[int, list[str]]]:
    """The rows that are not blank, each with the line where it begins.

    csv.Error of the reason, that line and the one where the error is.
    """
    reader = csv.reader(lines, strict=True, **dialect)
    line = 1
    try:
        for row in reader:
            if row:
                yield line, row
            line = reader.line_num + 1  # cells may hold line breaks
    except csv.Error as error:
        raise csv.Error(str(error), line, reader.line_num) from None


def _csv_rows(
    lines: Iterable[str], path: str | Path, dialect: Mapping[str, Any]
) -> Iterator[tuple[int, list[str]]]:
    """As `parsed_csv`; ValueError also for rows of different lengths."""
    header: list[str] = []
    try:
        for line, row in parsed_csv(lines, dialect):
            header = header or row
            check_width(row, header, f"(file '{path}', line {line})")
            yield line, row
    except csv.Error as error:
        where = f"(file '{path}', line {error.args[1]})"
        raise ValueError(f"expected delimited text, got: {error.args[0]} {where}") from None


def check_delimiter(delimiter: str) -> None:
    """Raises ValueError unless it is one character that is neither a quote nor a line end."""
    if len(delimiter) != 1 or delimiter in '"\r\n':
        raise ValueError(f"expected one character as delimiter, got {delimiter!r}")


def stream_csv_records(
    path: str | Path, columns: Sequence[str], **dialect: Any
) -> Iterator[tuple[int, dict[str, str]]]:
    """Yields line number and values by column of each row below the header, one at a time.

    Errors as of `read_csv_rows`, and ValueError if the header lacks one of `columns`.
    """
    rows = _csv_rows(stream_lines(path), path, dialect)
    line, header = next(rows, (1, []))
    check_columns(columns, header, f"(file '{path}', line {line})")
    for line, row in rows:
        yield line, dict(zip(header, row, strict=True))


def check_columns(columns: Sequence[str], header: Sequence[str], where: str) -> None:
    """Raises ValueError if a header lacks one of the columns; `where` names its line."""
    if missing := [name for name in columns if name not in header]:
        raise ValueError(f"expected the columns {missing}, got {header} {where}")


def read_lines(path: str | Path) -> Iterator[tuple[int, str]]:
    """Yields number and text of each line that is not blank, without holding the whole file."""
    for number, line in enumerate(stream_lines(path), start=1):
        if line.strip():
            yield number, line.rstrip("\r\n")


_LIST_OF_OBJECTS = re.compile(r"\s*\[\s*(?:\{|$)")


def read_json_values(path: str | Path) -> Iterator[tuple[int, Any]]:
    """Yields number and value of each line of JSON that is not blank; errors as of `read_json`.

    ValueError also for a list of objects, which is JSON but no JSON Lines.
    """
    for number, line in read_lines(path):
        if _LIST_OF_OBJECTS.match(line):
            raise ValueError(
                "expected JSON Lines, an object in each line, got JSON that is a list "
                f"(file '{path}', line {number})"
            )
        yield number, parse_json(line, path, number)


def parse_json(text: str, path: str | Path, line: int | None = None, **decoding: Any) -> Any:
    """The JSON value of a file's text, or of one line of it.

    `decoding` are options of `json.loads`. ValueError, which names file and line, if it is not JSON
    or an object has a key twice.
    """

    def unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(unique := dict(pairs)) != len(pairs):
            raise ValueError(f"a key twice in {[key for key, _ in pairs]}")
        return unique

    try:
        return json.loads(text, object_pairs_hook=unique_keys, **decoding)
    except json.JSONDecodeError as error:
        reason, line = error.msg, line or error.lineno
    except (ValueError, RecursionError) as error:
        reason = str(error)
    where = f"(file '{path}', line {line})" if line else f"(file '{path}')"
    raise ValueError(f"expected valid JSON, got: {reason} {where}")


def read_json(path: str | Path) -> Any:
    """Reads a file that holds one JSON value; errors as of `read_text` and `parse_json`."""
    return parse_json(read_text(path), path)


@contextlib.contextmanager
def complete_text_file(path: str | Path, errors: str = "strict") -> Iterator[TextIO]:
    """Yields a UTF-8 file to write to, which replaces an older one once it is complete.

    A killed process leaves a file that ends in ".unfinished", which nothing reads. A device or a
    pipe is written to directly. Of a link, the file that it leads to is replaced. `errors`, as of
    `open`, is what to do with half a surrogate pair, which UTF-8 cannot hold.
    """
    path = as_path(path)
    is_device = path.exists() and not path.is_file()
    whole = contextlib.nullcontext(str(path)) if is_device else complete_file(path.resolve())
    with whole as it, as_path(it).open("w", encoding="utf-8", errors=errors, newline="\n") as file:
        yield file


def open_bytes(path: str | Path) -> BinaryIO:
    """Opens a file to read its bytes; FileNotFoundError or ValueError if there is none."""
    if as_path(path).is_dir():
        raise ValueError(f"expected a file, got a directory ('{path}')")
    try:
        return as_path(path).open("rb")
    except FileNotFoundError:
        raise FileNotFoundError(f"expected a file at '{path}', found none") from None


def _wrong_byte(
    error: UnicodeDecodeError, path: str | Path, line: int = 0, expected: str = "UTF-8 text"
) -> ValueError:
    """An error that names the byte that is not in an encoding, and its line in the file."""
    line = line or error.object.count(b"\n", 0, error.start) + 1
    got = f"got the byte 0x{error.object[error.start]:02x}"
    return ValueError(f"expected {expected}, {got} (file '{path}', line {line})")


_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig", "UTF-8"),
    (codecs.BOM_UTF32_LE, "utf-32", "UTF-32"),
    (codecs.BOM_UTF32_BE, "utf-32", "UTF-32"),
    (codecs.BOM_UTF16_LE, "utf-16", "UTF-16"),
    (codecs.BOM_UTF16_BE, "utf-16", "UTF-16"),
)
_DEGREES = re.compile(rb"(?<=[\d ])\xb0(?=[CF]\b)")  # Big5 has these bytes too
_OF_NAMES = ("idna", "punycode")  # on the net, of a few letters; they take time with the square
_CONTROL = re.compile("[\x80-\x9f]")
_HIRAGANA = re.compile("[\u3041-\u3096]")
_LOOKED_AT = 20_000  # characters that are not ASCII
_LEAST_SHARE = 0.6  # of them that are common
_LEAST_LEAD = 0.1  # over the second best encoding
_WESTERN = frozenset("äöüÄÖÜßéèêëàâçîïôûùñáíóúãõåøæÅØÆÉÈÀÇÑÁÍÓÚÊœ€£§°²³½´µ“”„‘’–—…·«»º ")
_CENTRAL = frozenset("ąćęłńóśźżĄĆĘŁŃÓŚŹŻáčďéěíňřšťúůýžÁČĎÉĚÍŇŘŠŤÚŮÝŽőűŐŰäöüÄÖÜßăâîșțşţ€§°“”„’–… ")
_TURKISH = frozenset("çğıöşüÇĞİÖŞÜâîûÂÎÛ€“”‘’–… ")


class _Leads(NamedTuple):
    """The first bytes of the characters that are common, in an encoding, and whether kana are."""

    least: bytes
    most: bytes
    encoding: str
    has_kana: bool = False


# Each encoding with its name and what is common in it: letters beside those of ASCII, an alphabet
# as an expression, or first bytes.
_CODECS: dict[str, tuple[str, frozenset[str] | str | _Leads]] = {
    "cp1252": ("Windows-1252", _WESTERN),
    "iso8859_15": ("ISO 8859-15", _WESTERN),
    "cp1250": ("Windows-1250", _CENTRAL),
    "iso8859_2": ("ISO 8859-2", _CENTRAL),
    "cp1254": ("Windows-1254", _TURKISH),
    "cp1251": ("Windows-1251", "[\u0400-\u045f]+"),
    "cp1253": ("Windows-1253", "[\u0384-\u03ce]+"),
    "cp1255": ("Windows-1255", "[\u05d0-\u05ea]+"),
    "cp1256": ("Windows-1256", "[\u0621-\u064a]+"),
    "gb18030": ("GB 18030", _Leads(b"\xb0", b"\xd7", "gb2312")),
    "cp932": ("Shift JIS", _Leads(b"\x88", b"\x97", "cp932", has_kana=True)),
    "cp949": ("EUC-KR", _Leads(b"\xb0", b"\xc8", "euc_kr")),
    "big5": ("Big5", _Leads(b"\xa4", b"\xc6", "big5")),
    "euc_jp": ("EUC-JP", _Leads(b"\xb0", b"\xcf", "euc_jp", has_kana=True)),
}
# Signs before or between letters: the text has another encoding.
_ODD = re.compile(
    r"[£§²³½µº](?=[^\W\d_])|(?<=[b-dfghjkmnpqstv-xzBCDFGHJKMNPQSTV-XZ])[šžź](?=[b-dfghj-np-tv-xz])"
    r"|(?<=[^\W\d_])[“”„«»](?=[^\W\d_])"
    r"|(?<=[a-zA-Z])[\u3400-\u9fff](?=[a-zA-Z])"
)
# Letters that central Europe has others for, where western languages have them: ø is no ř there.
_VOWELS = "aeiouyáéíóúäöüAEIOUY"
_CERTAINLY_WESTERN = re.compile(
    rf"[ñÑ](?=[{_VOWELS}])|[ãÃ](?=[oeOE]|\b)|(?<![{_VOWELS}])[èàøåæêûÈÀØÅÆÊÛ](?![{_VOWELS}])"
    r"|£(?=\d)|(?<=m)³"
)
_DIFFERENT = re.compile("[^\x00-\x7fÁÂÄÇÉËÍÎÓÔÖÚÜÝßáâäçéëíîóôöúüý]")  # letters of both are alike


def decode(content: bytes, name: str, encoding: str | None = None) -> tuple[str, list[str]]:
    """The text of a file, and what was assumed about its encoding.

    Without `encoding`, a name that Python knows, the byte order mark, UTF-8 or what is likeliest
    decides. ValueError if it is not in that encoding, or in none that is clearly the likeliest.
    """
    marks = ((codec, shown) for mark, codec, shown in _MARKS if content.startswith(mark))
    encoding, shown = next(marks, (None, "")) if encoding is None else (encoding, encoding)
    if encoding is not None:
        try:
            if codecs.lookup(encoding).name in _OF_NAMES:
                raise LookupError
            return content.decode(encoding).removeprefix("\ufeff"), []
        except LookupError:
            expected = "expected an encoding such as utf-8 or cp1252"
            raise ValueError(f"{expected}, got {encoding!r} (file '{name}')") from None
        except UnicodeDecodeError as error:
            raise _wrong_byte(error, name, expected=shown) from None
    assumed = "The encoding was taken to be {}.".format
    if content.count(0) > len(content) // 8:  # UTF-16 without a mark
        codec = "utf-16-le" if content[1::2].count(0) > content[::2].count(0) else "utf-16-be"
        with contextlib.suppress(UnicodeDecodeError):
            return content.decode(codec), [assumed("UTF-16")]
    if b"\x1b$" in content:  # Japanese between escapes
        with contextlib.suppress(UnicodeDecodeError):
            return content.decode("iso2022_jp"), [assumed("ISO-2022-JP")]
    try:
        return content.decode(), []
    except UnicodeDecodeError as error:
        not_utf8 = _wrong_byte(error, name)
    if _DEGREES.sub(b"", content).isascii():
        return content.decode("cp1252"), [assumed("Windows-1252")]
    scores = {codec: _score(content, codec) for codec in _CODECS}
    if b"\xa4" not in content:
        scores["iso8859_15"] = 0.0  # its euro, by which it differs from Windows-1252
    if scores["cp949"] == 1.0 and sum(byte > 127 for byte in content[:_LOOKED_AT]) >= 12:
        # The other two have these characters too, but seldom nothing else.
        scores["gb18030"], scores["big5"] = 0.8 * scores["gb18030"], 0.8 * scores["big5"]
    latin = [codec for codec, (_, common) in _CODECS.items() if isinstance(common, frozenset)]
    texts = {codec: content.decode(codec, "replace") for codec in latin}
    different = _DIFFERENT.findall(texts["cp1252"])
    western = len(_CERTAINLY_WESTERN.findall(texts["cp1252"]))
    if scores["cp1252"] == 1.0 and western >= _LEAST_SHARE * len(different):
        for central in ("cp1250", "iso8859_2"):
            scores[central] *= _LEAST_SHARE
    codec, *others = sorted(scores, key=scores.__getitem__, reverse=True)
    other = next(it for it in others if texts.get(it, it) != texts.get(codec))
    shown, (hint, example) = _CODECS[codec][0], ("", "cp1252")
    if _LEAST_SHARE <= scores[codec] < scores[other] + _LEAST_LEAD:
        hint, example = f"it may be in {shown} or in {_CODECS[other][0]}, so ", codec
    if hint or scores[codec] < _LEAST_SHARE:
        remedy = f"set its encoding, such as --encoding={example} (encoding= in Python)"
        raise ValueError(f"{not_utf8}; {hint}{remedy}")
    return content.decode(codec, errors="replace"), [assumed(shown)]


def _score(content: bytes, codec: str) -> float:
    """The share of the characters beyond ASCII that are common where an encoding is used."""
    try:
        text = content.decode(codec)
    except UnicodeDecodeError:
        return 0.0
    others = "".join(re.findall(r"[^\x00-\x7f]+", _ODD.sub("\ufffd", text)))[:_LOOKED_AT]
    if not others:
        return 0.0
    common = _CODECS[codec][1]
    if isinstance(common, _Leads):
        if codec == "euc_jp" and not _HIRAGANA.search(others):
            return 0.0  # then the same bytes are as likely Chinese
        number = sum(
            common.least <= it.encode(common.encoding, "ignore")[:1] <= common.most
            or (common.has_kana and "\u3041" <= it <= "\u30ff")
            or it in "，。（）：；、「」　·％￥"
            for it in others
        )
        return number / len(others)
    if isinstance(common, frozenset):
        if _CONTROL.search(text):
            return 0.0
        runs = re.findall(rb"[\x80-\xff]+", content)
        alone = sum(len(run) <= 2 for run in runs) / len(runs)  # few such letters are neighbours
        return alone * sum(map(common.__contains__, others)) / len(others)
    words = re.findall(r"[^\W\d_]+", text)
    words = [word for word in words if len(word) > 1 and re.fullmatch(common, word)]
    accented = [word for word in words if re.search("[άέήίόύώ]", word)]
    if codec == "cp1253" and 2 * len(accented) < len(words):
        return 0.0  # most Greek words have an accent
    sane = (word for word in words if word in (word.lower(), word.upper(), word.capitalize()))
    share = min(1.0, sum(map(len, sane)) / len(others))
    # Most bytes are letters of Hebrew and Arabic, so that all have to be.
    return share if share > (0.95 if codec in ("cp1255", "cp1256") else 0.8) else 0.0
