"""Questions in English: the forms of each operation, one of which is drawn and filled.

A form has places for columns, such as {T} for the column of the answer, and for cells, such as {v};
{who} asks for the answer, as "which driver" or "who". Some forms are held out, so that a model can
be asked in words that its training did not have.
"""

import random
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from mate_tf.synthesis.typed_table import Kind, TypedTable

_PARENTHESES = re.compile(r"\s*[(\[][^)\]]*[)\]]")
_NO_WORDS = re.compile(r"[^\w%$]+")
_KIND = re.compile(r"_(?:number|date)$")
_CHOICE = re.compile(r"\[([^|\]]*)\|([^\]]*)\]")
_OF_SEVERAL = ("count", "beyond", "select", "having", "not_having", "distinct", "within", "top")
_LONGEST_CELL = 10  # words of a cell that are quoted at most
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
_TIMES = frozenset(("year", "date", "season"))
# What people call the most and the least of a column, by the words of its name, and the more and
# the less: "cheapest". Last, how it is said by a verb: "costs the most".
_SCALES = """
price cost fare fee rent ticket: most expensive, cheapest, more expensive, cheaper, costs
age: oldest, youngest, older, younger,
salary pay wage earnings: best paid, worst paid, better paid, worse paid, earns
population inhabitants: most populous, least populous, more populous, less populous,
area size: largest, smallest, larger, smaller,
distance length km: longest, shortest, longer, shorter,
height elevation altitude: highest, lowest, higher, lower,
weight mass kg: heaviest, lightest, heavier, lighter, weighs
duration time minutes hours: longest, shortest, longer, shorter, takes
speed: fastest, slowest, faster, slower,
temperature: warmest, coldest, warmer, colder,
depth: deepest, shallowest, deeper, shallower,
points score mark grade rating: best, worst, better, worse,
founded built opened published year: newest, oldest, newer, older,
"""

