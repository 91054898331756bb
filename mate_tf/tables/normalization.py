"""Texts that count as equal: how answers are compared with cells and with each other."""

import re
import string
import unicodedata

_QUOTES_AND_DASHES = str.maketrans(
    {
        **dict.fromkeys("\u2018\u2019\u00b4`", "'"),  # single quotes, acute and grave accent
        **dict.fromkeys("\u201c\u201d", '"'),
        **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2212", "-"),  # hyphens, dashes, minus
    }
)
_PUNCTUATION_TO_BLANKS = str.maketrans(dict.fromkeys(string.punctuation, " "))
_ARTICLES = frozenset(("a", "an", "the"))
_TRAILING_REFERENCES = re.compile(
    r"(?: (?<!^) \[ [^\]]* \] | ^ \[ \d+ \] | [\u2022\u2666\u2020\u2021*\#+] )+ $", re.VERBOSE
)
_TRAILING_PARENTHESES = re.compile(r"(?<!^)(?: \([^)]*\))+$")
_QUOTED_WHOLE = re.compile(r'^"([^"]*)"$')


def normalize_for_match(text: str) -> str:
    """Lower-cases a text and reduces each run of white space to one blank."""
    return " ".join(text.lower().split())


def normalize_denotation(text: str) -> str:
    """Reduces a text to what WikiTableQuestions compares (Pasupat and Liang, 2015, section 7.1).

    Accents, trailing references ("[3]", "*"), trailing parentheses, quotes around the whole, a
    final full stop, case and extra white space do not count.
    """
    decomposed = unicodedata.normalize("NFKD", text)
    text = "".join(char for char in decomposed if unicodedata.category(char) != "Mn")
    text = text.translate(_QUOTES_AND_DASHES)
    before = None
    while text != before:
        before = text
        text = _TRAILING_REFERENCES.sub("", text.strip())
        text = _TRAILING_PARENTHESES.sub("", text.strip())
        text = _QUOTED_WHOLE.sub(r"\1", text.strip())
    return normalize_for_match(text.removesuffix("."))


def normalize_words(text: str) -> str:
    """Reduces a text to its lower-case words without articles; ASCII punctuation parts words.

    It is how HybridQA's answers are looked for in cells and passages (Chen et al., 2020).
    """
    words = text.translate(_PUNCTUATION_TO_BLANKS).lower().split()
    return " ".join(word for word in words if word not in _ARTICLES)
