"""Every verdict of the official WikiTableQuestions evaluator, against gold answers derived from it.

The verdicts are on altered gold answers of the test splits, whose questions are not at hand. Which
alteration was made is known, so that most gold answers follow: up to what the comparison does not
see (case, accents, white space), or as numbers, whatever their text.
"""

import unicodedata
from collections import Counter
from collections.abc import Callable

from mate_tf.evaluation.official import denotation_correct
from tests.golden.comparison import GOLDEN_REAL, compare
from tests.golden.interactions import load

FAMILY = "wtq evaluator"
# Commas were taken out, and nothing tells from where: a right answer is compared as it is.
UNDONE_ONLY_WHERE_RIGHT = ("nocomma", "thousands")


def without_accents(item: str) -> str:
    characters = unicodedata.normalize("NFKD", item)
    return "".join(c for c in characters if unicodedata.category(c) != "Mn")


def plain_number(item: str) -> str:
    """A number as people write it, anything else as it is."""
    try:
        number = float(item)
    except ValueError:
        return item
    return str(int(number)) if number.is_integer() else repr(number)


# By alteration, an altered item made plain again.
OF_ITEM: dict[str, Callable[[str], str]] = {
    "raw": str,
    "paren": lambda item: item.removesuffix(" (note)"),
    "cite": lambda item: item.removesuffix("[1]*"),
    "dot": lambda item: item.removesuffix("."),
    "spaces": lambda item: " ".join(item.split()),
    "accents": without_accents,
    "quoted": lambda item: item[1:-1],
    "upper": str.lower,
    "float": plain_number,
    "canon": plain_number,
    "sci": plain_number,
    "dateprefix": lambda item: plain_number(item.removeprefix("xx-")),
    "nocomma": str,
    "thousands": str,
}


def gold_of(verdict: dict) -> list[str] | None:
    """The gold answer that was altered; None where the alteration does not say."""
    operation, altered = verdict["op"], verdict["prediction"]
    if operation == "add_zero":
        return altered[:-1]
    if operation == "drop_last":
        return [*altered, "an item that is in no altered answer"]
    if operation == "reversed_dup":
        return list(dict.fromkeys(reversed(altered)))
    if operation in UNDONE_ONLY_WHERE_RIGHT and not verdict["correct"]:
        return None
    return [OF_ITEM[operation](item) for item in altered]


def test_every_verdict_whose_gold_answer_follows_is_reproduced():
    (path,) = GOLDEN_REAL.require("wtq_evaluator_verdicts.json.gz")
    verdicts = load(path)
    not_told, compared, by_operation = [], Counter(), Counter()
    for verdict in verdicts:
        gold = gold_of(verdict)
        if gold is None:
            not_told.append(verdict)
            continue
        given = denotation_correct(verdict["prediction"], gold)
        assert given == verdict["correct"], (verdict, gold)
        compared[verdict["correct"]] += 1
        by_operation[verdict["op"]] += 1
    compare(FAMILY, "verdicts", compared.total(), len(verdicts) - len(not_told), 0)
    assert {verdict["op"] for verdict in not_told} <= set(UNDONE_ONLY_WHERE_RIGHT)
    assert len(not_told) < len(verdicts) / 100
    assert set(by_operation) == {verdict["op"] for verdict in verdicts}
    assert set(compared) == {True, False}
