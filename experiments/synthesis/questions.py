"""Synthetic questions about tables, with the cells that answer them.

A question is about an excerpt, a run of rows and some columns that fit a sequence, or about a whole
table. Its operation is what has to be done with the table to answer it: those of
WikiTableQuestions (Pasupat and Liang, 2015, table 3), and what else people ask of their own tables.

A question has words by one of the forms of its operation, in question_forms.txt. A form has fields
for columns, such as {T} for the column of the answer, and for cells, such as {v}; {who} asks for
the answer, as "which driver" or "who"; of <tell me|name> one is taken. Some forms are held out, so
that a model can be asked in words that its training did not have.
"""

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from experiments.synthesis import WORDS
from experiments.synthesis.drawn import Drawn, days_of
from experiments.synthesis.made_tables import rewritten
from experiments.synthesis.question_drawing import OPERATIONS, SHARES, draw
from experiments.synthesis.rewording import mistyped, synonym
from experiments.synthesis.typed_table import (
    FEWEST,
    Kind,
    Made,
    NothingMadeError,
    TypedTable,
    cell_lengths,
    draw_run,
    require_sizes,
    table_tokens,
)
from mate_tf.dataclass_json import require
from mate_tf.features.numeric import Date
from mate_tf.features.wordpiece import Wordpiece
from mate_tf.reading.text_files import read_text
from mate_tf.tables.operators import ABSENT, OPERATORS
from mate_tf.tables.table import Question, Table

_ATTEMPTS = 3  # for each question, each time with another operation
_PARENTHESES = re.compile(r"\s*[(\[][^)\]]*[)\]]")
_NO_WORDS = re.compile(r"[^\w%$]+")
_CHOICE = re.compile(r"<([^<>]*)>")
_KIND = re.compile(r"_(?:number|date)$")
_OF_SEVERAL = (
    *("count", "beyond", "select", "having", "not_having", "distinct", "within", "top"),
    *("not_like", "both", "all_", "share_of_rows", "follow_columns", "follow_count"),
)
# What a table still answers without the value {v} that is asked about: nothing has it.
_ANSWERED_WITHOUT = ("fact", "exists", "exists_both", "all_like", "not_like", "count_not_like")
_SHARE_OF_SYNONYMS, _SHARE_OF_MISTYPED = 0.15, 0.05
_LONGEST_CELL = 10  # words of a cell that are quoted at most
# Of "scales": what people call the most and the least of a column, by the words of its name, and
# the more and the less: "cheapest". Last, how it is said by a verb: "costs the most".
_PEOPLE, _PLACES, _TIMES = ({*WORDS[kind].split()} for kind in ("people", "places", "times"))
_SCALE_OF = {
    word: text.split(", ") for names, text in WORDS["scales"].items() for word in names.split()
}


def _read_forms() -> dict[str, tuple[str, ...]]:
    """The forms by name, with both sides of what is written as a pair.

    In question_forms.txt "[more|less]" is "more" in the first of two forms and "less" in the
    second, in the name and in the forms. A slash is between forms.
    """
    forms = {}
    book = read_text(Path(__file__).with_name("question_forms.txt"))
    for entry in re.split(r"\n(?! )", book.strip()):
        for side in (1, 2):
            form = re.sub(r"\[([^|\]]*)\|([^\]]*)\]", rf"\{side}", " ".join(entry.split()))
            name, text = form.split(": ", 1)
            forms[name] = tuple(filter(None, text.split(" / ")))
    return forms


FORMS = _read_forms()
_HELD_OUT = "held_out_"
HELD_OUT = {n.removeprefix(_HELD_OUT): FORMS.pop(n) for n in [*FORMS] if n.startswith(_HELD_OUT)}


