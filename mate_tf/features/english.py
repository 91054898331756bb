"""English, as questions about tables have it.

Words are compared in lower case. A word of a question names another one if it is the same, begins
it or is begun by it (Pop, population), or is nearly spelled like it (apolo, Apollo).
"""

import difflib
import functools
import re
import unicodedata
from collections.abc import Iterable

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
