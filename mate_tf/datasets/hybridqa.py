"""HybridQA, in the layout of its official release (Chen et al., 2020), and its passages in cells.

Cells are expanded with the sentences of their passages that are similar to the question, whatever
data set the passages are from.

Shape letters: N sentences of a table's passages, V words and pairs of neighbouring words.
"""

import collections
import dataclasses
import functools
import itertools
import re
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

import numpy as np

from mate_tf.dataclass_json import require
from mate_tf.datasets.json_lines import naming
from mate_tf.private_apis import import_extra
from mate_tf.reading.text_files import read_json
from mate_tf.tables.linked_table import LinkedTable, Passage
from mate_tf.tables.table import Question, Table, check_coordinates, remember

# The two repositories of the release: questions; tables and passages.
_QUESTIONS, _TABLES = "released_data", "WikiTables-WithLinks"
_FOLDERS = ("tables_tok", "request_tok")
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


def read_hybridqa(
    directory: str | Path, split: str, traced: bool = False, original: bool = False
) -> Iterator[tuple[LinkedTable, Question]]:
    """Yields each question with its table and the passages that the cells link to.

    Answers are texts: `supervise_linked` finds their cells, and `expand_cells` puts sentences of
    the passages into the table. Questions have the release's `part_of_speech_tags`, if any.

    The folder is the release: folders `tables_tok` and `request_tok` beside the questions' files,
    or the official repositories, `WikiTables-WithLinks` beside `released_data`. The split is
    "train", "dev" or "test" (with hidden answers). If `traced`, `answer_coordinates` are the cells
    that the release traced the answers to, in {split}.traced.json. With `original` ids end in
    "-0_0" and tables have no section heading, as in the authors' release of MATE. Errors are those
    of `read_wtq`.
    """
    questions = _part(directory, _QUESTIONS)
    path, traced_path = questions / f"{split}.json", questions / f"{split}.traced.json"
    if traced or (not path.exists() and traced_path.exists()):
        path = traced_path
    read_table = remember(functools.partial(_read_table, _part(directory, _TABLES), original))
    with naming(f"(file '{path}')"):
        records = _checked(read_json(path), list, "a list of questions")
    for number, record in enumerate(records):
        name = record.get("question_id", number) if isinstance(record, dict) else number
        with naming(f"(file '{path}', question {name!r})"):
            question = _question_from(record, traced, original)
        linked = read_table(record["table_id"])
        with naming(f"(file '{path}', question '{question.question_id}')"):
            check_coordinates(linked.table, question)
        yield linked, question


class Reference(NamedTuple):
    """The gold answers by question id, and the ids of those in a cell and of those in a passage."""

    answers: dict[str, str]
    in_table: frozenset[str]
    in_passage: frozenset[str]


def read_hybridqa_reference(directory: str | Path, split: str) -> Reference:
    """Reads the gold answers and where they are from {split}_reference.json of the dev split."""
    path = _part(directory, _QUESTIONS) / f"{split}_reference.json"
    record = read_json(path)
    with naming(f"(file '{path}')"):
        answers = _get(record, "reference", dict)
        in_table, in_passage = (_get(record, key, list) for key in ("table", "passage"))
        for id_ in (*in_table, *in_passage):
            if not isinstance(id_, str) or id_ not in answers:
                raise ValueError(f"expected ids that have an answer, got {id_!r}")
        texts = {id_: _get(answers, id_, str) for id_ in answers}
    return Reference(texts, frozenset(in_table), frozenset(in_passage))


def _part(directory: str | Path, name: str) -> Path:
    """A repository of the release in a folder, or else the folder, which then has its files."""
    part = Path(directory, name)
    return part if part.is_dir() else Path(directory)


