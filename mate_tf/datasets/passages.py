"""Cells expanded with the sentences, of the pages that they link to, that are like the question.

Shape letters: N sentences of a table's passages, V words and pairs of neighbouring words.
"""

import functools
import itertools
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from mate_tf.tables.linked_table import LinkedTable, Passage
from mate_tf.tables.table import Question, Table

_TABLES_REMEMBERED = 128
_SHARE_OF_COMMON_TERMS = 0.9  # what is in more of the sentences tells none from another
_MAX_CHARACTERS = 10_000
_LONGEST_OF_SIGNS = 1_000  # characters
_WORD = re.compile(r"[^\W_]")
_DIGITS_OF_A_SCORE = 12  # beyond them equal scores differ by rounding


class _Index(NamedTuple):
    """What questions of a table share."""

    sentences: tuple[str, ...]
    of_passage: Mapping[Passage, tuple[str, ...]]
    terms_of: Callable[[str], Iterable[str]] = str.split
    term_ids: Mapping[str, int] = MappingProxyType({})  # none where no sentence has a term
    idf: np.ndarray = np.zeros(0)  # float64 [V]
    weights: Any = None  # sparse [N, V], rows of length 1


def expand_cells(
    linked: LinkedTable,
    question: Question,
    num_sentences: int = 5,
    with_titles: bool = False,
    original: bool = False,
) -> Table:
    """Gives cells the sentences of their passages that are most like the question.

    As in MATE's experiments on HybridQA (Eisenschlos et al., 2021, section 5) the num_sentences
    best of a table's sentences, by TF-IDF over words and pairs of words, follow the texts of the
    cells that link to them: "Oslo" becomes "Oslo ( Oslo is the capital of Norway . )". A cell
    with several passages has parentheses for each, and in them the sentences keep their order.

    Args:
        linked: the table and its passages.
        question: of which only the text matters.
        num_sentences: how many sentences of all passages may be taken.
        with_titles: whether a passage's title and a colon precede its sentences.
        original: whether sentences that no cell can show take places, as those of the header's
            passages and a sentence's second occurrence, and titles begin behind the address's
            last slash, as in the authors' release.

    Returns:
        The table with `expansions`; its rows are as they were. Where no sentence has a word of
        the question it is the table itself.

    Raises:
        ValueError: if num_sentences is negative.
    """
    if num_sentences < 0:
        raise ValueError(f"expected num_sentences to be at least 0, got {num_sentences}")
    sentences, scores = score_sentences(linked, question, original)
    best = np.argsort(-scores, kind="stable")[:num_sentences]
    chosen = {sentences[i] for i in best if scores[i] > 0}
    return expand_with(linked, chosen, with_titles, original)


def score_sentences(
    linked: LinkedTable, question: Question, original: bool = False
) -> tuple[tuple[str, ...], np.ndarray]:
    """How like the question each sentence of a table's passages is.

    Returns:
        The sentences, row by row, and cosines, float64 [N], rounded so that a tie is a tie; in a
        tie the first sentence is taken. The original takes them in the order of a hash map.
    """
    index = _index(linked, original)
    asked = np.zeros(len(index.idf))  # [V]
    for term in index.terms_of(question.text):
        if (id_ := index.term_ids.get(term)) is not None:
            asked[id_] += index.idf[id_]
    if not asked.any():
        return index.sentences, np.zeros(len(index.sentences))
    scores = index.weights @ (asked / np.linalg.norm(asked))  # [N]
    return index.sentences, scores.round(_DIGITS_OF_A_SCORE)


def expand_with(
    linked: LinkedTable,
    sentences: Collection[str],
    with_titles: bool = False,
    original: bool = False,
) -> Table:
    """Gives cells those sentences of their passages that are among `sentences`."""
    if not sentences:
        return linked.table
    of_passage = _index(linked, original).of_passage
    expansions = {}
    for passage in linked.distinct_passages():
        text = " ".join(filter(sentences.__contains__, of_passage[passage]))
        if text and with_titles:
            title = passage.title.rpartition("/")[2] if original else passage.title
            text = f"{title} : {text}"
        expansions[passage] = f"( {text} )" if text else ""

    def expansion(cell: tuple[Passage, ...]) -> str:
        return " ".join(filter(None, map(expansions.__getitem__, cell)))

    table = linked.table
    return Table(
        table.header,
        table.rows,
        table.table_id,
        table.document_title,
        table.context_heading,
        tuple(tuple(map(expansion, row)) for row in linked.passages),
    )


@functools.lru_cache(_TABLES_REMEMBERED)
def _index(linked: LinkedTable, original: bool) -> _Index:
    from sklearn.feature_extraction.text import TfidfVectorizer

    passages = dict.fromkeys(linked.distinct_passages())
    if original:
        passages |= dict.fromkeys(linked.other_passages)
    of_passage = {passage: split_sentences(passage.text) for passage in passages}
    sentences = tuple(sentence for of_one in of_passage.values() for sentence in of_one)
    if not original:
        sentences = tuple(dict.fromkeys(sentences))
    # A lone sentence shares all of its terms with all sentences.
    share = _SHARE_OF_COMMON_TERMS if len(sentences) > 1 else 1.0
    vectorizer = TfidfVectorizer(ngram_range=(1, 2), max_df=share)
    try:
        weights = vectorizer.fit_transform(sentences)
    except ValueError:  # not a single term remains
        return _Index(sentences, of_passage)
    return _Index(
        sentences,
        of_passage,
        vectorizer.build_analyzer(),
        vectorizer.vocabulary_,
        vectorizer.idf_,
        weights,
    )


def forget_tables() -> None:
    """Empties what is remembered of tables, as for timing the expansion of a new one."""
    _index.cache_clear()


def split_sentences(text: str) -> tuple[str, ...]:
    """Splits a text into sentences, without white space around them.

    The splitter is Punkt (Kiss and Strunk, 2006) without training: it knows no abbreviations,
    which in text like HybridQA's, tokenized and its full stops between blanks, is no loss. Its
    time is quadratic, so a text of more than 10,000 characters is cut at blanks beforehand; and a
    long stretch without a letter or digit is left whole, for each of its stops takes Punkt as long
    as a sentence.
    """
    sentences = itertools.chain.from_iterable(map(_split, _cut(text)))
    return tuple(filter(None, map(str.strip, sentences)))


def _split(text: str) -> Iterable[str]:
    if len(text) > _LONGEST_OF_SIGNS and not _WORD.search(text):
        return (text,)
    return _punkt().tokenize(text)


def _cut(text: str) -> Iterator[str]:
    while len(text) > _MAX_CHARACTERS:
        end = text.rfind(" ", 1, _MAX_CHARACTERS)
        end = _MAX_CHARACTERS if end < 0 else end
        yield text[:end]
        text = text[end:]
    yield text


@functools.cache
def _punkt() -> Any:
    from nltk.tokenize.punkt import PunktSentenceTokenizer

    return PunktSentenceTokenizer()
