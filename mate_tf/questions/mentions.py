"""How a question calls a column, a cell, and what it asks for."""

import random
import re

from mate_tf.statements.typed_table import TypedTable

_PARENTHESES = re.compile(r"\s*[(\[][^)\]]*[)\]]")
_NO_WORDS = re.compile(r"[^\w%$]+")
_LONGEST_CELL = 10  # words of a cell that are quoted at most
_SHARE_SHORTENED = 0.25
_SHARE_OF_QUESTION_WORDS = 0.6
_WHICH = ("which {}", "what {}")
_PEOPLE = frozenset(
    "name names player players driver drivers rider winner champion director author artist singer "
    "president mayor governor coach manager captain candidate nominee opponent actor actress "
    "performer host architect king queen minister senator representative swimmer athlete wrestler "
    "skipper jockey trainer composer writer producer leader incumbent person".split()
)
_PLACES = frozenset(
    "country nation city town location venue place state county province region stadium site arena "
    "hometown birthplace district municipality village area territory".split()
)


def column_mention(table: TypedTable, column: int, rng: random.Random) -> str:
    """A column's name in lower case, mostly without what stands in parentheses."""
    name = table.columns[column].name.lower()
    plain = _PARENTHESES.sub("", name).strip()
    return plain if _has_words(plain) and rng.random() < 0.8 else name


def cell_mention(table: TypedTable, row: int, column: int, rng: random.Random) -> str:
    """A cell's text, at times a part of it that no other cell of its column has."""
    column_cells = table.columns[column].cells
    text = column_cells[row]
    plain = _PARENTHESES.sub("", text).strip().strip('"')
    choices = [plain] if _has_words(plain) else [text]
    words = choices[0].split()
    if len(words) > _LONGEST_CELL:
        choices = [" ".join(words[:_LONGEST_CELL])]
    elif len(words) > 1 and table.columns[column].kind == "text":
        parts = [" ".join(part) for part in (words[1:], words[:-1], words[-1:])]
        if rng.random() < _SHARE_SHORTENED:
            choices = [part for part in parts if _is_telling(part, text, column_cells)] or choices
    return rng.choice(choices).lower()


def asking_for(table: TypedTable, column: int, name: str, rng: random.Random) -> str:
    """What a question asks for, by its column: "who", "which driver"."""
    words = set(_NO_WORDS.sub(" ", name).split())
    kind = table.columns[column].kind
    question_words = []
    if words & _PEOPLE:
        question_words += ["who", "who"]
    if words & _PLACES:
        question_words += ["where"]
    if kind == "date" or words & {"year", "date", "season"}:
        question_words += ["when", "what year"]
    if kind == "number":
        question_words += [f"how many {name}"]
    if question_words and rng.random() < _SHARE_OF_QUESTION_WORDS:
        return rng.choice(question_words)
    return rng.choice(_WHICH).format(name)


def _is_telling(part: str, text: str, cells: tuple[str, ...]) -> bool:
    """Whether a part of a cell's text is long enough, and in no other cell of its column."""
    return len(part) >= 4 and not any(part in cell for cell in cells if cell != text)


def _has_words(text: str) -> bool:
    return any(map(str.isalnum, text))
