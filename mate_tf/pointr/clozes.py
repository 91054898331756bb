"""Questions for a reader from tables with passages alone: sentences without a name or a number.

"Who is the athlete with Time 12.93 , a Taiwanese track and field athlete ?" There are few questions
about passages, but many passages, and a reader that has filled their gaps needs fewer questions
(Glass et al., 2020, "Span selection pre-training for question answering").
"""

import random
import re
from collections.abc import Iterable, Iterator

from mate_tf.datasets.hybridqa import split_sentences
from mate_tf.pointr.answering import cell_table, cell_text
from mate_tf.tables.linked_table import LinkedTable
from mate_tf.tables.table import Question, Table

PER_TABLE = 24  # questions
_OF_CELLS = 0.25  # the share of questions whose answer is the cell's own text
_WHOLE = 0.3  # the share of sentences that keep all their words
_FARTHEST = 12  # words of a sentence before and after its gap, where it does not
_DATE = (
    r"(?:\d{1,2} [A-Z][a-z]+ \d{4}|[A-Z][a-z]+ \d{1,2} , \d{4}|[A-Z][a-z]+ \d{4}|1\d{3}|20\d{2})"
)
_NUMBER = r"\d[\d,.:]*(?: (?:million|billion|percent|%|[a-z]{1,3}\b|[a-z]+s\b))?"
# Not a first word alone, which may be any.
_NAME = r"(?:[A-Z][\w.'-]*\w(?: (?:(?:of|the|de|and|in) )*[A-Z][\w.'-]*){1,5}|(?<=\w )[A-Z][\w'-]+)"
_WORD = r"(?:(?<=\ba )|(?<=\ban )|(?<=\bof )|(?<=\bthe ))[a-z]{4,}(?: [a-z]{5,})?"
_GAPS = {  # what asks for it, and what it is; the first that fits
    ("when", "what year", "in what year", "on what date"): _DATE,
    ("how many", "what", "how much", "what number"): _NUMBER,
    ("who", "what", "which", "where", "what is the name of"): _NAME,
    ("what", "which", "what kind of", "how"): _WORD,
}
_GAP = re.compile("|".join(rf"(?P<g{i}>(?<!\S){it}(?!\S))" for i, it in enumerate(_GAPS.values())))


def cloze_cells(tables: Iterable[LinkedTable], seed: int = 0) -> Iterator[tuple[Table, Question]]:
    """Yields questions about cells with passages, as the reader sees them: one-cell tables.

    Of each table there are at most PER_TABLE, about cells in a random order, which follows from the
    seed and the table's name.
    """
    for linked in tables:
        table = linked.table
        rng = random.Random(f"{seed}/{table.table_id}")
        cells = [
            (row, column)
            for row in range(table.num_rows)
            for column in range(table.num_columns)
            if linked.passages[row][column] and table.rows[row][column].strip()
        ]
        rng.shuffle(cells)
        for number in range(PER_TABLE if cells else 0):
            cell = cells[number % len(cells)]
            ask = _ask_for_cell if rng.random() < _OF_CELLS else _ask_for_gap
            if (asked := ask(linked, *cell, rng)) is not None:
                text, answer = asked
                name = f"{table.table_id}#{number}"
                yield cell_table(linked, *cell), Question(text, name, (answer,))


def _ask_for_gap(
    linked: LinkedTable, row: int, column: int, rng: random.Random
) -> tuple[str, str] | None:
    """A sentence of a cell's passages as a question, and what was in its gap; None without one."""
    passage = rng.choice(linked.passages[row][column])
    sentences = split_sentences(passage.text)
    if not sentences:
        return None
    sentence, everything = rng.choice(sentences), cell_text(linked, row, column)
    subject = {*passage.title.lower().split(), *linked.table.rows[row][column].lower().split()}
    # A gap is what the cell and its passages say once, and not their subject.
    gaps = [
        gap
        for gap in _GAP.finditer(sentence)
        if everything.count(gap[0]) == 1 and not subject & set(gap[0].lower().split())
    ]
    if not gaps:
        return None
    gap = rng.choice(gaps)
    asks = rng.choice([*_GAPS][int(str(gap.lastgroup)[1:])]).split()
    before, after = sentence[: gap.start()].split(), sentence[gap.end() :].split()
    if rng.random() > _WHOLE:
        before = before[len(before) - min(len(before), rng.randint(0, _FARTHEST)) :]
        after = after[: rng.randint(0, _FARTHEST)]
    before, after = (
        [word for word in part if word.lower() not in subject and any(map(str.isalnum, word))]
        for part in (before, after)
    )
    described = _described(linked.table, row, column, rng).split()
    words = [*described, *before, *asks, *after]
    if rng.random() < 0.5:
        words = [*asks, *described, *before, *after]
    return " ".join([*words, "?"]), gap[0]


def _ask_for_cell(
    linked: LinkedTable, row: int, column: int, rng: random.Random
) -> tuple[str, str] | None:
    """A question for a cell's own text, by its row or by what its passage says first."""
    table = linked.table
    asks = rng.choice(("what is", "which is", "who is", "name", "what was"))
    text = f"{asks} {_described(table, row, column, rng)}"
    sentences = split_sentences(linked.passages[row][column][0].text)
    cell = table.rows[row][column]
    if sentences and rng.random() < 0.6:
        known = set(cell.lower().split())
        words = [word for word in sentences[0].split() if word.lower() not in known]
        begin = rng.randint(0, max(len(words) - _FARTHEST, 0))
        text += " that " + " ".join(words[begin : begin + _FARTHEST])
    return f"{text} ?", cell


def _described(table: Table, row: int, column: int, rng: random.Random) -> str:
    """A cell in the words of its table: "the Athlete", perhaps "with Time 12.93"."""
    described = f"the {table.header[column]}"
    others = [other for other in range(table.num_columns) if table.rows[row][other].strip()]
    others = [other for other in others if other != column]
    if others and rng.random() < 0.6:
        other = rng.choice(others)
        way = rng.choice(("with {} {}", "whose {} is {}", "of {} {}", "when the {} was {}"))
        described += " " + way.format(table.header[other], table.rows[row][other])
    return described
