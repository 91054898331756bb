"""Expands cells with the sentences of their passages that are similar to the question.

Shape letters: N sentences of a table's passages, V words and pairs of neighbouring words.
"""

import collections
import functools
import itertools
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from mate_tf.private_apis import import_extra
from mate_tf.tables.linked_table import LinkedTable, Passage
from mate_tf.tables.table import Question, Table

_TABLES_REMEMBERED = 128
_SHARE_OF_COMMON_TERMS = 0.9  # terms of more sentences are ignored
_MAX_CHARACTERS = 10_000
_LONGEST_OF_SIGNS = 1_000  # characters
_WORD = re.compile(r"[^\W_]")
_TERM = re.compile(r"\b\w\w+\b")
# Without their last full stop, as Punkt takes them; initials of names are among them.
_ABBREVIATIONS = frozenset(
    "mr mrs ms dr prof rev hon sen rep gov gen col lt sgt capt cmdr adm maj sr jr st ste mt ft "
    "messrs pres supt inc ltd co corp bros llc plc dept univ assn ave blvd rd no nos vol vols pp "
    "fig figs ed eds est approx ca cf vs al etc i.e e.g a.k.a jan feb mar apr jun jul aug sep "
    "sept oct nov dec a.m p.m b.c a.d u.s u.s.a u.k u.n e.u d.c l.a n.y ph.d m.d b.a m.a s.p.a "
    "s.a s.r.l gmbh s.l n.v b.v".split()
)
_DIGITS_OF_A_SCORE = 12  # beyond them equal scores differ by rounding


class _Index(NamedTuple):
    """The data that all questions about a table share."""

    sentences: tuple[str, ...]
    of_passage: Mapping[Passage, tuple[str, ...]]
    term_ids: Mapping[str, int]
    idf: np.ndarray  # float64 [V]
    rows: np.ndarray  # int [weights], the sentence of each weight
    columns: np.ndarray  # int [weights], its term
    weights: np.ndarray  # float64 [weights], of each sentence of length 1


def expand_cells(
    linked: LinkedTable,
    question: Question,
    num_sentences: int = 5,
    with_titles: bool = False,
    original: bool = False,
) -> Table:
    """Adds to cells the sentences of their passages that are most similar to the question.

    As in MATE's experiments on HybridQA (Eisenschlos et al., 2021, section 5), the num_sentences
    best sentences of the table's passages, by TF-IDF over words and pairs of words, follow the
    texts of the cells that link to them: "Oslo" becomes "Oslo ( Oslo is the capital of Norway . )".
    Each passage of a cell has its own parentheses, with its sentences in order.

    Args:
        linked: the table and its passages.
        question: only its text is used.
        num_sentences: the most sentences to take from all passages.
        with_titles: whether a passage's title and a colon precede its sentences.
        original: whether to do as the authors' release does: sentences that no cell can show, such
            as those of the header's passages and repeated ones, take places, and a title begins
            after the last slash of the address.

    Returns:
        The table with `expansions` and unchanged rows; the table itself if no sentence has a word
        of the question.

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
    """The similarity of each sentence of a table's passages with the question.

    Returns:
        The sentences, row by row, and cosines, float64 [N], rounded so that equal scores tie. In a
        tie the first sentence is taken; the original takes them in the order of a hash map.
    """
    index = _index(linked, original)
    asked = np.zeros(len(index.idf))  # [V]
    for term in _terms(question.text):
        if (id_ := index.term_ids.get(term)) is not None:
            asked[id_] += index.idf[id_]
    if not asked.any():
        return index.sentences, np.zeros(len(index.sentences))
    asked /= np.linalg.norm(asked)
    products = index.weights * asked[index.columns]
    scores = np.bincount(index.rows, products, len(index.sentences))  # [N]
    return index.sentences, scores.round(_DIGITS_OF_A_SCORE)


def expand_with(
    linked: LinkedTable,
    sentences: Collection[str],
    with_titles: bool = False,
    original: bool = False,
) -> Table:
    """Adds to cells those sentences of their passages that are in `sentences`."""
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
    passages = dict.fromkeys(linked.distinct_passages())
    if original:
        passages |= dict.fromkeys(linked.other_passages)
    of_passage = {passage: split_sentences(passage.text, original) for passage in passages}
    sentences = tuple(sentence for of_one in of_passage.values() for sentence in of_one)
    if not original:
        sentences = tuple(dict.fromkeys(sentences))
    counts = [collections.Counter(_terms(sentence)) for sentence in sentences]
    with_term = collections.Counter(itertools.chain.from_iterable(counts))
    # All terms of a single sentence are in all sentences.
    share = _SHARE_OF_COMMON_TERMS if len(sentences) > 1 else 1.0
    most = share * len(sentences)
    kept = [term for term, number in with_term.items() if number <= most]
    term_ids = {term: id_ for id_, term in enumerate(kept)}
    numbers = np.array([with_term[term] for term in kept], np.float64)  # [V]
    idf = np.log((1.0 + len(sentences)) / (1.0 + numbers)) + 1.0
    entries = [
        (row, term_ids[term], count)
        for row, of_one in enumerate(counts)
        for term, count in of_one.items()
        if term in term_ids
    ]
    rows, columns, times = np.array(entries, int).reshape(-1, 3).T
    weights = times * idf[columns]
    lengths = np.sqrt(np.bincount(rows, np.square(weights), len(sentences)))  # [N]
    return _Index(sentences, of_passage, term_ids, idf, rows, columns, weights / lengths[rows])


def _terms(text: str) -> list[str]:
    """The words of two characters and more, and the pairs of neighbours among them."""
    words = _TERM.findall(text.lower())
    return words + [f"{word} {following}" for word, following in itertools.pairwise(words)]


def forget_tables() -> None:
    """Empties the cache of tables, to time the expansion of a new one."""
    _index.cache_clear()


def split_sentences(text: str, original: bool = False) -> tuple[str, ...]:
    """Splits a text into sentences, without white space around them.

    The splitter is Punkt (Kiss and Strunk, 2006) without training, but with abbreviations that end
    no sentence, such as "St." and "U.S."; `original` leaves them out, as the authors' release does.
    Its time is quadratic, so that texts of more than 10,000 characters are cut at blanks first, and
    a long stretch of signs alone stays whole.
    """
    sentences = itertools.chain.from_iterable(_split(part, original) for part in _cut(text))
    return tuple(filter(None, map(str.strip, sentences)))


def _split(text: str, original: bool) -> Iterable[str]:
    if len(text) > _LONGEST_OF_SIGNS and not _WORD.search(text):
        return (text,)
    return _punkt(original).tokenize(text)


def _cut(text: str) -> Iterator[str]:
    while len(text) > _MAX_CHARACTERS:
        end = text.rfind(" ", 1, _MAX_CHARACTERS)
        end = _MAX_CHARACTERS if end < 0 else end
        yield text[:end]
        text = text[end:]
    yield text


@functools.cache
def _punkt(original: bool) -> Any:
    punkt = import_extra("nltk.tokenize.punkt", "passages", "to split passages into sentences")
    parameters = punkt.PunktParameters()
    if not original:
        parameters.abbrev_types = set(_ABBREVIATIONS)
    return punkt.PunktSentenceTokenizer(parameters)
