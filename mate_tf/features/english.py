"""English, as questions about tables have it, and how texts are compared.

Words are compared in lower case. A word of a question names another one if it is the same, begins
it or is begun by it (Pop, population), or is nearly spelled like it (apolo, Apollo).
"""

import difflib
import functools
import re
import string
import unicodedata
from collections.abc import Callable, Iterable

_WORD = re.compile(r"[^\W\d_]+|\d+(?:[.,:]\d+)*")
_LEAST_BEGINNING = 3  # letters of an abbreviation
_ALIKE = 0.8  # of two spellings, by difflib's ratio
# Words that say nothing about which row or column is meant.
FUNCTION_WORDS = frozenset(
    "a an and any are as at be been being by can could did do does for from had has have he her his"
    " how i if in into is it its list many me more most much my name no not number of on one or our"
    " out over please she show so some tell than that the their them there these they this those to"
    " total under up us was we were what when where which who whom whose why will with would you"
    " your".split()
)
_GREETINGS = frozenset(
    "hello hi hey hallo hola bonjour ciao greetings good morning afternoon evening day bye goodbye"
    " thanks thank you please there ok okay".split()
)
# The commonest words of other languages that are none in English.
_FOREIGN = frozenset(
    "que qué quién quien cuál cual cuántos cuantos cuántas cuantas cuándo cuando dónde donde cuánto"
    " el la los las del es son está fue más para por una un con y"
    " der die das ist sind wer wie wo wann welche welcher welches wieviel viele hat haben war und"
    " mit von dem den ein eine auf zu im am nicht"
    " quel quelle quels quelles qui où quand combien est sont le les des du et une dans avec plus"
    " quale quali chi dove quando quanti quante quanto il lo gli di della è più"
    " qual quais onde quantos quantas o os uma em é foi"
    " welk hoeveel wie waar wanneer het een van zijn"
    " vilken vilket hur många och är det av som hvor hvilken ile kto gdzie który która jest".split()
) - {"die", "hat", "war", "am", "den", "lo", "es", "a", "plus", "chi", "y", "o", "x", "du", "des"}


