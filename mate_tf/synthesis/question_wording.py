"""Questions in English: the forms of each operation, one of which is drawn and filled.

A form has places for columns, such as {T} for the column of the answer, and for cells, such as {v};
{who} asks for the answer, as "which driver" or "who". Some forms are held out, so that a model can
be asked in words that its training did not have.
"""

import random
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from mate_tf.synthesis.typed_table import Kind, TypedTable
from mate_tf.tables.text_files import read_json, read_text

_PARENTHESES = re.compile(r"\s*[(\[][^)\]]*[)\]]")
_NO_WORDS = re.compile(r"[^\w%$]+")
_KIND = re.compile(r"_(?:number|date)$")
_OF_SEVERAL = ("count", "beyond", "select", "having", "not_having", "distinct", "within", "top")
_LONGEST_CELL = 10  # words of a cell that are quoted at most
# Of "scales": what people call the most and the least of a column, by the words of its name, and
# the more and the less: "cheapest". Last, how it is said by a verb: "costs the most".
_WORDS = read_json(Path(__file__).with_name("words.json"))
_PEOPLE, _PLACES, _TIMES = ({*_WORDS[kind].split()} for kind in ("people", "places", "times"))
_SCALE_OF = {
    word: said.split(", ") for names, said in _WORDS["scales"].items() for word in names.split()
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
            of_side = re.sub(r"\[([^|\]]*)\|([^\]]*)\]", rf"\{side}", " ".join(entry.split()))
            name, text = of_side.split(": ", 1)
            forms[name] = tuple(filter(None, text.split(" / ")))
    return forms


FORMS = _read_forms()
HELD_OUT = {"look_up": FORMS.pop("held_out_look_up")}


@dataclass(frozen=True)
class Drawn:
    """A question before it has words.

    Attributes:
        form: which of FORMS it may take.
        column, rows: of the cells that answer, ascending.
        columns, cells, words: what stands in the form, by the name of its place: columns that the
            words name, cells (row, column) that they quote, and other words.
        aggregation: one of AGGREGATIONS.
        answer: where it is not a cell's text or a number that is computed.
    """

    form: str
    column: int
    rows: tuple[int, ...]
    columns: Mapping[str, int]
    cells: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    aggregation: str = "NONE"
    answer: str = ""
    words: Mapping[str, str] = field(default_factory=dict)


def phrase(drawn: Drawn, table: TypedTable, rng: random.Random, held_out: bool = False) -> str:
    """A question in words, in one of its forms, of FORMS or HELD_OUT.

    It is about columns that have names, of the table that it was drawn from.
    """
    places = {name: _column_mention(table, column, rng) for name, column in drawn.columns.items()}
    forms, words = _scaled(drawn.form, places.get("N", ""), rng)
    form = rng.choice((HELD_OUT if held_out else FORMS)[forms])
    places |= {**words, **drawn.words}
    places |= {name: _cell_mention(table, *cell, rng) for name, cell in drawn.cells.items()}
    if drawn.form.startswith(_OF_SEVERAL) and rng.random() < 0.8:
        name = "K" if drawn.form == "distinct" else "T"
        places |= {name: _plural(places[name])} if name in places else {}
    if "T" in drawn.columns:
        places["who"] = _asking_for(table.columns[drawn.columns["T"]].kind, places["T"], rng)
    text = form.format(**places)
    return text if rng.random() < 0.85 else text.rstrip(" ?.")


def _scaled(form: str, name: str, rng: random.Random) -> tuple[str, dict[str, str]]:
    """Half the time the form that says "cheapest" of a column of prices, and its words."""
    most, side = form.split("_")[0], int("less" in form or "smallest" in form)
    scale = next((_SCALE_OF[word] for word in name.split() if word in _SCALE_OF), None)
    scaled = "difference_scale" if form == "difference" else _KIND.sub("_scale", form)
    if scale is None or scaled not in FORMS or rng.random() < 0.5:
        return form, {}
    said = scale[side + (0 if most in ("largest", "smallest") else 2)]
    spoken = scaled.replace("_scale", "_verb")
    if scale[4] and spoken in FORMS and rng.random() < 0.4:
        scaled = spoken
    return scaled, {"s": said, "verb": scale[4]}


def _plural(name: str) -> str:
    if not name or not name[-1].isalpha() or name.endswith("s"):
        return name
    return f"{name[:-1]}ies" if re.search(r"[^aeiou]y$", name) else f"{name}s"


def _column_mention(table: TypedTable, column: int, rng: random.Random) -> str:
    """A column's name in lower case, mostly without what stands in parentheses."""
    name = table.columns[column].name.lower()
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
    """What a question asks for, by the kind and the name of its column: "who", "which driver"."""
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