# The names of forms, and the forms. A pair is written as one: "[more|less]" is "more" in the first
# and "less" in the second, in the name and in the forms.
_PHRASE_BOOK = """
look_up: what is the {T} of {v} ? / what was the {T} of {v} ? / what was the {T} for {v} ? /
  what is the {T} for the {K} {v} ? / {who} is listed for {v} ? / {who} does {v} have ? /
  {who} did {v} have ? / what is {v} 's {T} ? / what {T} was {v} ? / {who} has the {K} {v} ? /
  {who} has a {K} of {v} ? / {who} had {v} as {K} ? / {who} was {v} ? /
  {who} is in the same row as {v} ? / what is the {T} when the {K} is {v} ? /
  what was the {T} where {K} was {v} ? / for {v} , what is the {T} ? / {T} of {v} ? /
  tell me the {T} of the {K} {v} . / name the {T} with {K} {v} . / {v} is the {K} of {who} ? /
  in {v} , what was the {T} ? / {who} was there in {v} ? / with {v} , {who} is it ? /
  {who} , if {K} is {v} ?
look_up_by_two: what is the {T} of {v} with {L} {w} ? / {who} has {K} {v} and {L} {w} ? /
  {who} had {v} as {K} and {w} as {L} ? / what is the {T} when the {K} is {v} and the {L} is {w} ? /
  {who} was {v} in {w} ? / which {T} has {v} and {w} ? / {who} has both {v} and {w} ?
select: {who} has {v} ? / which {T} have the {K} {v} ? / {who} had {v} as {K} ? /
  what are the {T} with {K} {v} ? / name all {T} with {v} . / list the {T} of {v} . /
  which {T} are {v} ?
other: besides {a} , {who} has {v} ? / other than {a} , {who} has the {K} {v} ? /
  {who} has the same {K} as {a} ? / which other {T} has the same {K} as {a} ? /
  aside from {a} , which {T} is {v} ? / what other {T} has {v} as {K} besides {a} ? /
  {who} shares the {K} of {a} ?
count: how many {T} have {K} {v} ? / how many {T} have a {K} of {v} ? / how many {T} are {v} ? /
  how many {T} had {v} as {K} ? / how many {T} were {v} ? / what is the number of {T} with {v} ? /
  what is the total number of {T} with {K} {v} ? / how many of the {T} have {v} ? /
  count the {T} of {v} . / how many {v} {T} are there ? /
  how many {T} in total have {v} listed as {K} ?
count_of_value: how many times is {v} listed ? / how many times does {v} appear ? /
  how many times was {v} the {K} ? / how often is {v} the {K} ? / how many {v} are there ? /
  what is the number of times {v} is listed as {K} ?
count_all: how many {T} are there ? / how many {T} are listed ? /
  how many different {T} are in the table ? / what is the total number of {T} ? /
  how many {T} are on the list ? / how many total {T} are there ? / number of {T} in the chart ?
sum: what is the total {N} ? / what is the sum of all {N} ? / how many {N} are there in total ? /
  what is the combined {N} of all ? / how many total {N} were there ? /
  what is the overall number of {N} ?
sum_where: what is the total {N} of {v} ? / what is the combined {N} with {K} {v} ? /
  how many {N} did {v} have in total ? / what is the sum of {N} for {v} ? /
  how many total {N} does {v} have ? / what is the total {N} where the {K} is {v} ?
average: what is the average {N} ? / what is the mean {N} ? / what was the average number of {N} ? /
  average {N} ?
average_where: what is the average {N} of {v} ? / what is the average {N} with {K} {v} ? /
  what is the mean {N} for {v} ? / what was the average {N} when the {K} was {v} ?
largest_where: what is the highest {N} of {v} ? / what was the largest {N} with {K} {v} ? /
  what is the maximum {N} for {v} ? / what is the most {N} that {v} had ?
smallest_where: what is the lowest {N} of {v} ? / what was the smallest {N} with {K} {v} ? /
  what is the minimum {N} for {v} ? / what is the least {N} that {v} had ?
difference: what is the difference in {N} between {a} and {b} ? /
  how many more {N} does {a} have than {b} ? / how much more {N} does {a} have than {b} ? /
  what is the difference between the {N} of {a} and {b} ? / how much higher is the {N} of {a} than
  that of {b} ? / by how much does the {N} of {a} and {b} differ ? / how far apart are {a} and {b}
  in {N} ? / {N} : difference between {a} and {b} ?
is_[more|less]_number: does {a} have [more|less] {N} than {b} ? /
  did {a} have [more|fewer] {N} than {b} ? / is the {N} of {a} [higher|lower] than that of {b} ? /
  was the {N} of {a} [larger|smaller] than the {N} of {b} ? /
  is {a} [above|below] {b} in {N} ? / has {a} [more|less] {N} than {b} ?
is_[more|less]_date: is {a} [later|earlier] than {b} ? / was {a} [after|before] {b} ? /
  is the {N} of {a} [later|earlier] than that of {b} ? / did {a} come [after|before] {b} ?
is_equal: do {a} and {b} have the same {N} ? / did {a} have the same {N} as {b} ? /
  is the {N} of {a} equal to that of {b} ? / are {a} and {b} the same in {N} ?
distinct: how many different {K} are there ? / how many distinct {K} are listed ? /
  how many different {K} were there ? / number of unique {K} ? / how many {K} are there in all ,
  counting each once ?
has: does {a} have {K} ? / is {a} {K} ? / was {a} {K} ? / is {K} true for {a} ? / {a} : {K} ? /
  did {a} get {K} ? / what does it say under {K} for {a} ?
having: which {T} have {K} ? / which {T} are {K} ? / {who} is {K} ? / {who} was {K} ? /
  list all {T} that are {K} . / what {T} have {K} ? / all {T} with {K} ?
not_having: which {T} have no {K} ? / which {T} are not {K} ? / {who} is not {K} ? /
  {who} was not {K} ? / list all {T} that are not {K} . / which {T} do not have {K} ?
count_having: how many {T} have {K} ? / how many {T} are {K} ? / how many {T} were {K} ? /
  number of {T} that are {K} ? / how many are {K} ?
count_not_having: how many {T} have no {K} ? / how many {T} are not {K} ? /
  how many {T} were not {K} ? / how many are not {K} ?
amount: how much is {v} ? / how much does {v} cost ? / how much was {v} ? /
  how much did {v} cost ? / how much {T} does {v} have ? / how much {T} did {v} have ? /
  how much is the {T} of {v} ? / what is the {T} of {v} ? / how much did we pay for {v} ? /
  what does {v} cost ?
how_many: how many {T} does {v} have ? / how many {T} did {v} have ? / how many {T} has {v} ? /
  how many {T} did {v} get ? / how many {T} were there for {v} ? / how many {T} for {v} ? /
  how many {T} are there of {v} ? / {v} has how many {T} ?
[largest|smallest]_number: {who} has the [most|least] {N} ? / {who} had the [highest|lowest] {N} ? /
  {who} has the [largest|smallest] {N} ? / {who} has the [greatest number of|fewest] {N} ? /
  which {T} has the [highest|lowest] {N} ? / what {T} has the [most|least] {N} ? /
  what is the {T} with the [highest|lowest] {N} ? / name the {T} with the [most|fewest] {N} . /
  [{who} is the top {T} by {N} ?|] / {who} ranks [highest|lowest] in {N} ? /
  the [highest|least] {N} belongs to {who} ?
[largest|smallest]_number_value: what is the [highest|lowest] {N} ? /
  what was the [most|least] {N} ? / what is the [largest|smallest] {N} ? /
  the [highest|lowest] {N} is what ? / what is the [maximum|minimum] {N} listed ?
[largest|smallest]_date: {who} has the [latest|earliest] {N} ? /
  {who} is the [most recent|oldest] by {N} ? / which {T} was the [last|first] by {N} ? /
  what is the {T} with the [latest|earliest] {N} ? / what was the [most recent|earliest] {T} ? /
  {who} was [last|first] ? / name the {T} with the [most recent|earliest] {N} .
[largest|smallest]_date_value: what is the [latest|earliest] {N} ? /
  [what is the most recent {N} ?|] / what is the [last|first] {N} listed ? /
  when was the [last|first] {N} ? / [|what is the oldest {N} ?]
position_[first|last]: what is the [first|last] {T} listed ? / {who} is listed [first|last] ? /
  which {T} is at the [top|bottom] of the table ? / what is the [first|last] {T} on the list ? /
  {who} is the [first|last] {T} ? / [{who} tops the list ?|] / what was the [first|final] {T} ? /
  [|{who} is at the end of the list ?]
position_[next|previous]: {who} is listed [after|before] {a} ? /
  what {T} comes [after|before] {a} ? / which {T} is [next after|just before] {a} ? /
  {who} is directly [below|above] {a} ? / {who} came [next after|right before] {a} ? /
  what is the [next {T} after|previous {T} to] {a} ? / {who} [follows|precedes] {a} ? /
  [after {a} , {who} is next|before {a} , {who} was there] ?
comparison_[more|less]_number: {who} has [more|less] {N} , {a} or {b} ? /
  {who} had the [higher|lower] {N} , {a} or {b} ? /
  which has the [larger|smaller] {N} , {a} or {b} ? /
  between {a} and {b} , {who} has [more|fewer] {N} ? / is the {N} of {a} or {b} [higher|lower] ? /
  does {a} or {b} have the [higher|lower] {N} ?
comparison_[more|less]_date: {who} was [later|earlier] , {a} or {b} ? /
  which has the [later|earlier] {N} , {a} or {b} ? /
  {who} came [after the other|first] , {a} or {b} ? /
  {who} [has the more recent {N}|was before the other] , {a} or {b} ? /
  between {a} and {b} , {who} was [last|first] ?
beyond_[more|less]_number: {who} has [more|less] than {v} {N} ? /
  which {T} have a {N} [above|below] {v} ? / {who} has a {N} of [over|under] {v} ? /
  name the {T} with {N} [greater|smaller] than {v} .
beyond_[more|less]_round: which {T} have [more|less] than {t} {N} ? /
  which {T} have [at least|at most] {t} {N} ? / {who} has a {N} of [over|under] {t} ? /
  which {T} are [above|below] {t} in {N} ? / list all {T} with {N} [above|below] {t} . /
  which {T} have {N} [greater|lower] than {t} ?
beyond_[more|less]_year: which {T} are [after|before] {t} ? / {who} was [after|before] {t} ? /
  which {T} have a {N} [after|before] {t} ? / list the {T} [later|earlier] than {t} .
count_[more|less]_round: how many {T} have [more|less] than {t} {N} ? /
  how many {T} have [at least|at most] {t} {N} ? / how many {T} are [above|below] {t} {N} ? /
  how many {T} have a {N} of [over|under] {t} ? / number of {T} with {N} [above|below] {t} ?
count_[more|less]_year: how many {T} are [after|before] {t} ? /
  how many {T} have a {N} [after|before] {t} ? / how many {T} were there [after|before] {t} ?
within: which {T} were in {t} ? / {who} has a {N} in {t} ? / list the {T} of {t} . /
  which {T} have a {N} in {t} ? / what are the {T} from {t} ?
count_within: how many {T} were in {t} ? / how many {T} have a {N} in {t} ? /
  how many {T} are there in {t} ? / number of {T} from {t} ?
sum_within: what is the total {M} in {t} ? / how much {M} was there in {t} ? /
  what is the sum of the {M} in {t} ? / total {M} for {t} ?
top_[most|least]: which {t} {T} have the [highest|lowest] {N} ? / which {t} {T} have the
  [most|fewest] {N} ? / what are the [top|bottom] {t} {T} by {N} ? /
  name the {t} {T} with the [largest|smallest] {N} .
[largest|smallest]_scale: {who} is the {s} ? / which {T} is the {s} ? / what is the {s} {T} ? /
  {who} is {s} ? / what was the {s} {T} ? / the {s} {T} ? / name the {s} {T} .
[largest|smallest]_verb: {who} {verb} the [most|least] ? / which {T} {verb} the [most|least] ? /
  what {T} {verb} [most|least] ?
comparison_[more|less]_verb: {who} {verb} [more|less] , {a} or {b} ? /
  which {verb} [more|less] , {a} or {b} ? / which {T} {verb} [more|less] , {a} or {b} ?
comparison_[more|less]_scale: {who} is {s} , {a} or {b} ? / which is {s} , {a} or {b} ? /
  is {a} or {b} {s} ? / which {T} was {s} , {a} or {b} ? / {s} : {a} or {b} ?
is_[more|less]_scale: is {a} {s} than {b} ? / was {a} {s} than {b} ? / {a} is {s} than {b} ,
  isn't it ?
difference_scale: how much {s} is {a} than {b} ? / by how much is {a} {s} than {b} ? /
  how much {s} was {a} than {b} ?
beyond_[more|less]_date: {who} was [after|before] {v} ? /
  which {T} have a {N} [after|before] {v} ? / {who} has a {N} [later|earlier] than {v} ?
count_[more|less]_number: how many {T} have [more|less] than {v} {N} ? /
  how many {T} had a {N} of [more|less] than {v} ? / how many {T} have {N} [above|below] {v} ? /
  how many {T} have a {N} [higher|lower] than {v} ? / number of {T} with {N} [over|under] {v} ? /
  how many {T} have [over|fewer than] {v} {N} ?
count_[more|less]_date: how many {T} were [after|before] {v} ? /
  how many {T} have a {N} [after|before] {v} ? /
  how many {T} have a {N} [later|earlier] than {v} ? / how many {T} [since|until] {v} ?
"""
_HELD_OUT_PHRASES = """
look_up: which {T} goes with the {K} {v} ? / give the {T} that corresponds to {v} . /
  what {T} can be found for {v} ? / i would like to know the {T} belonging to {v} . /
  suppose the {K} equals {v} ; then what would the {T} be ? / do you know the {T} of {K} {v} ?
"""


