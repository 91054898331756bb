"""Pairs of a true and a false statement about tables: synthetic and counterfactual ones.

A synthetic statement is true of one excerpt of a table and false of another. As many statements are
true of one as of the other, so neither the statement nor the excerpt alone tells the label
(Eisenschlos et al., 2020, section 3.2, make both independently, with another constant).

A counterfactual statement is a real sentence about a table with an entity, the text of a cell, in
place of another of its column. The sentence as it was is true, and the other one is taken to be
false (section 3.1). That is not so of a sentence with a negation, which is left out.
"""

import random
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import NamedTuple

from experiments.synthesis.statement_drawing import draw_true, verbalize
from experiments.synthesis.statement_execution import OPERATIONS, is_refuted
from experiments.synthesis.typed_table import (
    FEWEST,
    Made,
    NothingMadeError,
    TypedTable,
    cell_lengths,
    draw_two,
    require_sizes,
    table_tokens,
)
from mate_tf.features.english import normalize_for_match, says
from mate_tf.features.wordpiece import Wordpiece
from mate_tf.tables.table import Question, Table

REFUTED, ENTAILED = 0, 1  # the classes, as TabFact's
_ATTEMPTS = 4
_SHORTEST = 3  # characters of an entity that is no number
_ONE = ("1", "one")  # says little: "one of them"
_NUMBER = r"(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]+)(?:\.[0-9]+)?"
# Nor a part of another number: 12 is not in 12.5, nor in 1,012.
_WHOLE = r"(?<![\w.,])(?:%s)(?!\w|[.,]\d)"


@dataclass(frozen=True)
class StatementsConfig:
    """How many synthetic statements are made of a table, and how long they are.

    Attributes:
        excerpts_per_table: how many times two excerpts are drawn.
        operations_per_excerpt: operations for each two excerpts. Each makes two statements, one
            that is true of the first excerpt alone and one that is true of the second alone.
        max_seq_length: tokens of a statement with its excerpt, special tokens included.
        max_statement_tokens, max_rows, max_columns: of the statement alone, and of an excerpt.
        seed: all draws follow from it and from the table's identifier.

    Raises:
        ValueError: if nothing can be made, or no excerpt of two rows and columns fits.
    """

    excerpts_per_table: int = 8
    operations_per_excerpt: int = 3
    max_seq_length: int = 128
    max_statement_tokens: int = 40
    max_rows: int = 8
    max_columns: int = 4
    seed: int = 0

    def __post_init__(self) -> None:
        sizes = ("excerpts_per_table", "operations_per_excerpt", "max_statement_tokens")
        require_sizes(self, 1, *sizes)
        require_sizes(self, FEWEST, "max_rows", "max_columns")
        _ = self.max_table_tokens

    @property
    def max_table_tokens(self) -> int:
        return table_tokens(self.max_seq_length, self.max_statement_tokens)


def synthetic_pairs(table: Table, wordpiece: Wordpiece, config: StatementsConfig) -> Iterator[Made]:
    """Yields pairs of statements about excerpts of a table; NothingMadeError if there is none."""
    where = f"(table '{table.table_id}')"
    typed = TypedTable(table)
    columns, numbers = typed.select(), typed.select("number")
    if table.num_rows < FEWEST:
        raise NothingMadeError("one row", f"expected 2 rows, got 1 {where}")
    if not numbers or len(columns) < FEWEST:
        raise NothingMadeError(
            "no column of numbers beside another",
            "expected a column of numbers and another one, both with a name of their own and "
            f"different values {where}",
        )
    rng = random.Random(f"{config.seed}/{table.table_id}")
    lengths, room = cell_lengths(wordpiece, table), config.max_table_tokens
    limits = (room, config.max_rows, config.max_columns)
    made = Counter[str]()
    num_drawn = 0
    for number in range(config.excerpts_per_table):
        name = f"{table.table_id}#{number}"
        excerpts = draw_two(table, lengths, columns, numbers, *limits, name, rng)
        if excerpts is not None:
            num_drawn += 1
            yield from _pairs_of(*excerpts, wordpiece, config, made, rng)
    if not num_drawn:
        raise NothingMadeError(
            "no excerpt fits",
            f"expected two rows of two columns in {room} tokens {where}; raise max_seq_length",
        )
    if not made:
        raise NothingMadeError("no statement found", f"expected a statement {where}")


def _pairs_of(
    way: str,
    first: Table,
    second: Table,
    wordpiece: Wordpiece,
    config: StatementsConfig,
    made: Counter[str],
    rng: random.Random,
) -> Iterator[Made]:
    """Makes pairs of the operations that were made least often, and counts them in `made`."""
    typed = (TypedTable(first), TypedTable(second))
    kinds = [[column.kind for column in table.columns] for table in typed]
    if kinds[0] != kinds[1] or not all(table.select("number") for table in typed):
        return
    before = made.total()
    for operation in sorted(OPERATIONS, key=lambda operation: (made[operation], rng.random())):
        if made.total() - before == config.operations_per_excerpt:
            break
        sentences = [_telling(operation, *sides, rng) for sides in (typed, typed[::-1])]
        texts = [text for text in sentences if text is not None]
        if len(set(texts)) < len(sentences):
            continue
        if max(wordpiece.ids_and_lengths(texts)[1]) > config.max_statement_tokens:
            continue
        made[operation] += 1
        for text, here, there in zip(texts, (first, second), (second, first), strict=True):
            yield _pair(operation, (here, text), (there, text), here.table_id, way)


