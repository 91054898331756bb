"""Tables with passages, and questions about them in two hops, drawn at random.

In a table each value of a shared column is of several rows, and so is each of two facts of the
passages. Whom a question asks about follows from two such values, each of which other rows have
too; and of those none has the same answer.
"""

import dataclasses
import itertools
import random
from collections.abc import Mapping, Sequence
from typing import Any

from experiments.demo_data.linked_corpus.themes import THEMES, WHO, Relation, Theme
from mate_tf.tables.linked_table import LinkedTable, Passage
from mate_tf.tables.table import Question, Table

_ROWS = (6, 8)
_NUM_VALUES = 3  # different values in a column that rows share
_NUM_SHARED_FACTS = 2


@dataclasses.dataclass(frozen=True)
class Drawn:
    """A table, what it and its passages say, and in which words.

    Attributes:
        linked: the table and its passages.
        theme: what it is about.
        values: of each row, by relation.
        words: the split's names and things, by kind.
        split: "train", "dev" or "test".
    """

    linked: LinkedTable
    theme: Theme
    values: tuple[Mapping[Relation, str], ...]
    words: Mapping[str, Sequence[str]]
    split: str

    def holds(self, relation: Relation, value: str) -> list[int]:
        """The rows that a relation has a value for."""
        return [row for row, values in enumerate(self.values) if values[relation] == value]


@dataclasses.dataclass(frozen=True)
class Asked:
    """A question of a corpus.

    Attributes:
        question: with its answer and the cell that holds it.
        in_table: whether the answer is a cell's own text, not of the passage that it links to.
        template: the question without its values.
    """

    question: Question
    in_table: bool
    template: str


def draw_table(
    random_: random.Random, words: Mapping[str, Sequence[str]], split: str, table_id: str
) -> Drawn:
    """Draws a table of 6 to 8 rows, whose first two columns link to passages.

    Args:
        random_: what is drawn from.
        words: names and things (words.words_of).
        split: "train", "dev" or "test".
        table_id: its name.
    """
    theme = random_.choice(THEMES)
    num_rows = random_.randint(*_ROWS)
    facts = random_.sample(theme.facts, len(theme.facts))
    shared = (*theme.shared, *facts[:_NUM_SHARED_FACTS])
    own = (theme.entity, *theme.own, *facts[_NUM_SHARED_FACTS:])
    columns = {r: _shared(random_, r, words, num_rows) for r in shared}
    columns |= {r: _of_its_own(random_, r, words, num_rows) for r in own}
    values = tuple({r: columns[r][row] for r in columns} for row in range(num_rows))
    relations = (theme.entity, *theme.shared, *theme.own)
    table = Table(
        tuple(relation.name for relation in relations),
        tuple(tuple(row[relation] for relation in relations) for row in values),
        table_id,
        document_title=f"List of {theme.noun}s",
    )
    group = theme.shared[0]
    of_groups = {
        value: _passage(
            value,
            theme.shared_sentence.format(
                value=value,
                place=random_.choice(words["place"]),
                person=random_.choice(words["person"]),
            ),
        )
        for value in sorted({row[group] for row in values})
    }
    passages = tuple(
        (
            (_passage(row[theme.entity], _told(random_, theme, row)),),
            (of_groups[row[group]],),
            *((),) * (len(relations) - 2),
        )
        for row in values
    )
    return Drawn(LinkedTable(table, passages), theme, values, words, split)