def _question_from(record: Any, traced: bool, original: bool) -> Question:
    text, id_ = (_get(record, key, str) for key in ("question", "question_id"))
    _get(record, "table_id", str)
    tags = tuple(_get(record, "question_postag", str, default="").split())
    answers = (_get(record, "answer-text", str),) if "answer-text" in record else ()
    coordinates = []
    for node in _get(record, "answer-node", list) if traced else ():
        match node:
            case [_, list(coordinate), _, _]:
                coordinates.append(tuple(coordinate))
            case _:
                raise ValueError(f"expected a text, coordinates, link and kind, got {node!r}")
    return Question(
        text,
        f"{id_}-0_0" if original else id_,
        answers,
        answer_coordinates=tuple(dict.fromkeys(coordinates)),
        part_of_speech_tags=tags,
    )


def _read_table(directory: Path, original: bool, table_id: str) -> LinkedTable:
    path, passages_path = (directory / of / f"{table_id}.json" for of in _FOLDERS)
    record, texts = read_json(path), read_json(passages_path)
    with naming(f"(file '{passages_path}')"):
        links = _checked(texts, dict, "an object of passages")
        texts = {link: _get(texts, link, str) for link in links}
    with naming(f"(file '{path}')"):
        header = _cells(_get(record, "header", list), "header")
        body = [_cells(row, f"row {i}") for i, row in enumerate(_get(record, "data", list))]
        table = Table(
            tuple(text for text, _ in header),
            tuple(tuple(text for text, _ in row) for row in body),
            table_id,
            document_title=_get(record, "title", str, default=""),
            context_heading="" if original else _get(record, "section_title", str, default=""),
        )
    return LinkedTable.from_links(table, [[links for _, links in row] for row in body], texts)


def _cells(row: Any, name: str) -> list[tuple[str, list[str]]]:
    """The texts of a row's cells and their links."""
    cells = []
    with naming(f"({name})"):
        for cell in _checked(row, list, "a list of cells"):
            match cell:
                case [str(text), list(links)] if all(isinstance(link, str) for link in links):
                    cells.append((text, list(map(unquote, links))))
                case _:
                    raise ValueError(
                        f"expected a cell's text and a list of its links, got {cell!r}"
                    )
    return cells


def _get(record: Any, key: str, kind: type, default: Any = None) -> Any:
    """The value of a key, checked to be of a kind."""
    value = _checked(record, dict, "an object").get(key)
    if value is None and default is not None:
        return default
    return _checked(value, kind, f"'{key}' as {kind.__name__}", "" if key in record else "none")


def _checked(value: Any, kind: type, expected: str, got: str = "") -> Any:
    got = got or type(value).__name__
    require(isinstance(value, kind), f"expected {expected}, got {got}")
    return value