def _forms_in(book: str) -> Mapping[str, tuple[str, ...]]:
    """The forms of a phrase book by name, with both sides of what is written as a pair."""
    forms = {}
    for entry in re.split(r"\n(?! )", book.strip()):
        name, text = " ".join(entry.split()).split(": ", 1)
        for side in (0, 1):
            of_side = (_side(form, side) for form in text.split(" / "))
            forms[_side(name, side)] = tuple(filter(None, of_side))
    return forms


def _side(text: str, side: int) -> str:
    return _CHOICE.sub(lambda choice: choice[1 + side], text)


FORMS, HELD_OUT = _forms_in(_PHRASE_BOOK), _forms_in(_HELD_OUT_PHRASES)
_SCALE_OF = {
    word: said.split(", ")
    for names, said in (
        line.split(": ") for line in _SCALES.replace(",\n", ", \n").split("\n")[1:-1]
    )
    for word in names.split()
}


@dataclass(frozen=True)
class Drawn:
    """A question before it has words.

    Attributes:
        form: which of FORMS it may take.
        column: the column of the cells that answer.
        rows: the rows of these cells, ascending.
        columns: the columns that the words name, by the name of their place.
        cells: the cells (row, column) that the words quote, by the name of their place.
        aggregation: one of AGGREGATIONS.
        answer: where it is not a cell's text or a number that is computed.
        words: what else stands in the form, by the name of its place.
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
    """A drawn question in words.

    Args:
        drawn: the question, about columns that have names.
        table: the table that it was drawn from.
        rng: draws the form, and how columns and cells are called.
        held_out: whether the form is one of HELD_OUT.

    Raises:
        KeyError: if the form has none that are held out.
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
