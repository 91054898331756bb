"""Questions in English: forms for each operation, of which one is drawn, and what fills them.

The places of a form are the columns and cells of `Drawn` by name, such as {T} for the column of the
answer and {v} for a quoted cell; {who} asks for the answer, as "which driver" or "who". Some forms
are held out, so that a model can be asked in words that its training did not have.

How a question calls a column, a cell, and what it asks for.
"""

import random
import re
from collections.abc import Mapping

from mate_tf.synthesis.question_drawing import Drawn
from mate_tf.synthesis.typed_table import TypedTable

_PARENTHESES = re.compile(r"\s*[(\[][^)\]]*[)\]]")
_NO_WORDS = re.compile(r"[^\w%$]+")
_LONGEST_CELL = 10  # words of a cell that are quoted at most
_SHARE_SHORTENED = 0.25
_SHARE_OF_QUESTION_WORDS = 0.6
_WHICH = ("which {}", "what {}")
_PEOPLE = frozenset(
    "name names player players driver drivers rider winner champion director author artist singer "
    "president mayor governor coach manager captain candidate nominee opponent actor actress "
    "performer host architect king queen minister senator representative swimmer athlete wrestler "
    "skipper jockey trainer composer writer producer leader incumbent person".split()
)
_PLACES = frozenset(
    "country nation city town location venue place state county province region stadium site arena "
    "hometown birthplace district municipality village area territory".split()
)


def column_mention(table: TypedTable, column: int, rng: random.Random) -> str:
    """A column's name in lower case, mostly without what stands in parentheses."""
    name = table.columns[column].name.lower()
    plain = _PARENTHESES.sub("", name).strip()
    return plain if _has_words(plain) and rng.random() < 0.8 else name


def cell_mention(table: TypedTable, row: int, column: int, rng: random.Random) -> str:
    """A cell's text, at times a part of it that no other cell of its column has."""
    column_cells = table.columns[column].cells
    text = column_cells[row]
    plain = _PARENTHESES.sub("", text).strip().strip('"')
    choices = [plain] if _has_words(plain) else [text]
    words = choices[0].split()
    if len(words) > _LONGEST_CELL:
        choices = [" ".join(words[:_LONGEST_CELL])]
    elif len(words) > 1 and table.columns[column].kind == "text":
        parts = [" ".join(part) for part in (words[1:], words[:-1], words[-1:])]
        if rng.random() < _SHARE_SHORTENED:
            choices = [part for part in parts if _is_telling(part, text, column_cells)] or choices
    return rng.choice(choices).lower()


def asking_for(table: TypedTable, column: int, name: str, rng: random.Random) -> str:
    """What a question asks for, by its column: "who", "which driver"."""
    words = set(_NO_WORDS.sub(" ", name).split())
    kind = table.columns[column].kind
    question_words = []
    if words & _PEOPLE:
        question_words += ["who", "who"]
    if words & _PLACES:
        question_words += ["where"]
    if kind == "date" or words & {"year", "date", "season"}:
        question_words += ["when", "what year"]
    if kind == "number":
        question_words += [f"how many {name}"]
    if question_words and rng.random() < _SHARE_OF_QUESTION_WORDS:
        return rng.choice(question_words)
    return rng.choice(_WHICH).format(name)


def _is_telling(part: str, text: str, cells: tuple[str, ...]) -> bool:
    """Whether a part of a cell's text is long enough, and in no other cell of its column."""
    return len(part) >= 4 and not any(part in cell for cell in cells if cell != text)


def _has_words(text: str) -> bool:
    return any(map(str.isalnum, text))