def _telling(operation: str, here: TypedTable, there: TypedTable, rng: random.Random) -> str | None:
    """A statement in words that is true here and false there; None if none was found."""
    for _ in range(_ATTEMPTS):
        statement = draw_true(operation, here, rng)
        if statement is None:
            return None
        if is_refuted(statement, there):
            return verbalize(statement, here, rng)
    return None


def _pair(
    operation: str, true: tuple[Table, str], false: tuple[Table, str], name: str, way: str = ""
) -> Made:
    """A true and a false statement, whose ids end in operation, perhaps way, and label."""
    kind = f"{operation}/{way}" if way else operation
    pair = [
        (table, Question(text, f"{name}:{kind}:{label}", class_index=label))
        for (table, text), label in ((true, ENTAILED), (false, REFUTED))
    ]
    return Made(operation, tuple(pair))


class _Entity(NamedTuple):
    """A cell's name as the table writes it, and where it is in the table."""

    text: str
    columns: set[int]
    rows: set[int]


class _Mention(NamedTuple):
    """Where a sentence mentions an entity, by its name."""

    begin: int
    end: int
    name: str


def counterfactual_pairs(
    table: Table, sentences: Iterable[str], seed: int
) -> Iterator[Made | NothingMadeError]:
    """Yields a pair for each sentence about a table, or why there is none.

    The other entity is not from a row that has everything else the sentence mentions of the first
    one's row: the sentence might be true of that row too. All mentions of the entity are swapped.
    Numbers are the same by their value, 1,000 and 1000.0. NothingMadeError without a sentence.
    """
    sentences = list(sentences)
    if not sentences:
        raise NothingMadeError(
            "no sentence", f"expected sentences about the table (table '{table.table_id}')"
        )
    entities = _entities_of(table)
    made: set[str] = set()
    for number, sentence in enumerate(sentences):
        rng = random.Random(f"{seed}/{table.table_id}/{sentence}")
        swapped = _swapped(sentence, entities, rng)
        if isinstance(swapped, NothingMadeError):
            yield swapped
        elif swapped in made or sentence in made:
            yield NothingMadeError("made before", f"expected another sentence, got {sentence!r}")
        else:
            made |= {swapped, sentence}
            name = f"{table.table_id}#{number}"
            yield _pair("counterfactual", (table, sentence), (table, swapped), name)


def _swapped(
    sentence: str, entities: dict[str, _Entity], rng: random.Random
) -> str | NothingMadeError:
    mentions = _mentions(sentence, entities)
    mentioned = {mention.name for mention in mentions}
    if not mentioned:
        return NothingMadeError("no entity of the table", f"expected an entity in {sentence!r}")
    others = list(sentence)
    for mention in mentions:  # what a name says is no negation
        others[mention.begin : mention.end] = " " * (mention.end - mention.begin)
    if says("".join(others).lower(), "not"):
        return NothingMadeError("a negation", f"expected no negation in {sentence!r}")
    order = sorted(mentioned)
    rng.shuffle(order)
    for name in order:
        others = _others(name, mentioned, sentence, entities)
        if others:
            text = entities[rng.choice(others)].text
            for mention in reversed(mentions):
                if mention.name == name:
                    sentence = sentence[: mention.begin] + text + sentence[mention.end :]
            return sentence
    return NothingMadeError("no other entity", f"expected another entity for one in {sentence!r}")


def _others(
    name: str, mentioned: set[str], sentence: str, entities: dict[str, _Entity]
) -> list[str]:
    """The entities that may take an entity's place, in a fixed order."""
    # What else is said of each of its rows. If that is true of another row, its entity may be too.
    row_mentions = [
        {other for other in mentioned - {name} if row in entities[other].rows}
        for row in entities[name].rows
    ]
    plain = normalize_for_match(sentence)
    return sorted(
        other
        for other, entity in entities.items()
        if entity.columns == entities[name].columns
        and other not in mentioned
        and normalize_for_match(entity.text) not in plain
        and not any(
            names and all(row in entities[also].rows for also in names)
            for row in entity.rows
            for names in row_mentions
        )
    )


def _entities_of(table: Table) -> dict[str, _Entity]:
    """The entities that are in one column alone, by their names."""
    entities: dict[str, _Entity] = {}
    for row, cells in enumerate(table.rows):
        for column, cell in enumerate(cells):
            name = _name_of(cell)
            is_name = any(map(str.isalnum, name)) and name not in _ONE
            if is_name and (len(name) >= _SHORTEST or name.isdecimal()):
                entity = entities.setdefault(name, _Entity(" ".join(cell.split()), set(), set()))
                entity.columns.add(column)
                entity.rows.add(row)
    return {name: entity for name, entity in entities.items() if len(entity.columns) == 1}


def _name_of(text: str) -> str:
    """The name of a cell: a number in one writing for each value, or the normalized text."""
    plain = normalize_for_match(text)
    if not re.fullmatch(_NUMBER, plain):
        return plain
    return f"{Decimal(plain.replace(',', '')).normalize():f}"


def _mentions(sentence: str, entities: Collection[str]) -> list[_Mention]:
    """Where entities are mentioned, as whole words; of nested mentions the longest."""
    spans = []
    for name in entities:
        words = _WHOLE % r"\s+".join(map(re.escape, name.split()))
        spans += [_Mention(*m.span(), name) for m in re.finditer(words, sentence, re.IGNORECASE)]
    numbers = re.finditer(_WHOLE % _NUMBER, sentence)
    spans += [_Mention(*match.span(), _name_of(match[0])) for match in numbers]
    spans = [mention for mention in spans if mention.name in entities]
    spans.sort(key=lambda mention: (mention.begin, -mention.end))
    mentions: list[_Mention] = []
    for mention in spans:
        if not mentions or mention.begin >= mentions[-1].end:
            mentions.append(mention)
    return mentions