def draw_questions(random_: random.Random, drawn: Drawn, count: int) -> list[Asked]:
    """Draws questions about a table, as many with the answer in a cell as in a passage.

    Args:
        random_: what is drawn from.
        drawn: the table.
        count: how many; there may be fewer, where the table has not so many.
    """
    theme = drawn.theme
    kinds: list[list[tuple[int, Relation, Relation, Relation]]] = [[], []]
    for row in range(len(drawn.values)):
        for first, second in itertools.combinations((*theme.shared, *theme.facts), 2):
            if first not in theme.shared or not _tells(drawn, row, first, second):
                continue
            if second in theme.facts:
                kinds[0] += [(row, first, second, ask) for ask in (theme.entity, *theme.own)]
            kinds[1] += [
                (row, first, second, ask)
                for ask in theme.facts
                if ask != second and _is_of_one(drawn, row, first, second, ask)
            ]
    chosen = []
    for in_table, number in ((True, (count + 1) // 2), (False, count // 2)):
        possible = kinds[0] if in_table else kinds[1]
        drawn_ones = random_.sample(possible, min(number, len(possible)))
        chosen += [(in_table, *described) for described in drawn_ones]
    random_.shuffle(chosen)
    table_id = drawn.linked.table.table_id
    return [
        _ask(random_, drawn, f"{table_id}_{number}", *described)
        for number, described in enumerate(chosen)
    ]


def _tells(drawn: Drawn, row: int, first: Relation, second: Relation) -> bool:
    """Whether two values of a row tell it from all others, and neither does alone."""
    firsts, seconds = (
        set(drawn.holds(relation, drawn.values[row][relation])) for relation in (first, second)
    )
    return firsts & seconds == {row} and len(firsts) > 1 and len(seconds) > 1


def _is_of_one(drawn: Drawn, row: int, first: Relation, second: Relation, ask: Relation) -> bool:
    """Whether no other row with one of two values has the same answer."""
    values = drawn.values[row]
    others = {*drawn.holds(first, values[first]), *drawn.holds(second, values[second])} - {row}
    return others.isdisjoint(drawn.holds(ask, values[ask]))


def _ask(
    random_: random.Random,
    drawn: Drawn,
    question_id: str,
    in_table: bool,
    row: int,
    first: Relation,
    second: Relation,
    ask: Relation,
) -> Asked:
    theme, values = drawn.theme, drawn.values[row]
    conditions = [(r, random_.choice(r.conditions.of(drawn.split))) for r in (first, second)]
    random_.shuffle(conditions)
    who = random_.choice(WHO.of(drawn.split))
    asks = random_.choice(ask.asks.of(drawn.split))

    def text(said: list[str]) -> str:
        described = who.format(
            noun=theme.noun, pronoun=theme.pronoun, first=said[0], second=said[1]
        )
        asked = asks.format(who=described)
        return f"{asked[0].upper()}{asked[1:]} ?"

    column = 0
    if in_table:
        column = drawn.linked.table.header.index(ask.name)
    question = Question(
        text([wording.format(value=values[relation]) for relation, wording in conditions]),
        question_id,
        (values[ask],),
        answer_coordinates=((row, column),),
    )
    return Asked(question, in_table, text([wording for _, wording in conditions]))


def _of_its_own(
    random_: random.Random, relation: Relation, words: Mapping[str, Sequence[str]], count: int
) -> list[str]:
    """A value for each row, all of them different."""
    return random_.sample(_possible(relation, words), count)


def _shared(
    random_: random.Random, relation: Relation, words: Mapping[str, Sequence[str]], count: int
) -> list[str]:
    """A value for each row, of a few of which each is had by at least two."""
    different = random_.sample(_possible(relation, words), _NUM_VALUES)
    values = different * 2
    values += random_.choices(different, k=count - len(values))
    random_.shuffle(values)
    return values


def _possible(relation: Relation, words: Mapping[str, Sequence[str]]) -> Sequence[Any]:
    if isinstance(relation.values, str):
        return words[relation.values]
    return [str(number) for number in range(*relation.values)]


def _told(random_: random.Random, theme: Theme, values: Mapping[Relation, str]) -> str:
    """What a passage tells of a row's entity, its facts in any order."""
    facts = random_.sample(theme.facts, len(theme.facts))
    name = values[theme.entity]
    return " ".join(
        random_.choice(fact.sentences).format(name=name, value=values[fact]) for fact in facts
    )


def _passage(name: str, text: str) -> Passage:
    return Passage(f"/wiki/{name.replace(' ', '_')}", text)