@dataclass(frozen=True)
class QuestionsConfig:
    """How many questions are made of a table, and how long they are.

    Attributes:
        questions_per_table, questions_per_excerpt, max_rows: the most of each; rows of an excerpt.
        whole_tables: asks about tables as they are, not about excerpts. Tables that do not fit
            are left out.
        max_seq_length: tokens of a question with its table, special tokens included.
        max_question_tokens: tokens of the question alone.
        operations: those of SHARES that are used; by default none that follow another question.
        held_out_forms: asks in words that no other question has, where there are such words.
        absent: the share of questions whose table is changed so that it no longer answers them.
        rewritten: the share of tables whose numbers and dates are written in another way.
        seed: all draws follow from it and from the table's identifier.

    Raises:
        ValueError: if nothing can be made, or an operation is unknown.
    """

    questions_per_table: int = 64
    questions_per_excerpt: int = 4
    whole_tables: bool = False
    max_seq_length: int = 192
    max_question_tokens: int = 40
    max_rows: int = 24
    operations: tuple[str, ...] = OPERATIONS
    held_out_forms: bool = False
    absent: float = 0.0
    rewritten: float = 0.0
    seed: int = 0

    def __post_init__(self) -> None:
        sizes = ("questions_per_table", "questions_per_excerpt", "max_question_tokens")
        require_sizes(self, 1, *sizes)
        require_sizes(self, FEWEST, "max_rows")
        _ = self.max_table_tokens
        unknown = [name for name in self.operations if name not in SHARES]
        require(
            bool(self.operations) and not unknown,
            f"expected operations among {tuple(SHARES)}, got {unknown or 'none'}",
        )

    @property
    def max_table_tokens(self) -> int:
        return table_tokens(self.max_seq_length, self.max_question_tokens)


