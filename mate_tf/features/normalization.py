"""How texts are compared: answers with cells and with each other.

The time of every function is linear in the length of its text.
"""

import re
import string
import unicodedata
from collections.abc import Callable

_QUOTES_AND_DASHES = {
    **dict.fromkeys("\u2018\u2019\u00b4`", "'"),  # single quotes, acute and grave accent
    **dict.fromkeys("\u201c\u201d", '"'),
    **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2212", "-"),  # hyphens, dashes, minus
}
_REFERENCE_MARKS = frozenset("\u2022\u2666\u2020\u2021*#+")
_TAG = re.compile("<[^<]+?>")
_CHARACTERS_REMEMBERED = 1 << 16
_PUNCTUATION_TO_BLANKS = str.maketrans(dict.fromkeys(string.punctuation, " "))
_ARTICLES = frozenset(("a", "an", "the"))


def normalize_for_match(text: str) -> str:
    """A text in lower case, with one blank for each run of white space."""
    return " ".join(text.lower().split())


def normalize_denotation(text: str, original: bool = False) -> str:
    """The form in which WikiTableQuestions compares texts (Pasupat and Liang, 2015, section 7.1).

    Accents, trailing references ("[3]", "*"), trailing parentheses, quotes around the whole, a
    final full stop, case and extra white space do not count. With `original` tags such as "<b>" do
    not either, as in the authors' release of TAPAS, but not in the official evaluation.
    """
    plain = text.replace("`", "'") if text.isascii() else text.translate(_PLAIN_CHARACTERS)
    plain = normalize_for_match(_without_details(plain).removesuffix("."))
    return _TAG.sub("", plain) if original else plain


class CharacterTable(dict[int, str]):
    """For str.translate: what a function makes of a character, computed once for each.

    One character at a time, because unicodedata needs quadratic time to order a run of accents.
    """

    def __init__(self, function: Callable[[str], str]) -> None:
        self._function = function

    def __missing__(self, code: int) -> str:
        result = self._function(chr(code))
        if len(self) < _CHARACTERS_REMEMBERED:
            self[code] = result
        return result


def _plain(character: str) -> str:
    """Plain compatible characters without accents."""
    return "".join(
        _QUOTES_AND_DASHES.get(part, part)
        for part in unicodedata.normalize("NFKD", character)
        if unicodedata.category(part) != "Mn"
    )


_PLAIN_CHARACTERS = CharacterTable(_plain)


def _without_details(text: str) -> str:
    """The text without all references and parentheses at its end and quotes around it."""
    text = text.strip()
    begin, end = 0, len(text)
    while begin < end:
        last = text[end - 1]
        if last.isspace() or last in _REFERENCE_MARKS:
            kept = end - 1
        elif last == "]":
            kept = _begin_of_reference(text, begin, end)
        elif last == ")":
            kept = _begin_of_parenthesis(text, begin, end)
        elif last == '"' and end - begin > 1 and text[begin] == '"':
            if text.find('"', begin + 1) != end - 1:
                break
            begin, kept = begin + 1, end - 1
            while begin < kept and text[begin].isspace():
                begin += 1
        else:
            break
        if kept == end:
            break
        end = kept
    return text[begin:end]


def _begin_of_reference(text: str, begin: int, end: int) -> int:
    """Where "[...]" at the end begins, or `end`. If it is the whole text it must be a number."""
    inside = max(begin, text.rfind("]", begin, end - 1) + 1)
    opening = text.find("[", inside, end - 1)
    if opening == begin and not text[begin + 1 : end - 1].isdecimal():
        opening = text.find("[", begin + 1, end - 1)
    return end if opening < 0 else opening


def _begin_of_parenthesis(text: str, begin: int, end: int) -> int:
    """Where " (...)" at the end begins, or `end`; it is never the whole text."""
    inside = max(begin, text.rfind(")", begin, end - 1) + 1)
    opening = text.find(" (", inside, end - 1)
    return end if opening <= begin else opening


def normalize_words(text: str) -> str:
    """The words of a text in lower case, without articles; ASCII punctuation separates words.

    HybridQA looks for answers in cells and passages in this form (Chen et al., 2020).
    """
    words = text.translate(_PUNCTUATION_TO_BLANKS).lower().split()
    return " ".join(word for word in words if word not in _ARTICLES)