# What words of a question mean, each once. They are searched for in lower case, as whole words, by
# `says`; the patterns of bounds look for a number near them, in figures or in words, or a month.
_MORE = (
    r"more|higher|later|longer|greater|larger|bigger|heavier|taller|better|dearer|wider|newer|"
    r"faster|deeper|older"
)
_LESS = r"less|fewer|lower|earlier|shorter|smaller|cheaper|lighter|worse|younger|slower"
_MOST = (
    r"most|highest|largest|greatest|biggest|longest|tallest|heaviest|deepest|farthest|furthest|"
    r"priciest|dearest|costliest|warmest|hottest|maximum|max"
)
_LEAST = (
    r"least|lowest|smallest|fewest|shortest|lightest|cheapest|nearest|closest|coldest|coolest|"
    r"minimum|min"
)
_VALUE = (
    r"(?:[^\w\s]*\d|(?:a |an )?(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|"
    r"fifteen|twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety|hundred|thousand|million|half)\b|"
    r"(?:jan|feb|mar|apr|may|june?|july?|aug|sept?|oct|nov|dec)(?:uary|ruary|ch|il|ust|ember|ober)?\b)"
)
_NEAR = r"(?:\S+ ){0,2}"
_OF_ORDER = r"[- ](?:\w+ )?(?:\w{3,}est|most|least|max|min)"
_MEANINGS = {
    "next": r"after|next|following|follows|followed|below|beneath|behind|succeed\w*",
    "previous": r"before|previous(?:ly)?|prior|preced\w*|above",
    "first": r"first|top",
    "last": r"last|final|bottom",
    "how many": r"how (?:many|often)|number of|count",
    "an amount": r"how (?:many|much|long|often)|number of",
    "different": r"different|distinct|unique|separate",
    "difference": rf"difference|how (?:many|much) (?:\w+ ){{0,3}}(?:{_MORE}|{_LESS})",
    "than": rf"(?:{_MORE}|{_LESS}) than",
    "apart": r"different|between|apart|passed|elapsed|until|margin|gap|from",
    "same": r"same|equal|as \w+ as",
    "total": r"total|sum|combined|together|altogether|overall|in all",
    "average": r"average|mean|avg",
    "share": r"percent|percentage|share|proportion|pct",
    "or": r"or",
    "one of two": r"\w+,? or (?!(?:more|less|fewer|higher|above|below)\b)\w+",
    "yes or no": r"^(?:is|are|was|were|do|does|did|has|have|had|can|will)\b(?!.*\bor\b)",
    "not": r"not|cannot|no(?!\.? ?\d)|none|never|nobody|nothing|without|neither|nor|\w+n['’]t",
    "but": r"except|but|besides|other|only|than",
    "more": rf"{_MORE}|{_MOST}|last|latest|after|over|recent",
    "less": rf"{_LESS}|{_LEAST}|first|earliest|oldest|before|under",
    "most": rf"{_MOST}|slowest|oldest",
    "least": rf"{_LEAST}|fastest|quickest|youngest",
    "latest": r"latest|newest|youngest|most recent(?:ly)?",
    "earliest": r"earliest|soonest|oldest",
    "superlative": r"most|least|\w{3,}est|best|worst|top|maximum|minimum|max|min",
    "second most": rf"(?:second|2nd){_OF_ORDER}",
    "third most": rf"(?:third|3rd){_OF_ORDER}",
    "fourth most": rf"(?:fourth|4th){_OF_ORDER}",
    "second or so": r"second|third|fourth|\d+(?:st|nd|rd|th)",
    "several": r"all|list|both|each|every|names?|are|were|(?:which|what|other) \w+[^s\W]s|"
    r"(?:which|what|the|top|bottom|first|last) (?:two|three|four|five|[2-9])",
    "it or them": r"it|its|he|him|his|she|her|they|them|their|this|that|these|those",
    "them": r"they|them|their",
    "of or which": r"of|which",
    "others": r"all|also|another|before|after|besides|else|next|not|others?|previous|same|second|"
    r"than|\w{3,}est|best|worst|most|least|more|less|fewer",
    "at most": rf"(?:at most|up to|until|(?:no|not) (?:{_MORE}) than) {_NEAR}{_VALUE}|"
    rf"{_VALUE}\S* {_NEAR}or (?:{_LESS}|under|below)",
    "at least": rf"(?:at least|since|(?:no|not) (?:{_LESS}) than) {_NEAR}{_VALUE}|"
    rf"{_VALUE}\S* {_NEAR}or (?:{_MORE}|over|above|up)",
    "over": rf"(?:(?:{_MORE}) than|over|above|exceed\w*|top(?:s|ped)|beyond|after|past) "
    rf"{_NEAR}{_VALUE}",
    "under": rf"(?:(?:{_LESS}) than|under|below|before) {_NEAR}{_VALUE}",
    "in between": rf"between {_NEAR}{_VALUE}\S* {_NEAR}and {_NEAR}{_VALUE}|"
    rf"from {_NEAR}{_VALUE}\S* {_NEAR}(?:to|until|till) {_NEAR}{_VALUE}",
}
# What questions say of a kind of column, and what its name or its first cell says: "cheapest", or
# "under $5", and a price.
_KINDS = (
    (
        r"[$€£¥] ?\d|\d ?(?:dollars?|euros?|pounds|usd|eur|gbp|chf)\b|\b(?:cheap|expensive|dear|"
        r"pric)\w*|\b(?:costs?|pays?|paid|sp[ae]nt|spend|earns?|earned)\b",
        r"[$€£¥]|\b(?:usd|eur|gbp|chf)\b|"
        r"\b(?:price|cost|fare|fee|rent|amount|paid|salary|wage|total)",
    ),
    (
        r"\d ?(?:kgs?|kilos?|g|grams?|lbs?|pounds|oz|tons?)\b|\b(?:heav|light|weigh)\w*",
        r"\b(?:kgs?|lbs?|oz)\b|\d ?g\b|weight|mass",
    ),
    (
        r"\d ?(?:kms?|kilomet\w+|miles?)\b|\b(?:far|further|furthest)\w*",
        r"\b(?:km|miles?)\b|distance",
    ),
    (r"\d ?(?:m²|m2|sq)|\b(?:space|largest|biggest|smallest)\b", r"m²|\b(?:m2|sq|size|area)\b"),
    (r"\d ?(?:%|per ?cent)", r"%|percent"),
    (r"\d ?[gtm]b\b", r"\d ?[gtm]b\b"),
    (r"\d ?kwh\b", r"\bkwh\b"),
    (
        r"\d ?(?:cm|mm|met(?:er|re)s|feet|ft)\b|\b(?:tall|high)(?:er|est)?\b",
        r"\b(?:cm|mm|ft)\b|height|\d ?m\b",
    ),
    (r"\d ?°|degrees|\b(?:warm|hot|cold|cool)\w*", r"°|temp"),
    (
        r"\b(?:older|younger|oldest|youngest|aged?|years old)\b|"
        r"\b(?:over|under|above|below) \d\d?\b",
        r"\bage\b",
    ),
    (
        r"\d ?(?:min\w*|hours?|hrs?|h|seconds?|s)\b|\b(?:quick|fast|slow|short|long)(?:er|est)\b",
        r"\b(?:min(?:ute)?s?|hours?|time)\b|\d ?h\b|\(h\)|duration|length|\d:\d\d",
    ),
    (
        r"\b(?:1[6-9]|20)\d\d\b",
        r"\b(?:year|since|opened|built|founded|joined|born|start|released|date|(?:19|20)\d\d)\b",
    ),
    (r"\d:\d\d|\d ?[ap]\.?m\b|o'clock|\bnoon\b|\bmidnight\b", r"\d:\d\d"),
)


@functools.cache
def _pattern(meaning: str) -> re.Pattern[str]:
    # A bound may end or begin with the first digit of a number.
    return re.compile(rf"(?<!\w)(?:{_MEANINGS[meaning]})(?!(?<=[^\W\d])\w)", re.ASCII)


