"""Tables with passages and questions about both in two hops, in the layout of HybridQA's release.

Several rows of a table share each value of two columns, and of two facts that the passages tell. A
question says whom it asks about by two such values. Other rows have each of them, and none of those
rows has the same answer. linked_themes.json says what the tables are about, and in which words. The
last of several wordings is for the test split alone, as are some of the names and things.
"""

import dataclasses
import functools
import itertools
import json
import pathlib
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from mate_tf.dataclass_json import from_dict
from mate_tf.tables.linked_table import LinkedTable, Passage
from mate_tf.tables.table import Question, Table
from mate_tf.tables.text_files import complete_text_file

# Of twenty tables, and of ten names or things of a kind.
SHARES_OF_TABLES = {"train": 16, "dev": 1, "test": 3}
SHARES_OF_WORDS = {"train": 5, "dev": 2, "test": 3}
_ROWS = (6, 8)
_NUM_VALUES = 3  # different values that rows share, each in at least two rows
_NUM_SHARED_FACTS = 2


@dataclasses.dataclass(frozen=True)
class Relation:
    """What is true of an entity: a column of the table, or a fact that its passage tells.

    Attributes:
        name: the column's header, or the fact's name.
        words, numbers: its values, words of a kind or the numbers from and below two.
        asks: how a question asks for it; {who} is whom the question is about.
        conditions: how a question says that it is {value}.
        sentences: how a passage tells that it is {value} of {name}; () for a column.
    """

    name: str
    words: str = ""
    numbers: tuple[int, ...] = ()
    asks: tuple[str, ...] = ()
    conditions: tuple[str, ...] = ()
    sentences: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class Theme:
    """What a table is about: {noun} {pronoun} is one of its rows, "the driver who".

    Attributes:
        entity: the first column.
        shared: the next columns, whose values several rows share.
        own: the other columns, whose values all differ.
        facts: what the passages of the first column tell.
        shared_sentence: what the passage about a value of the second column tells.
    """

    noun: str
    pronoun: str
    entity: Relation
    shared: tuple[Relation, ...]
    own: tuple[Relation, ...]
    facts: tuple[Relation, ...]
    shared_sentence: str


@functools.cache
def _data() -> dict[str, Any]:
    path = pathlib.Path(__file__).with_name("linked_themes.json")
    return json.loads(path.read_text(encoding="utf-8"))


@functools.cache
def themes() -> tuple[Theme, ...]:
    return tuple(from_dict(Theme, theme, "theme") for theme in _data()["themes"])


def wordings(of: Sequence[str], split: str) -> Sequence[str]:
    """The wordings that a split has."""
    return of[-1:] if split == "test" else of[:-1]


