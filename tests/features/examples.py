"""What tests of features share: an example of a question and a table, tables, and long texts."""

from hypothesis import strategies as st

from mate_tf.features.builder import Example, FeatureBuilder
from mate_tf.features.config import FeatureConfig
from mate_tf.features.wordpiece import Wordpiece
from mate_tf.tables.table import Question, Table

MANY = 40_000
# Texts for which time that is quadratic in their length would be minutes.
HOSTILE = {
    "letters": "a" * 10 * MANY,
    "words": "ab " * 3 * MANY,
    "blanks": " \t\x1c\u2003" * MANY,
    "stops": "." * 10 * MANY,
    "digits": "7" * 10 * MANY,
    "fraction": "0." + "7" * 10 * MANY,
    "thousands": "1" + ",000" * (MANY // 2),
    "numbers": "12 " * (MANY // 2),
    "years": "2004 " * (MANY // 5),
    "dates": "1 May 2001, " * (MANY // 5),
    "dates without a year": "may 5 " * (MANY // 5),
    "far words of a date": f"may{'.' * MANY}5{'.' * MANY}2004",
    "months in one word": "may" * 3 * MANY,
    "signs": "- + " * MANY,
    "halfway": "1.00000000000000011102230246251565404236316680908203125" + "0" * MANY + "1",
    "one reference too few": "[1]" * 50 + "x",
    "open brackets": "[" * MANY,
    "closed brackets": "]" * MANY,
    "nested brackets": "[a" * MANY + "]" * MANY,
    "references": "a [1]" * MANY,
    "open parentheses": "a (" * MANY,
    "closed parentheses": "x" + " )" * MANY,
    "parentheses and references": "x" + " (a) [1]" * MANY,
    "quotes": '"' * MANY,
    "tags": "<a" * MANY,
    "accents": "a" + "\u0301" * MANY + "\u0327" * MANY,
    "characters that are several": "\U0001d16d" * MANY + "\U0001d165" * MANY,
    "ideographs": "京" * MANY,
    "controls and surrogates": "\ud800\x00\x1b5" * (MANY // 2),
}


def build(
    wordpiece: Wordpiece, table: Table, question: Question, require_answers: bool = True, **config
) -> Example:
    builder = FeatureBuilder(wordpiece, FeatureConfig(**config))
    return builder.build(table, question, require_answers)


def pieces(wordpiece: Wordpiece, example: Example, where=None) -> str:
    """The pieces of an example's tokens, or of those chosen by a function of its features."""
    features = example.features
    chosen = features["input_mask"] == 1 if where is None else where(features)
    return " ".join(wordpiece.vocabulary[index] for index in features["input_ids"][chosen])


def rows_of(cells: st.SearchStrategy, max_width: int = 4) -> st.SearchStrategy:
    """Two to six rows of these cells."""
    return st.integers(1, max_width).flatmap(
        lambda width: st.lists(
            st.lists(cells, min_size=width, max_size=width), min_size=2, max_size=6
        )
    )
