"""Counterfactual statements: an entity of the table in a real sentence, swapped for another.

An entity is the text of a cell. One that the sentence mentions is replaced by another cell of its
column that the sentence does not mention; the sentence as it was is true, with another entity it is
taken to be false (Eisenschlos et al., 2020, section 3.1).
"""

import random
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from mate_tf.features.normalization import normalize_for_match
from mate_tf.synthesis.pairs import Pair, StatementsError, make_pair
from mate_tf.tables.table import Table

OPERATION = "counterfactual"
_SHORTEST = 3  # characters of an entity that is no number
_ONE = ("1", "one")  # says little: "one of them"


class _Mention(NamedTuple):
    begin: int
    end: int
    entity: str


class _Entities(NamedTuple):
    """What the cells of a table name, by their normalized texts.

    Attributes:
        columns: the one column that an entity is in; entities of several are left out.
        rows: the rows that it is in.
        texts: how the table writes it.
    """

    columns: Mapping[str, int]
    rows: Mapping[str, frozenset[int]]
    texts: Mapping[str, str]


def counterfactual_pairs(
    table: Table, sentences: Iterable[str], seed: int
) -> Iterator[Pair | StatementsError]:
    """Yields for each sentence about a table a pair, or why there is none.

    The other entity is of no row that has all else that the sentence mentions of the first one's
    row, for it might be true of that row too. All mentions of the entity are swapped, in the
    table's own writing. Which ones are drawn follows from the seed, the table's name and the
    sentence.

    Args:
        table: the table, whole.
        sentences: true sentences about it.
        seed: of what is drawn.

    Raises:
        StatementsError: if there is no sentence.
    """
    sentences = list(sentences)
    if not sentences:
        raise StatementsError(
            "no sentence", f"expected sentences about the table (table '{table.table_id}')"
        )
    entities = _entities_of(table)
    made: set[str] = set()
    for number, sentence in enumerate(sentences):
        rng = random.Random(f"{seed}/{table.table_id}/{sentence}")
        swapped = _swapped(sentence, entities, rng)
        if isinstance(swapped, StatementsError):
            yield swapped
        elif swapped in made or sentence in made:
            yield StatementsError("made before", f"expected another sentence, got {sentence!r}")
        else:
            made |= {swapped, sentence}
            name = f"{table.table_id}#{number}"
            yield make_pair(OPERATION, (table, sentence), (table, swapped), name)


def _swapped(sentence: str, entities: _Entities, rng: random.Random) -> str | StatementsError:
    mentions = _mentions(sentence, entities)
    mentioned = {mention.entity for mention in mentions}
    if not mentioned:
        return StatementsError("no entity of the table", f"expected an entity in {sentence!r}")
    order = sorted(mentioned)
    rng.shuffle(order)
    for entity in order:
        others = _others(entity, mentioned, sentence, entities)
        if others:
            text = entities.texts[rng.choice(others)]
            return _replaced(sentence, [m for m in mentions if m.entity == entity], text)
    return StatementsError("no other entity", f"expected another entity for one in {sentence!r}")


def _others(entity: str, mentioned: set[str], sentence: str, entities: _Entities) -> list[str]:
    """The entities that may take an entity's place, in a fixed order."""
    rows = entities.rows[entity]
    # What else is said of each of its rows; where that is said of another row, so is the entity's.
    said = [
        {other for other in mentioned - {entity} if row in entities.rows[other]} for row in rows
    ]
    plain = normalize_for_match(sentence)
    return sorted(
        other
        for other, column in entities.columns.items()
        if column == entities.columns[entity]
        and other not in mentioned
        and other not in plain
        and not any(
            of_row and all(row in entities.rows[also] for also in of_row)
            for row in entities.rows[other]
            for of_row in said
        )
    )


def _entities_of(table: Table) -> _Entities:
    columns: defaultdict[str, set[int]] = defaultdict(set)
    rows: defaultdict[str, set[int]] = defaultdict(set)
    texts: dict[str, str] = {}
    for row, cells in enumerate(table.rows):
        for column, cell in enumerate(cells):
            entity = normalize_for_match(cell)
            if _is_entity(entity):
                columns[entity].add(column)
                rows[entity].add(row)
                texts.setdefault(entity, " ".join(cell.split()))
    return _Entities(
        {entity: min(of_entity) for entity, of_entity in columns.items() if len(of_entity) == 1},
        {entity: frozenset(of_entity) for entity, of_entity in rows.items()},
        texts,
    )


def _is_entity(text: str) -> bool:
    if not any(map(str.isalnum, text)) or text in _ONE:
        return False
    return len(text) >= _SHORTEST or text.isdecimal()


def _mentions(sentence: str, entities: _Entities) -> list[_Mention]:
    """Where entities are mentioned, as whole words; of nested mentions the longest."""
    found = [
        _Mention(*match.span(), entity)
        for entity in entities.columns
        for match in _pattern(entity).finditer(sentence)
    ]
    found.sort(key=lambda mention: (mention.begin, -mention.end))
    mentions: list[_Mention] = []
    for mention in found:
        if not mentions or mention.begin >= mentions[-1].end:
            mentions.append(mention)
    return mentions


def _pattern(entity: str) -> re.Pattern[str]:
    words = r"\s+".join(map(re.escape, entity.split()))
    # Nor a part of another number: 12 is not in 12.5, nor in 1,012.
    return re.compile(rf"(?<![\w.,])(?:{words})(?!\w|[.,]\d)", re.IGNORECASE)


def _replaced(sentence: str, mentions: list[_Mention], text: str) -> str:
    pieces, end = [], 0
    for mention in mentions:
        pieces += [sentence[end : mention.begin], text]
        end = mention.end
    return "".join(pieces) + sentence[end:]