def words_of(split: str) -> Mapping[str, list[str]]:
    """The names and things of "train", "dev" or "test", by kind: "place", "person", "trade"..."""
    lists = {kind: words.split() for kind, words in _data()["words"].items()}
    first_names, begins = lists.pop("first name"), lists.pop("place begin")
    for kind in ("place", "family"):
        lists[kind] = [a + b for a in begins for b in lists[kind]]
    lists["emblem"] = [f"{a} {b}" for a in lists.pop("adjective") for b in lists["emblem"]]
    ends = dict(zip(SHARES_OF_WORDS, itertools.accumulate(SHARES_OF_WORDS.values()), strict=True))
    words = {}
    for kind, everything in lists.items():
        shuffled = random.Random(kind).sample(everything, len(everything))
        begin, end = ends[split] - SHARES_OF_WORDS[split], ends[split]
        words[kind] = shuffled[begin * len(shuffled) // 10 : end * len(shuffled) // 10]
    families = words.pop("family")
    words["person"] = [f"{first} {family}" for first in first_names for family in families]
    return words


@dataclasses.dataclass(frozen=True)
class Drawn:
    """A table with its passages, and what they say: a value of each row by a relation's name."""

    linked: LinkedTable
    theme: Theme
    values: tuple[Mapping[str, str], ...]

    def like(self, row: int, relation: Relation) -> set[int]:
        """The rows with the same value of a relation as a row, itself included."""
        name = relation.name
        return {r for r, values in enumerate(self.values) if values[name] == self.values[row][name]}


class Asked(NamedTuple):
    """A question about a table, and whether a cell's own text answers it, not its passage."""

    question: Question
    table_id: str
    in_table: bool


def draw_table(rng: random.Random, words: Mapping[str, Sequence[str]], table_id: str) -> Drawn:
    """Draws a table of 6 to 8 rows, whose first two columns link to passages."""
    theme = rng.choice(themes())
    num_rows = rng.randint(*_ROWS)
    facts = rng.sample(theme.facts, len(theme.facts))
    drawn = {}
    for relation in (*theme.shared, *facts[:_NUM_SHARED_FACTS]):
        different = rng.sample(_possible(relation, words), _NUM_VALUES)
        shared = different * 2 + rng.choices(different, k=num_rows - 2 * _NUM_VALUES)
        drawn[relation.name] = rng.sample(shared, num_rows)
    for relation in (theme.entity, *theme.own, *facts[_NUM_SHARED_FACTS:]):
        drawn[relation.name] = rng.sample(_possible(relation, words), num_rows)
    values = [{name: of_rows[row] for name, of_rows in drawn.items()} for row in range(num_rows)]
    columns = [relation.name for relation in (theme.entity, *theme.shared, *theme.own)]
    rows = [tuple(row[name] for name in columns) for row in values]
    title = f"List of {theme.noun}s"
    table = Table(tuple(columns), tuple(rows), table_id, document_title=title)
    group = theme.shared[0].name
    of_groups = {}
    for value in sorted(set(drawn[group])):
        others = {kind: rng.choice(words[kind]) for kind in ("place", "person")}
        of_groups[value] = _passage(value, theme.shared_sentence.format(value=value, **others))
    passages = []
    for row in values:
        told = _passage(row[theme.entity.name], _told(rng, theme, row))
        passages.append(((told,), (of_groups[row[group]],), *((),) * (len(columns) - 2)))
    return Drawn(LinkedTable(table, tuple(passages)), theme, tuple(values))


def _possible(relation: Relation, words: Mapping[str, Sequence[str]]) -> Sequence[str]:
    return words[relation.words] if relation.words else [*map(str, range(*relation.numbers))]


def _told(rng: random.Random, theme: Theme, values: Mapping[str, str]) -> str:
    """What a passage tells about a row's entity, its facts in any order."""
    facts = rng.sample(theme.facts, len(theme.facts))
    name = values[theme.entity.name]
    return " ".join(
        rng.choice(fact.sentences).format(name=name, value=values[fact.name]) for fact in facts
    )


def _passage(name: str, text: str) -> Passage:
    return Passage(f"/wiki/{name.replace(' ', '_')}", text)


def draw_questions(rng: random.Random, drawn: Drawn, count: int, split: str) -> list[Asked]:
    """Draws up to `count` questions about a table, half with the answer in a cell."""
    theme = drawn.theme
    possible: dict[bool, list[_Possible]] = {True: [], False: []}
    for row in range(len(drawn.values)):
        for first, second in itertools.combinations((*theme.shared, *theme.facts), 2):
            with_first, with_second = drawn.like(row, first), drawn.like(row, second)
            is_one = with_first & with_second == {row}
            if first in theme.facts or not is_one or 1 in (len(with_first), len(with_second)):
                continue
            if second in theme.facts:
                asks = (theme.entity, *theme.own)
                possible[True] += [_Possible(True, row, first, second, ask) for ask in asks]
            possible[False] += [
                _Possible(False, row, first, second, ask)
                for ask in theme.facts
                if ask != second and drawn.like(row, ask) & (with_first | with_second) == {row}
            ]
    chosen = []
    for in_table, number in ((True, (count + 1) // 2), (False, count // 2)):
        chosen += rng.sample(possible[in_table], min(number, len(possible[in_table])))
    rng.shuffle(chosen)
    return [_ask(rng, drawn, split, number, one) for number, one in enumerate(chosen)]


class _Possible(NamedTuple):
    """What a question about a row may ask for, and the two values that say which row."""

    in_table: bool
    row: int
    first: Relation
    second: Relation
    ask: Relation


def _ask(rng: random.Random, drawn: Drawn, split: str, number: int, one: _Possible) -> Asked:
    theme, values, table = drawn.theme, drawn.values[one.row], drawn.linked.table
    said = [(of.name, rng.choice(wordings(of.conditions, split))) for of in (one.first, one.second)]
    rng.shuffle(said)
    who = rng.choice(wordings(_data()["who"], split))
    asks = rng.choice(wordings(one.ask.asks, split))

    first, second = (wording.format(value=values[name]) for name, wording in said)
    who = who.format(first=first, second=second, noun=theme.noun, pronoun=theme.pronoun)
    text = asks.format(who=who)
    column = table.header.index(one.ask.name) if one.in_table else 0
    question = Question(
        f"{text[0].upper()}{text[1:]} ?",
        f"{table.table_id}_{number}",
        (values[one.ask.name],),
        answer_coordinates=((one.row, column),),
    )
    return Asked(question, table.table_id, one.in_table)


def write_corpus(
    directory: pathlib.Path,
    num_tables: int,
    questions_per_table: int,
    seed: int,
    progress: Callable[[Iterable[int], str], Iterable[int]] = lambda numbers, _: numbers,
) -> Iterator[str]:
    """Writes a corpus, split by split, and yields what is in each."""
    for split, share in SHARES_OF_TABLES.items():
        rng, words = random.Random(f"{split} {seed}"), words_of(split)
        count = num_tables * share // sum(SHARES_OF_TABLES.values())
        asked = []
        for number in progress(range(count), split):
            drawn = draw_table(rng, words, f"{split}_{number}")
            write_table(directory, drawn.linked)
            asked += draw_questions(rng, drawn, questions_per_table, split)
        write_questions(directory, split, asked)
        in_table = sum(one.in_table for one in asked)
        yield (
            f"{split}: {count} tables, {len(asked)} questions, {in_table} with the answer in a "
            f"cell, {len(asked) - in_table} in a passage"
        )


def write_table(directory: pathlib.Path, linked: LinkedTable) -> None:
    """Writes a table and its passages, under WikiTables-WithLinks."""
    table = linked.table
    rows = [
        [[text, [p.link for p in passages]] for text, passages in zip(*of_row, strict=True)]
        for of_row in zip(table.rows, linked.passages, strict=True)
    ]
    empty = dict.fromkeys(("url", "section_title", "section_text"), "")
    header = [[name, []] for name in table.header]
    record = {"uid": table.table_id, "title": table.document_title, "header": header, "data": rows}
    folder = directory / "WikiTables-WithLinks"
    _write(folder / "tables_tok" / f"{table.table_id}.json", record | empty)
    _write(folder / "request_tok" / f"{table.table_id}.json", dict(linked.distinct_passages()))


def write_questions(directory: pathlib.Path, split: str, asked: Iterable[Asked]) -> None:
    """Writes a split's questions, and the reference for scoring them."""
    records, answers = [], {}
    places: dict[str, list[str]] = {"table": [], "passage": []}
    for question, table_id, in_table in asked:
        id_, (answer,) = question.question_id, question.answers
        answers[id_] = answer
        places["table" if in_table else "passage"].append(id_)
        record = {"question_id": id_, "question": question.text, "table_id": table_id}
        records.append(record | {"answer-text": answer})
    folder = directory / "released_data"
    _write(folder / f"{split}.json", records)
    _write(folder / f"{split}_reference.json", {"reference": answers} | places)


def _write(path: pathlib.Path, content: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with complete_text_file(path) as file:
        file.write(json.dumps(content, indent=1, ensure_ascii=False) + "\n")