@functools.lru_cache(maxsize=10_000)
def says(text: str, *meanings: str) -> bool:
    """Whether a text in lower case has words of one of the meanings, such as "next"."""
    return any(_pattern(meaning).search(text) for meaning in meanings)


@functools.lru_cache(maxsize=10_000)
def kinds_named(text: str) -> tuple[int, ...]:
    """The kinds of columns that a question in lower case speaks of, such as prices, by number."""
    return tuple(n for n, (asked, _) in enumerate(_KINDS) if re.search(asked, text, re.ASCII))


def is_of_times(name: str) -> bool:
    """Whether a column's name in lower case says that it has years or dates."""
    return re.search(r"year|born|birth|founded|built|opened|date|since", name) is not None


def is_of_kind(column: str, kind: int) -> bool:
    """Whether a column is of a kind, by its name and first cell in lower case."""
    return re.search(_KINDS[kind][1], column, re.ASCII) is not None


def words(text: str) -> list[str]:
    """The words and numbers of a text, in lower case."""
    return _WORD.findall(text.casefold())


def is_english(question: str) -> bool:
    """Whether a question may be English: in Latin letters, and with no more foreign words."""
    letters = [letter for letter in question if letter.isalpha()]
    if sum(letter < "\u0250" for letter in letters) < len(letters) / 2:
        return False
    given = words(question)
    num_foreign = sum(word in _FOREIGN for word in given)
    return num_foreign <= sum(word in FUNCTION_WORDS for word in given)


def asks_nothing(question: str) -> bool:
    """Whether a text has only punctuation, or no word that is not a greeting's."""
    given = words(question)
    if not given:
        return all(unicodedata.category(letter)[0] in "PZC" for letter in question)
    return _GREETINGS.issuperset(given)


@functools.lru_cache(maxsize=10_000)  # the words of a column come again and again
def is_named(word: str, question: tuple[str, ...]) -> bool:
    """Whether one of a question's words names a word."""
    if word in question:
        return True
    if not word.isalpha():
        return False
    begins = len(word) >= _LEAST_BEGINNING and any(
        len(other) >= _LEAST_BEGINNING and (other.startswith(word) or word.startswith(other))
        for other in question
        if other.isalpha()
    )
    return begins or bool(difflib.get_close_matches(word, question, 1, _ALIKE))


def share_named(text: str, question: tuple[str, ...]) -> float:
    """The share of a text's words, other than function words, that a question's words name."""
    given = content_words(text)
    return sum(is_named(word, question) for word in given) / len(given) if given else 0.0


def content_words(text: str) -> tuple[str, ...]:
    """The words of a text that may name a row or a column."""
    return tuple(word for word in words(text) if word not in FUNCTION_WORDS)


def most_named(texts: Iterable[str], question: tuple[str, ...]) -> float:
    """The largest share of a text's words that a question's words name; 0 without texts."""
    return max((share_named(text, question) for text in texts), default=0.0)


# How texts are compared: answers with cells and with each other. All is linear in their length.
_QUOTES_AND_DASHES = {
    **dict.fromkeys("\u2018\u2019\u00b4`", "'"),  # single quotes, acute and grave accent
    **dict.fromkeys("\u201c\u201d", '"'),
    **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2212", "-"),  # hyphens, dashes, minus
}
_REFERENCE_MARKS = frozenset("\u2022\u2666\u2020\u2021*#+")
_TAG = re.compile("<[^<]+?>")
_CHARACTERS_REMEMBERED = 1 << 16
_PUNCTUATION_TO_BLANKS = str.maketrans(dict.fromkeys(string.punctuation, " "))


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
    parts = unicodedata.normalize("NFKD", character)
    plain = (_QUOTES_AND_DASHES.get(it, it) for it in parts if unicodedata.category(it) != "Mn")
    return "".join(plain)


_PLAIN_CHARACTERS = CharacterTable(_plain)


def _without_details(text: str) -> str:
    """The text without all references and parentheses at its end and quotes around it."""
    text = text.strip()
    begin, end = 0, len(text)
    while begin < end:
        last = text[end - 1]
        if last.isspace() or last in _REFERENCE_MARKS:
            kept = end - 1
        elif last in "])":
            kept = _begin_of_last(text, begin, end, "[" if last == "]" else " (")
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


def _begin_of_last(text: str, begin: int, end: int, opening: str) -> int:
    """Where the reference "[...]" or " (...)" at the end begins, or `end`.

    The whole text is one only if it is a number in brackets.
    """
    inside = max(begin, text.rfind(text[end - 1], begin, end - 1) + 1)
    place = text.find(opening, inside, end - 1)
    if place == begin and not (opening == "[" and text[begin + 1 : end - 1].isdecimal()):
        place = text.find(opening, begin + 1, end - 1)
    return end if place < 0 else place


def normalize_words(text: str) -> str:
    """The words of a text in lower case, without articles; ASCII punctuation separates words.

    HybridQA looks for answers in cells and passages in this form (Chen et al., 2020).
    """
    words = text.translate(_PUNCTUATION_TO_BLANKS).lower().split()
    return " ".join(word for word in words if word not in ("a", "an", "the"))