def synthetic_questions(
    table: Table, wordpiece: Wordpiece, config: QuestionsConfig
) -> Iterator[Made]:
    """Yields questions about a table; NothingMadeError if there is none."""
    where = f"(table '{table.table_id}')"
    rng = random.Random(f"{config.seed}/{table.table_id}")
    if config.rewritten and rng.random() < config.rewritten:
        table = rewritten(table, rng)
    whole = TypedTable(table)
    if len(whole.select()) < FEWEST:
        raise NothingMadeError(
            "fewer than two columns to ask about",
            f"expected two columns with a name of their own and different values {where}",
        )
    lengths, room = cell_lengths(wordpiece, table), config.max_table_tokens
    if config.whole_tables and lengths.sum() > room:
        raise NothingMadeError(
            "too long", f"expected at most {room} tokens, got {lengths.sum()} {where}"
        )
    made = 0
    for index in range(-(-config.questions_per_table // config.questions_per_excerpt)):
        typed = whole
        if not config.whole_tables:
            name = f"{table.table_id}#{index}"
            excerpt = draw_run(table, lengths, room, config.max_rows, name, rng)
            if excerpt is None:
                continue
            typed = TypedTable(excerpt)
        count = min(config.questions_per_excerpt, config.questions_per_table - made)
        for operation, text, drawn in _draw_several(typed, count, wordpiece, config, rng):
            name = f"{table.table_id}#{made}:{operation}"
            made += 1
            asked: Table | None = typed.table
            if operation == "exists" and rng.random() < 0.5:
                asked = _without_rows(typed.table, drawn.cells["v"])
                question = Question(text, name, ("no",), aggregation="NO")
            elif not config.absent or rng.random() >= config.absent:
                question = _question(text, name, drawn, typed)
            else:
                asked, operation = _without_answer(typed.table, drawn, rng), "absent"
                question = Question(text, name, aggregation=ABSENT)
            if asked is not None and drawn.before and question.answers and rng.random() < 0.5:
                asked, question = _about_marked_rows(asked, question)
            if asked is not None:
                yield Made(operation, ((asked, question),))
    if not made:
        raise NothingMadeError("no question found", f"expected a question {where}")


def _draw_several(
    table: TypedTable, count: int, wordpiece: Wordpiece, config: QuestionsConfig, rng: random.Random
) -> Iterator[tuple[str, str, Drawn]]:
    """Draws up to `count` different questions: operation, words, and what they ask."""
    texts: set[str] = set()
    shares = [SHARES[name] for name in config.operations]
    for _ in range(_ATTEMPTS * count):
        if len(texts) == count:
            return
        operation = rng.choices(config.operations, shares)[0]
        drawn = draw(operation, table, rng)
        if drawn is None or (config.held_out_forms and drawn.form not in HELD_OUT):
            continue
        text = phrase(drawn, table, rng, config.held_out_forms)
        is_long = wordpiece.ids_and_lengths([text])[1][0] > config.max_question_tokens
        if not is_long and text not in texts:
            texts.add(text)
            yield operation, text, drawn


def _without_answer(table: Table, drawn: Drawn, rng: random.Random) -> Table | None:
    """The table without the rows or a column that a question mentions; None if too little is left.

    One column less of a series leaves a question about the others.
    """
    is_answered = drawn.form in _ANSWERED_WITHOUT
    cells = [drawn.cells[name] for name in sorted(drawn.cells) if name in "ab" or not is_answered]
    if cells and ("U" in drawn.words or rng.random() < 0.6):
        return _without_rows(table, rng.choice(cells))
    gone = rng.choice(sorted({drawn.column, *drawn.columns.values()}))
    name = table.header[gone].strip().lower()
    kept = [c for c in range(table.num_columns) if c != gone]
    if len(kept) < FEWEST or any(name in table.header[c].lower() for c in kept):
        return None
    header, *rows = (tuple(cells[c] for c in kept) for cells in (table.header, *table.rows))
    return replace(table, header=header, rows=tuple(rows), expansions=())


def _about_marked_rows(table: Table, question: Question) -> tuple[Table, Question]:
    """A follow-up about the rows of the answer before alone, as models are asked, if these do."""
    rows = sorted({row for row, _ in question.previous_coordinates})
    if not {row for row, _ in question.answer_coordinates} <= {*rows}:
        return table, question
    marks, cells = (
        tuple((rows.index(row), column) for row, column in coordinates)
        for coordinates in (question.previous_coordinates, question.answer_coordinates)
    )
    question = replace(question, previous_coordinates=marks, answer_coordinates=cells)
    return table.with_rows(rows), question


def _without_rows(table: Table, cell: tuple[int, int]) -> Table | None:
    """The table without the rows in which a cell's text stands; None if too little is left."""
    mentioned = table.rows[cell[0]][cell[1]].strip().lower()
    left = tuple(row for row in table.rows if not any(mentioned in c.lower() for c in row))
    return None if len(left) < FEWEST else replace(table, rows=left, expansions=())


def _question(text: str, name: str, drawn: Drawn, table: TypedTable) -> Question:
    number: float | None = None
    answers: tuple[str, ...]
    if drawn.aggregation == "HEADER":
        answers = tuple(table.table.header[column] for column in drawn.along)
    elif drawn.answer:
        answers = (drawn.answer,)
    elif drawn.aggregation == "NONE":
        answers = tuple(table.columns[drawn.column].cells[row] for row in drawn.rows)
    else:
        answers = (f"{_result(drawn, table):.10g}",)
        number = float(answers[0])
    return Question(
        *(text, name, answers, drawn.coordinates, number, drawn.aggregation),
        previous_coordinates=drawn.before,
    )


def _result(drawn: Drawn, table: TypedTable) -> float:
    """The number that is computed from the cells that answer."""
    operator = drawn.aggregation.removeprefix("ROW_")
    if operator == "COUNT":
        return float(len(drawn.rows))
    values = [table.columns[column].values[row] for row, column in drawn.coordinates]
    numbers = [days_of(value) if isinstance(value, Date) else float(value) for value in values]  # type: ignore[arg-type]
    compute = OPERATORS[operator].compute
    assert compute is not None, operator
    return compute(numbers)


def phrase(drawn: Drawn, table: TypedTable, rng: random.Random, held_out: bool = False) -> str:
    """A question in words, in one of its forms, of FORMS or HELD_OUT."""
    fields = {name: _column_mention(table, column, rng) for name, column in drawn.columns.items()}
    words: dict[str, str] = {}
    if held_out:
        form = rng.choice(HELD_OUT[drawn.form])
    else:
        forms, words = _scaled(drawn.form, fields.get("N", ""), rng)
        form = rng.choice(FORMS[forms])
    fields |= {**words, **drawn.words}
    fields |= {name: _cell_mention(table, *cell, rng) for name, cell in drawn.cells.items()}
    if drawn.form.startswith(_OF_SEVERAL) and rng.random() < 0.8:
        name = "K" if drawn.form == "distinct" else "T"
        fields |= {name: _plural(fields[name])} if name in fields else {}
    if "T" in drawn.columns:
        fields["who"] = _asking_for(table.columns[drawn.columns["T"]].kind, fields["T"], rng)
    if "U" in fields:
        fields["Us"] = _plural(fields["U"])
        form = form.replace("{U}s", "{Us}")
    form = _CHOICE.sub(lambda choice: rng.choice(choice[1].split("|")), form)
    text = " ".join(form.format(**fields).split())
    text = mistyped(text, rng) if rng.random() < _SHARE_OF_MISTYPED and not held_out else text
    return text if rng.random() < 0.85 else text.rstrip(" ?.")


def _scaled(form: str, name: str, rng: random.Random) -> tuple[str, dict[str, str]]:
    """Half the time the form that says "cheapest" of a column of prices, and its words."""
    most, side = form.split("_")[0], int("less" in form or "smallest" in form)
    scale = next((_SCALE_OF[word] for word in name.split() if word in _SCALE_OF), None)
    scaled = "difference_scale" if form == "difference" else _KIND.sub("_scale", form)
    if scale is None or scaled not in FORMS or rng.random() < 0.5:
        return form, {}
    word = scale[side + (0 if most in ("largest", "smallest") else 2)]
    spoken = scaled.replace("_scale", "_verb")
    if scale[4] and spoken in FORMS and rng.random() < 0.4:
        scaled = spoken
    return scaled, {"s": word, "verb": scale[4]}


def _plural(name: str) -> str:
    if not name or not name[-1].isalpha() or name.endswith("s"):
        return name
    return f"{name[:-1]}ies" if re.search(r"[^aeiou]y$", name) else f"{name}s"


def _column_mention(table: TypedTable, column: int, rng: random.Random) -> str:
    """A column's name in lower case, mostly without what stands in parentheses."""
    name = table.columns[column].name.lower()
    if rng.random() < _SHARE_OF_SYNONYMS:
        other = synonym(name, rng)
        headers = [it.name.lower() for it in table.columns if it is not table.columns[column]]
        if not any(it and (it in other or other in it) for it in headers):
            name = other
    plain = _PARENTHESES.sub("", name).strip()
    return plain if _has_words(plain) and rng.random() < 0.8 else name


def _cell_mention(table: TypedTable, row: int, column: int, rng: random.Random) -> str:
    """A cell's text, or at times a part of it that no other cell of its column has."""
    column_cells = table.columns[column].cells
    text = column_cells[row]
    plain = _PARENTHESES.sub("", text).strip().strip('"')
    choices = [plain] if _has_words(plain) else [text]
    words = choices[0].split()
    if len(words) > _LONGEST_CELL:
        choices = [" ".join(words[:_LONGEST_CELL])]
    elif len(words) > 1 and table.columns[column].kind == "text" and rng.random() < 0.25:
        parts = [" ".join(part) for part in (words[1:], words[:-1], words[-1:])]
        others = [cell for cell in column_cells if cell != text]
        telling = [p for p in parts if len(p) >= 4 and not any(p in cell for cell in others)]
        choices = telling or choices
    return rng.choice(choices).lower()


def _asking_for(kind: Kind, name: str, rng: random.Random) -> str:
    """The words that ask for a column, by its kind and name: "who", "which driver"."""
    words = set(_NO_WORDS.sub(" ", name).split())
    question_words = ["who", "who"] if words & _PEOPLE else []
    if words & _PLACES:
        question_words += ["where"]
    if kind == "date" or words & _TIMES:
        question_words += ["when", "what year"]
    if kind == "number":
        question_words += [f"how many {name}"]
    if question_words and rng.random() < 0.6:
        return rng.choice(question_words)
    return rng.choice(("which {}", "what {}")).format(name)


def _has_words(text: str) -> bool:
    return any(map(str.isalnum, text))