_LOOK_UP = (
    "what is the {T} of {v} ?",
    "what was the {T} of {v} ?",
    "what was the {T} for {v} ?",
    "what is the {T} for the {K} {v} ?",
    "{who} is listed for {v} ?",
    "{who} does {v} have ?",
    "{who} did {v} have ?",
    "what is {v} 's {T} ?",
    "what {T} was {v} ?",
    "{who} has the {K} {v} ?",
    "{who} has a {K} of {v} ?",
    "{who} had {v} as {K} ?",
    "{who} was {v} ?",
    "{who} is in the same row as {v} ?",
    "what is the {T} when the {K} is {v} ?",
    "what was the {T} where {K} was {v} ?",
    "for {v} , what is the {T} ?",
    "{T} of {v} ?",
    "tell me the {T} of the {K} {v} .",
    "name the {T} with {K} {v} .",
    "{v} is the {K} of {who} ?",
    "in {v} , what was the {T} ?",
    "{who} was there in {v} ?",
    "with {v} , {who} is it ?",
    "{who} , if {K} is {v} ?",
)
_LOOK_UP_HELD_OUT = (
    "which {T} goes with the {K} {v} ?",
    "give the {T} that corresponds to {v} .",
    "what {T} can be found for {v} ?",
    "i would like to know the {T} belonging to {v} .",
    "suppose the {K} equals {v} ; then what would the {T} be ?",
    "do you know the {T} of {K} {v} ?",
)
_LARGEST_NUMBER = (
    "{who} has the most {N} ?",
    "{who} had the highest {N} ?",
    "{who} has the largest {N} ?",
    "{who} has the greatest number of {N} ?",
    "which {T} has the highest {N} ?",
    "what {T} has the most {N} ?",
    "what is the {T} with the highest {N} ?",
    "name the {T} with the most {N} .",
    "{who} is the top {T} by {N} ?",
    "{who} ranks highest in {N} ?",
    "the highest {N} belongs to {who} ?",
)
_SMALLEST_NUMBER = (
    "{who} has the least {N} ?",
    "{who} had the lowest {N} ?",
    "{who} has the smallest {N} ?",
    "{who} has the fewest {N} ?",
    "which {T} has the lowest {N} ?",
    "what {T} has the least {N} ?",
    "what is the {T} with the lowest {N} ?",
    "name the {T} with the fewest {N} .",
    "{who} ranks lowest in {N} ?",
    "the least {N} belongs to {who} ?",
)
_LARGEST_DATE = (
    "{who} has the latest {N} ?",
    "{who} is the most recent by {N} ?",
    "which {T} was the last by {N} ?",
    "what is the {T} with the latest {N} ?",
    "what was the most recent {T} ?",
    "{who} was last ?",
    "name the {T} with the most recent {N} .",
)
_SMALLEST_DATE = (
    "{who} has the earliest {N} ?",
    "{who} is the oldest by {N} ?",
    "which {T} was the first by {N} ?",
    "what is the {T} with the earliest {N} ?",
    "what was the earliest {T} ?",
    "{who} was first ?",
    "name the {T} with the earliest {N} .",
)
_COUNT_MORE_NUMBER = (
    "how many {T} have more than {v} {N} ?",
    "how many {T} had a {N} of more than {v} ?",
    "how many {T} have {N} above {v} ?",
    "how many {T} have a {N} higher than {v} ?",
    "number of {T} with {N} over {v} ?",
    "how many {T} have over {v} {N} ?",
)
_COUNT_LESS_NUMBER = (
    "how many {T} have less than {v} {N} ?",
    "how many {T} had a {N} of less than {v} ?",
    "how many {T} have {N} below {v} ?",
    "how many {T} have a {N} lower than {v} ?",
    "number of {T} with {N} under {v} ?",
    "how many {T} have fewer than {v} {N} ?",
)
_FORMS: Mapping[str, tuple[str, ...]] = {
    "look_up": _LOOK_UP,
    "look_up_by_two": (
        "what is the {T} of {v} with {L} {w} ?",
        "{who} has {K} {v} and {L} {w} ?",
        "{who} had {v} as {K} and {w} as {L} ?",
        "what is the {T} when the {K} is {v} and the {L} is {w} ?",
        "{who} was {v} in {w} ?",
        "which {T} has {v} and {w} ?",
        "{who} has both {v} and {w} ?",
    ),
    "select": (
        "{who} has {v} ?",
        "which {T} have the {K} {v} ?",
        "{who} had {v} as {K} ?",
        "what are the {T} with {K} {v} ?",
        "name all {T} with {v} .",
        "list the {T} of {v} .",
        "which {T} are {v} ?",
    ),
    "other": (
        "besides {a} , {who} has {v} ?",
        "other than {a} , {who} has the {K} {v} ?",
        "{who} has the same {K} as {a} ?",
        "which other {T} has the same {K} as {a} ?",
        "aside from {a} , which {T} is {v} ?",
        "what other {T} has {v} as {K} besides {a} ?",
        "{who} shares the {K} of {a} ?",
    ),
    "largest_number": _LARGEST_NUMBER,
    "largest_number_value": (
        "what is the highest {N} ?",
        "what was the most {N} ?",
        "what is the largest {N} ?",
        "the highest {N} is what ?",
        "what is the maximum {N} listed ?",
    ),
    "smallest_number": _SMALLEST_NUMBER,
    "smallest_number_value": (
        "what is the lowest {N} ?",
        "what was the least {N} ?",
        "what is the smallest {N} ?",
        "the lowest {N} is what ?",
        "what is the minimum {N} listed ?",
    ),
    "largest_date": _LARGEST_DATE,
    "largest_date_value": (
        "what is the latest {N} ?",
        "what is the most recent {N} ?",
        "what is the last {N} listed ?",
        "when was the last {N} ?",
    ),
    "smallest_date": _SMALLEST_DATE,
    "smallest_date_value": (
        "what is the earliest {N} ?",
        "what is the first {N} listed ?",
        "when was the first {N} ?",
        "what is the oldest {N} ?",
    ),
    "position_first": (
        "what is the first {T} listed ?",
        "{who} is listed first ?",
        "which {T} is at the top of the table ?",
        "what is the first {T} on the list ?",
        "{who} is the first {T} ?",
        "{who} tops the list ?",
        "what was the first {T} ?",
    ),
    "position_last": (
        "what is the last {T} listed ?",
        "{who} is listed last ?",
        "which {T} is at the bottom of the table ?",
        "what is the last {T} on the list ?",
        "{who} is the last {T} ?",
        "what was the final {T} ?",
        "{who} is at the end of the list ?",
    ),
    "position_next": (
        "{who} is listed after {a} ?",
        "what {T} comes after {a} ?",
        "which {T} is next after {a} ?",
        "{who} is directly below {a} ?",
        "{who} came next after {a} ?",
        "what is the next {T} after {a} ?",
        "{who} follows {a} ?",
        "after {a} , {who} is next ?",
    ),
    "position_previous": (
        "{who} is listed before {a} ?",
        "what {T} comes before {a} ?",
        "which {T} is just before {a} ?",
        "{who} is directly above {a} ?",
        "{who} came right before {a} ?",
        "what is the previous {T} to {a} ?",
        "{who} precedes {a} ?",
        "before {a} , {who} was there ?",
    ),
    "comparison_more_number": (
        "{who} has more {N} , {a} or {b} ?",
        "{who} had the higher {N} , {a} or {b} ?",
        "which has the larger {N} , {a} or {b} ?",
        "between {a} and {b} , {who} has more {N} ?",
        "is the {N} of {a} or {b} higher ?",
        "does {a} or {b} have the higher {N} ?",
    ),
    "comparison_less_number": (
        "{who} has less {N} , {a} or {b} ?",
        "{who} had the lower {N} , {a} or {b} ?",
        "which has the smaller {N} , {a} or {b} ?",
        "between {a} and {b} , {who} has fewer {N} ?",
        "is the {N} of {a} or {b} lower ?",
        "does {a} or {b} have the lower {N} ?",
    ),
    "comparison_more_date": (
        "{who} was later , {a} or {b} ?",
        "which has the later {N} , {a} or {b} ?",
        "{who} came after the other , {a} or {b} ?",
        "{who} has the more recent {N} , {a} or {b} ?",
        "between {a} and {b} , {who} was last ?",
    ),
    "comparison_less_date": (
        "{who} was earlier , {a} or {b} ?",
        "which has the earlier {N} , {a} or {b} ?",
        "{who} came first , {a} or {b} ?",
        "{who} was before the other , {a} or {b} ?",
        "between {a} and {b} , {who} was first ?",
    ),
    "beyond_more_number": (
        "{who} has more than {v} {N} ?",
        "which {T} have a {N} above {v} ?",
        "{who} has a {N} of over {v} ?",
        "name the {T} with {N} greater than {v} .",
    ),
    "beyond_less_number": (
        "{who} has less than {v} {N} ?",
        "which {T} have a {N} below {v} ?",
        "{who} has a {N} of under {v} ?",
        "name the {T} with {N} smaller than {v} .",
    ),
    "beyond_more_date": (
        "{who} was after {v} ?",
        "which {T} have a {N} after {v} ?",
        "{who} has a {N} later than {v} ?",
    ),
    "beyond_less_date": (
        "{who} was before {v} ?",
        "which {T} have a {N} before {v} ?",
        "{who} has a {N} earlier than {v} ?",
    ),
    "count": (
        "how many {T} have {K} {v} ?",
        "how many {T} have a {K} of {v} ?",
        "how many {T} are {v} ?",
        "how many {T} had {v} as {K} ?",
        "how many {T} were {v} ?",
        "what is the number of {T} with {v} ?",
        "what is the total number of {T} with {K} {v} ?",
        "how many of the {T} have {v} ?",
        "count the {T} of {v} .",
        "how many {v} {T} are there ?",
        "how many {T} in total have {v} listed as {K} ?",
    ),
    "count_of_value": (
        "how many times is {v} listed ?",
        "how many times does {v} appear ?",
        "how many times was {v} the {K} ?",
        "how often is {v} the {K} ?",
        "how many {v} are there ?",
        "what is the number of times {v} is listed as {K} ?",
    ),
    "count_more_number": _COUNT_MORE_NUMBER,
    "count_less_number": _COUNT_LESS_NUMBER,
    "count_more_date": (
        "how many {T} were after {v} ?",
        "how many {T} have a {N} after {v} ?",
        "how many {T} have a {N} later than {v} ?",
        "how many {T} since {v} ?",
    ),
    "count_less_date": (
        "how many {T} were before {v} ?",
        "how many {T} have a {N} before {v} ?",
        "how many {T} have a {N} earlier than {v} ?",
        "how many {T} until {v} ?",
    ),
    "count_all": (
        "how many {T} are there ?",
        "how many {T} are listed ?",
        "how many different {T} are in the table ?",
        "what is the total number of {T} ?",
        "how many {T} are on the list ?",
        "how many total {T} are there ?",
        "number of {T} in the chart ?",
    ),
    "sum": (
        "what is the total {N} ?",
        "what is the sum of all {N} ?",
        "how many {N} are there in total ?",
        "what is the combined {N} of all ?",
        "how many total {N} were there ?",
        "what is the overall number of {N} ?",
    ),
    "sum_where": (
        "what is the total {N} of {v} ?",
        "what is the combined {N} with {K} {v} ?",
        "how many {N} did {v} have in total ?",
        "what is the sum of {N} for {v} ?",
        "how many total {N} does {v} have ?",
        "what is the total {N} where the {K} is {v} ?",
    ),
    "average": (
        "what is the average {N} ?",
        "what is the mean {N} ?",
        "what was the average number of {N} ?",
        "average {N} ?",
    ),
    "average_where": (
        "what is the average {N} of {v} ?",
        "what is the average {N} with {K} {v} ?",
        "what is the mean {N} for {v} ?",
        "what was the average {N} when the {K} was {v} ?",
    ),
}
_HELD_OUT: Mapping[str, tuple[str, ...]] = {"look_up": _LOOK_UP_HELD_OUT}


def phrase(drawn: Drawn, table: TypedTable, rng: random.Random, held_out: bool = False) -> str:
    """A drawn question in words.

    Args:
        drawn: the question, about columns that have names.
        table: the table that it was drawn from.
        rng: draws the form, and how columns and cells are called.
        held_out: whether the form is one of those that are held out.

    Raises:
        KeyError: if no form of the operation is held out.
    """
    form = rng.choice((_HELD_OUT if held_out else _FORMS)[drawn.operation])
    places = {name: column_mention(table, column, rng) for name, column in drawn.columns.items()}
    places |= {name: cell_mention(table, *cell, rng) for name, cell in drawn.cells.items()}
    if "T" in drawn.columns:
        places["who"] = asking_for(table, drawn.columns["T"], places["T"], rng)
    text = form.format(**places)
    return text if rng.random() < 0.85 else text.rstrip(" ?.")