class _Index(NamedTuple):
    """The data that all questions about a table share."""

    sentences: tuple[str, ...]
    by_passage: Mapping[Passage, tuple[str, ...]]
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

    The num_sentences best sentences of the table's passages, by TF-IDF over words and pairs of
    words, follow the texts of the cells that link to them (Eisenschlos et al., 2021, section 5):
    "Oslo" becomes "Oslo ( Oslo is the capital of Norway . )". Each passage of a cell has its own
    parentheses, with `with_titles` after its title and a colon.

    With `original` sentences that no cell can show, such as those of the header's passages and
    repeated ones, take places, and a title begins after the last slash of the address.
    """
    require(num_sentences >= 0, f"expected num_sentences to be at least 0, got {num_sentences}")
    sentences, scores = score_sentences(linked, question, original)
    best = np.argsort(-scores, kind="stable")[:num_sentences]
    chosen = {sentences[i] for i in best if scores[i] > 0}
    return expand_with(linked, chosen, with_titles, original)


def score_sentences(
    linked: LinkedTable, question: Question, original: bool = False
) -> tuple[tuple[str, ...], np.ndarray]:
    """The sentences of a table's passages, row by row, and their cosines with the question.

    These are float64 [N], rounded so that equal scores tie. In a tie the first sentence is taken;
    the original takes them in the order of a hash map.
    """
    index = _index(linked, original)
    query = np.zeros(len(index.idf))  # [V]
    for term in _terms(question.text):
        if (id_ := index.term_ids.get(term)) is not None:
            query[id_] += index.idf[id_]
    if not query.any():
        return index.sentences, np.zeros(len(index.sentences))
    query /= np.linalg.norm(query)
    products = index.weights * query[index.columns]
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
    by_passage = _index(linked, original).by_passage
    expansions = {}
    for passage in linked.distinct_passages():
        text = " ".join(filter(sentences.__contains__, by_passage[passage]))
        if text and with_titles:
            title = passage.title.rpartition("/")[2] if original else passage.title
            text = f"{title} : {text}"
        expansions[passage] = f"( {text} )" if text else ""
    rows = [
        tuple(" ".join(filter(None, map(expansions.__getitem__, cell))) for cell in row)
        for row in linked.passages
    ]
    return dataclasses.replace(linked.table, expansions=tuple(rows))


@functools.lru_cache(_TABLES_REMEMBERED)
def _index(linked: LinkedTable, original: bool) -> _Index:
    passages = dict.fromkeys(linked.distinct_passages())
    if original:
        passages |= dict.fromkeys(linked.other_passages)
    by_passage = {passage: split_sentences(passage.text, original) for passage in passages}
    sentences = tuple(itertools.chain.from_iterable(by_passage.values()))
    if not original:
        sentences = tuple(dict.fromkeys(sentences))
    counts = [collections.Counter(_terms(sentence)) for sentence in sentences]
    with_term = collections.Counter(itertools.chain.from_iterable(counts))
    # All terms of a single sentence are in all sentences.
    most = _SHARE_OF_COMMON_TERMS * len(sentences) if len(sentences) > 1 else 1
    kept = [term for term, number in with_term.items() if number <= most]
    term_ids = {term: id_ for id_, term in enumerate(kept)}
    numbers = np.array([with_term[term] for term in kept], np.float64)  # [V]
    idf = np.log((1.0 + len(sentences)) / (1.0 + numbers)) + 1.0
    entries = [
        (row, term_ids[term], count)
        for row, terms in enumerate(counts)
        for term, count in terms.items()
        if term in term_ids
    ]
    rows, columns, times = np.array(entries, int).reshape(-1, 3).T
    weights = times * idf[columns]
    lengths = np.sqrt(np.bincount(rows, np.square(weights), len(sentences)))  # [N]
    return _Index(sentences, by_passage, term_ids, idf, rows, columns, weights / lengths[rows])


def _terms(text: str) -> list[str]:
    """The words of two characters and more, and the pairs of neighbours among them."""
    words = _TERM.findall(text.lower())
    return words + [f"{word} {following}" for word, following in itertools.pairwise(words)]


def split_sentences(text: str, original: bool = False) -> tuple[str, ...]:
    """Splits a text into sentences, without white space around them.

    The splitter is Punkt (Kiss and Strunk, 2006) without training, but, unless `original`, with
    abbreviations that end no sentence, such as "St.". Its time is quadratic, so that texts of more
    than 10,000 characters are cut at blanks first, and a long stretch of signs stays whole.
    """
    sentences: list[str] = []
    while text:
        end = len(text)
        if end > _MAX_CHARACTERS:
            blank = text.rfind(" ", 1, _MAX_CHARACTERS)
            end = _MAX_CHARACTERS if blank < 0 else blank
        part, text = text[:end], text[end:]
        is_whole = len(part) > _LONGEST_OF_SIGNS and not _WORD.search(part)
        sentences += [part] if is_whole else _punkt(original).tokenize(part)
    return tuple(filter(None, map(str.strip, sentences)))


@functools.cache
def _punkt(original: bool) -> Any:
    punkt = import_extra("nltk.tokenize.punkt", "passages", "to split passages into sentences")
    parameters = punkt.PunktParameters()
    if not original:
        parameters.abbrev_types = set(_ABBREVIATIONS)
    return punkt.PunktSentenceTokenizer(parameters)
