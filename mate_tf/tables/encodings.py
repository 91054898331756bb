"""The text of a file's bytes: by its byte order mark, as UTF-8, or in the likeliest old encoding.

Before UTF-8 each region had its own encoding, and files in them say nothing of it. A wrong one
gives characters that nobody writes, so the one is taken whose characters are common; where two are
about equally good, neither is.
"""

import codecs
import contextlib
import re
from typing import NamedTuple

from mate_tf.tables.text_files import wrong_byte

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
    if encoding is not None:
        try:
            if codecs.lookup(encoding).name in _OF_NAMES:
                raise LookupError
            return content.decode(encoding).removeprefix("\ufeff"), []
        except LookupError:
            raise ValueError(
                f"expected an encoding such as utf-8 or cp1252, got {encoding!r} (file '{name}')"
            ) from None
        except UnicodeDecodeError as error:
            raise wrong_byte(error, name, encoding) from None
    for mark, codec, shown in _MARKS:
        if content.startswith(mark):
            try:
                return content.decode(codec), []
            except UnicodeDecodeError as error:
                raise wrong_byte(error, name, shown) from None
    if content.count(0) > len(content) // 8:  # UTF-16 without a mark
        codec = "utf-16-le" if content[1::2].count(0) > content[::2].count(0) else "utf-16-be"
        with contextlib.suppress(UnicodeDecodeError):
            return content.decode(codec), ["The encoding was taken to be UTF-16."]
    if b"\x1b$" in content:  # Japanese between escapes
        with contextlib.suppress(UnicodeDecodeError):
            return content.decode("iso2022_jp"), ["The encoding was taken to be ISO-2022-JP."]
    try:
        return content.decode(), []
    except UnicodeDecodeError as error:
        not_utf8 = wrong_byte(error, name)
    if _DEGREES.sub(b"", content).isascii():
        return content.decode("cp1252"), ["The encoding was taken to be Windows-1252."]
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
    others = [other for other in others if texts.get(other, other) != texts.get(codec)]
    other = others[0]
    best, second, shown = scores[codec], scores[other], _CODECS[codec][0]
    if best < _LEAST_SHARE:
        raise ValueError(
            f"{not_utf8}; set its encoding, such as --encoding=cp1252 (encoding= in Python)"
        )
    if best < second + _LEAST_LEAD:
        raise ValueError(
            f"{not_utf8}; it may be in {shown} or in {_CODECS[other][0]}, so set its encoding, "
            f"such as --encoding={codec} (encoding= in Python)"
        )
    return content.decode(codec, errors="replace"), [f"The encoding was taken to be {shown}."]


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
        found = sum(
            common.least <= it.encode(common.encoding, "ignore")[:1] <= common.most
            or (common.has_kana and "\u3041" <= it <= "\u30ff")
            or it in "，。（）：；、「」　·％￥"
            for it in others
        )
        return found / len(others)
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
