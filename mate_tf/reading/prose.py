"""Running text, such as a letter, which is no table although some of its lines have commas."""

import itertools
import re

_LINES = 60
_WORD = re.compile(r"[^\W\d_]{2,}")
_COLUMNS = re.compile(r"[\t;|^~]|\S {2,}\S")  # what separates columns, apart from commas
_TIGHT_COMMA = re.compile(r",(?=[^\s\d])|\d,\d+,|\"")
_SALUTATION = re.compile(
    r"(dear|hello|hi|hey|to whom|sehr geehrte[rs]?|liebe[rs]?|guten tag|estimad[oa]s?|querid[oa]s?|"
    r"cher|chère|madame|monsieur|bonjour|gentile|egregio|beste|geachte)\b[^.;,|\t]{0,60}[,!:]?",
    re.IGNORECASE,
)
_TWO_SENTENCES = re.compile(r"[a-zß-ÿ]{2}[.?!] [^\W\d_]")
_LEAST_WORDS = 4  # a line, on average
_WRAPPED, _SENTENCES, _LIKE = 0.3, 0.5, 0.7  # shares of the lines


def is_prose(text: str) -> bool:
    """Whether a text is running text and no delimited one.

    Its lines are wrapped, or have several sentences each, or a salutation is above them.
    """
    given = text[: 200 * _LINES].splitlines()[:_LINES]
    lines = [line.strip() for line in given if line.strip()]
    words = sum(len(_WORD.findall(line)) for line in lines)
    if len(lines) < 3 or words < _LEAST_WORDS * len(lines):
        return False
    if any(_COLUMNS.search(line) or _TIGHT_COMMA.search(line) for line in lines):
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
