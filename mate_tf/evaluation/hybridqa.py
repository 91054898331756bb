"""HybridQA's scores as its release computes them, and Hits@k."""

import json
import re
import string
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

from mate_tf.tables.text_files import complete_text_file

_WITHOUT_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLE = re.compile(r"\b(?:an?|the)\b")


def normalize_answer(text: str) -> str:
    """An answer's lower-case words without articles and ASCII punctuation.

    "it's" is one word here, unlike in `normalize_words`, by which answers are found.
    """
    return " ".join(_ARTICLE.sub(" ", text.lower().translate(_WITHOUT_PUNCTUATION)).split())


def exact_match(prediction: str, gold: str) -> float:
    """1 for two answers that are equal once normalised, otherwise 0."""
    return float(normalize_answer(prediction) == normalize_answer(gold))


def f1(prediction: str, gold: str) -> float:
    """The harmonic mean of precision and recall of an answer's words; 1 for two empty answers."""
    predicted = Counter(normalize_answer(prediction).split())
    expected = Counter(normalize_answer(gold).split())
    total = predicted.total() + expected.total()
    return 2 * (predicted & expected).total() / total if total else 1.0


def hits_at(k: int, ranked: Iterable[tuple[int, int]], gold: Collection[tuple[int, int]]) -> float:
    """1 where one of the k best cells holds the answer, otherwise 0 (MATE, section 6).

    `gold` are all cells that hold the answer; without any there is no hit, as in the release.
    """
    best = list(dict.fromkeys(ranked))[:k]
    return float(not set(best).isdisjoint(gold))


def write_official(path: str | Path, answers: Mapping[str, str]) -> None:
    """Writes answers by question id for the release's evaluation and leaderboard."""
    entries = [{"question_id": id_, "pred": answer} for id_, answer in answers.items()]
    with complete_text_file(path) as file:
        file.write(json.dumps(entries, indent=1) + "\n")
