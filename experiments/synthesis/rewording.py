"""Other words for the same: synonyms of headers, and typing errors."""

import random
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from mate_tf.reading.text_files import read_text

_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_LEAST_MISTYPED = 4  # letters of a word


@cache
def _synonyms() -> Mapping[str, tuple[str, ...]]:
    """The other names of each header in synonyms.txt, by its name in lower case."""
    names: dict[str, tuple[str, ...]] = {}
    for line in read_text(Path(__file__).with_name("synonyms.txt")).splitlines():
        alike = tuple(name.strip() for name in line.split("|"))
        for name in alike:
            others = tuple(other for other in alike if other.lower() != name.lower())
            names.setdefault(name.lower(), others)
    return names


def synonym(name: str, rng: random.Random) -> str:
    """Another name for a header; the same where none is known."""
    others = _synonyms().get(name.strip().lower())
    if not others:
        return name
    chosen = rng.choice(others)
    return chosen.lower() if name.islower() else chosen


def other_header(header: Sequence[str], rng: random.Random) -> list[str]:
    """A header with other names, where any are known that no column has or had."""
    taken, names = {name.strip().lower() for name in header}, []
    for name in header:
        other = synonym(name, rng)
        names.append(name if other.lower() in taken else other)
        taken.add(names[-1].lower())
    return names


def mistyped(text: str, rng: random.Random) -> str:
    """A text with a typing error in one word: a letter left out, twice, wrong, or two swapped."""
    words = text.split(" ")
    places = [i for i, word in enumerate(words) if len(word) >= _LEAST_MISTYPED and word.isalpha()]
    if not places:
        return text
    place = rng.choice(places)
    word = words[place]
    at = rng.randrange(1, len(word) - 1)
    words[place] = word[:at] + rng.choice(
        (
            word[at + 1 :],
            word[at] + word[at:],
            rng.choice(_LETTERS) + word[at + 1 :],
            word[at + 1] + word[at] + word[at + 2 :],
        )
    )
    return " ".join(words)
