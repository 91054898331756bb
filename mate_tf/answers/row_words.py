"""The row that a question's words name: one that they mention, the next, the most, the first.

A small model often finds the column of an answer and not its row. Where the words and the table
leave one row only, it is taken. Cells and columns are mentioned by their tokens. The rows beyond a
value ("over 50", "before May") are taken together, and so are those that meet all conditions of a
question with several, or the one of a count; an extreme is looked for among them. Each rule was
kept because it is right for four of five of the questions that it decides: of WikiTableQuestions'
training questions, or of experiments/demo_data/people/dev.jsonl.

mate_tf/serving/raw_text/row_words.py does the same in a graph.

Shapes: R rows and C columns of a table.
"""

import functools
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from mate_tf.features.numeric import EQUAL, GREATER, LESS
from mate_tf.tables.table import AGGREGATIONS

# RE2 reads all patterns too, \b, \w and \d in ASCII; they are searched for in lower case.
NEXT = r"\b(?:after|next|following|follows|followed|below|beneath|behind|succeed\w*)\b"
PREVIOUS = r"\b(?:before|previous|previously|prior|preced\w*|above)\b"
MOST = (
    r"\b(?:most|highest|largest|greatest|biggest|longest|tallest|latest|maximum|max|heaviest|"
    r"deepest|newest|furthest|farthest)\b"
)
LEAST = (
    r"\b(?:least|lowest|smallest|fewest|shortest|earliest|minimum|min|youngest|lightest|cheapest)\b"
)
# What people call the most and the least of a column, and words of the names of such columns.
_SCALES = (
    (
        r"most expensive|dearest|priciest|costliest|costs? the most",
        r"cheapest|least expensive|costs? the least",
        r"price|cost|fare|fee",
    ),
    (r"most expensive", r"cheapest|least expensive", r"rent|amount"),
    (r"oldest", r"youngest", r"\bage\b"),
    (r"longest|farthest|furthest", r"shortest", r"length|distance|duration|minutes|\bkm\b"),
    (r"tallest|highest", r"lowest|shortest", r"height|elevation|altitude"),
    (r"heaviest", r"lightest", r"weight|mass"),
    (r"populous|most people|largest|biggest", r"fewest people|smallest", r"population|inhabitants"),
    (r"largest|biggest", r"smallest", r"area|size"),
    (r"warmest|hottest", r"coldest|coolest", r"temperature"),
    (r"slowest", r"fastest|quickest", r"\btime\b"),
    (r"fastest|quickest", r"slowest", r"speed"),
    (
        r"earns? the most|(?:best|highest) paid",
        r"earns? the least|(?:worst|lowest) paid",
        r"salary|wage",
    ),
    (r"deepest", r"shallowest", r"depth"),
)
_SINCE = r"year|born|birth|founded|built|opened|date"
_TIMES = ((r"youngest|newest|most recent", r"oldest", _SINCE),)


def _patterns(scales: tuple[tuple[str, str, str], ...], side: int) -> str:
    return "|".join(rf"\b(?:{words[side]})\b.*\n.*(?:{words[2]})" for words in scales)


# Of a question and, in the next line, the name of a column: the most and the least of it, and what
# that counts as much as, as a share of its name. Who is the oldest is said by the age, if there is
# one.
SCALES: list[tuple[float, tuple[str, str]]] = [
    (share, (_patterns(scales, 0), _patterns(scales, 1)))
    for share, scales in ((0.6, _SCALES), (0.55, _TIMES))
]
_MORE = r"more|higher|later|longer|older|greater|larger|bigger|heavier|taller|better|dearer|wider"
_LESS = r"less|fewer|lower|earlier|shorter|younger|smaller|cheaper|lighter|worse"
# What questions say of a kind of column, and what its name or its first cell says: "cheapest", or
# "under $5", and a price.
_MONEY = r"[$€£¥]|\b(?:usd|eur|gbp|chf)\b"
KINDS = (
    (
        r"[$€£¥] ?\d|\d ?(?:dollars?|euros?|pounds|usd|eur|gbp|chf)\b|\b(?:cheap|expensive|dear|"
        r"pric)\w*|\b(?:costs?|pays?|paid|sp[ae]nt|spend|earns?|earned)\b",
        rf"{_MONEY}|\b(?:price|cost|fare|fee|rent|amount|paid|salary|wage|total)",
    ),
    (
        r"\d ?(?:kgs?|kilos?|g|grams?|lbs?|pounds|oz|tons?)\b|\b(?:heav|light|weigh)\w*",
        r"\b(?:kgs?|lbs?|oz)\b|\d ?g\b|weight|mass",
    ),
    (
        r"\d ?(?:kms?|kilomet\w+|miles?)\b|\b(?:far|further|furthest)\w*",
        r"\b(?:km|miles?)\b|distance",
    ),
    (r"\d ?(?:m²|m2|sq)|\b(?:space|largest|biggest|smallest)\b", r"m²|\b(?:m2|sq|size|area)\b"),
    (r"\d ?(?:%|per ?cent)", r"%|percent"),
    (r"\d ?[gtm]b\b", r"\d ?[gtm]b\b"),
    (r"\d ?kwh\b", r"\bkwh\b"),
    (
        r"\d ?(?:cm|mm|met(?:er|re)s|feet|ft)\b|\b(?:tall|high)(?:er|est)?\b",
        r"\b(?:cm|mm|ft)\b|height|\d ?m\b",
    ),
    (r"\d ?°|degrees|\b(?:warm|hot|cold|cool)\w*", r"°|temp"),
    (
        r"\b(?:older|younger|oldest|youngest|aged?|years old)\b|"
        r"\b(?:over|under|above|below) \d\d?\b",
        r"\bage\b",
    ),
    (
        r"\d ?(?:min\w*|hours?|hrs?|h|seconds?|s)\b|\b(?:quick|fast|slow|short|long)(?:er|est)\b",
        r"\b(?:min(?:ute)?s?|hours?|time)\b|\d ?h\b|\(h\)|duration|length|\d:\d\d",
    ),
    (
        r"\b(?:1[6-9]|20)\d\d\b",
        r"\b(?:year|since|opened|built|founded|joined|born|start|released|date|(?:19|20)\d\d)\b",
    ),
    (r"\d:\d\d|\d ?[ap]\.?m\b|o'clock|\bnoon\b|\bmidnight\b", r"\d:\d\d"),
)
OF_KIND = 0.6  # what that adds to the share of a column's name, where its value is asked about
# The most and the least of a kind, and of times.
BIGGER = (
    r"\b(?:most|priciest|dearest|costliest|heaviest|longest|farthest|furthest|warmest|"
    r"hottest|slowest|oldest|tallest|highest|largest|biggest|greatest|maximum|max)\b"
)
SMALLER = (
    r"\b(?:cheapest|least|lightest|shortest|nearest|closest|coldest|coolest|quickest|fastest|"
    r"youngest|lowest|smallest|fewest|minimum|min)\b"
)
LATEST = r"\b(?:latest|newest|most recent(?:ly)?)\b"
EARLIEST = r"\b(?:earliest|soonest|oldest)\b"
# An extreme, in any of these words, that is not part of a value or asked to be counted.
SUPERLATIVE = "|".join((MOST, LEAST, BIGGER, SMALLER, LATEST, EARLIEST))
NOT_SUPERLATIVE = rf"\bat (?:least|most)\b| or (?:{_MORE}|{_LESS}|above|below|over|under|up)\b"
NO_EXTREME = r"\bhow (?:many|much|often|long)\b|\bnumber of\b|\bdifference\b| or "
# Of an extreme, which it is: "second highest". The words themselves are then left out.
_ORDINALS = {2: "second|2nd", 3: "third|3rd", 4: "fourth|4th"}
NTH = {
    nth: rf"\b(?:{words})[- ](?:\w+ )?(?:\w{{3,}}est|most|least|max|min)\b"
    for nth, words in _ORDINALS.items()
}
ORDINAL = rf"\b(?:{'|'.join(_ORDINALS.values())})[- ]"
FIRST = r"\bfirst\b|\btops the\b|\bat the top\b|\btop (?:row|of the)\b"
LAST = r"\b(?:last|final|bottom)\b"
WORDS = {
    "next": NEXT,
    "previous": PREVIOUS,
    "most": MOST,
    "least": LEAST,
    "first": FIRST,
    "last": LAST,
}
# The order of the table itself, whatever its dates say.
IN_ORDER = r"\b(?:list\w*|table|row|entry|chart|top|bottom|here)\b"
# With these, the words ask for more than one step, or for no row.
NOT_ALONE = (
    r"\bhow (?:many|much|often|long)\b|\bnumber of\b| or |\bbesides\b|\bother than\b|\bnot\b|"
    r"\b(?:without|difference|average|mean|total|sum|combined)\b|"
    r"\b(?:look\w*|go(?:es|ing)?|went|named) after\b|\bafter\W*$|"
    r"\b(?:first|last|final) (?:week|month|term|half|quarter|round|mark)\b"
)
COMPARED = r"\bat (?:least|most)\b|\b(?:second|third|2nd|3rd|next|after|before)\b"
STEPS = r"\d|\b\w{4,}est\b|\b(?:most|least)\b|\bto (?:be|have|win|get|score|reach|receive)\b"
# Without any of these, a cell that is mentioned is in the row of the answer.
NOT_LOOKED_UP = "|".join(
    [
        *WORDS.values(),
        COMPARED,
        r" or |n't\b|\b\w{3,}est\b|\b(?:not|without|difference|average|mean|total|sum|combined|"
        r"other|than|besides|aside|except|but|else|only|more|less|under|over|until|since|best|worst|"
        r"top|same|shares?|common|both|each|also|all)\b",
    ]
)
ASKS_FOR_VALUE = (
    r"^(?:what|which)? *(?:is|was|were|are)? *(?:the|his|her|their|its) (?:\w+ )?"
    r"(?:most|highest|largest|greatest|biggest|longest|latest|maximum|least|lowest|smallest|"
    r"fewest|shortest|earliest|minimum|cheapest|oldest|newest)\b"
)
# Of the names of columns: those that go with time, and those in which the least is the best.
TIMES = r"year|date|season"
PLACES = r"\b(?:rank\w*|pos|position|place|no|finish\w*|seed|result|score)\b|#"
NAMED = 0.5  # the share of a column's name that the question has
RANKED = 0.6  # the share of a column's cells that have a value
# Beyond a value: a word for it and, near it, a number, in figures or in words, or a month.
_VALUE = (
    r"(?:[^\w\s]*\d|(?:a |an )?(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|"
    r"fifteen|twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety|hundred|thousand|million|half)\b|"
    r"(?:jan|feb|mar|apr|may|june?|july?|aug|sept?|oct|nov|dec)(?:uary|ruary|ch|il|ust|ember|ober)?\b)"
)
_NEAR = r"(?:\S+ ){0,2}"
AT_MOST = (
    rf"\b(?:at most|up to|until|(?:no|not) (?:{_MORE}) than) {_NEAR}{_VALUE}|"
    rf"{_VALUE}\S* {_NEAR}or (?:{_LESS}|under|below)\b"
)
AT_LEAST = (
    rf"\b(?:at least|since|(?:no|not) (?:{_LESS}) than) {_NEAR}{_VALUE}|"
    rf"{_VALUE}\S* {_NEAR}or (?:{_MORE}|over|above|up)\b"
)
OVER = (
    rf"\b(?:(?:{_MORE}) than|over|above|exceed\w*|top(?:s|ped)|beyond|after|past) {_NEAR}{_VALUE}"
)
UNDER = rf"\b(?:(?:{_LESS}) than|under|below|before) {_NEAR}{_VALUE}"
BETWEEN = (
    rf"\bbetween {_NEAR}{_VALUE}\S* {_NEAR}and {_NEAR}{_VALUE}|"
    rf"\bfrom {_NEAR}{_VALUE}\S* {_NEAR}(?:to|until|till) {_NEAR}{_VALUE}"
)
APART = r"\bdifference\b"
NOT_BEYOND = rf"\bbetween\b|{APART}|\bthan\b.*\bthan\b"
# What is more and what is less, where two are compared: who is cheaper costs less.
COMPARED_MORE = (
    rf"\b(?:{_MORE}|pricier|warmer|hotter|deeper|further|farther|most|highest|largest|biggest|longest|"
    r"tallest|heaviest|latest|dearest|over|above)\b"
)
COMPARED_LESS = (
    rf"\b(?:{_LESS}|sooner|colder|cooler|narrower|shallower|lowest|fewest|least|cheapest|smallest|"
    r"shortest|lightest|earliest|under|below|less expensive)\b"
)
# The same of a question and, in the next line, the column's name: who is older was born earlier.
_OF_COLUMN = (
    (r"younger|youngest|newer|newest", r"older|oldest", rf"\b(?:{_SINCE})\b"),
    (r"slower|slowest", r"faster|fastest|quicker|quickest", r"\b(?:time|duration|finish)\b| \(s\)"),
    (r"worse", r"better", r"\b(?:rank\w*|pos|position|place)\b"),
)
MORE_OF_COLUMN, LESS_OF_COLUMN = _patterns(_OF_COLUMN, 0), _patterns(_OF_COLUMN, 1)
# Operators that give way to others where words mean more, and those where they mean less.
TO_MORE = (("LESS", "GREATER"), ("IS_LESS", "IS_GREATER"), ("MIN", "MAX"))
TO_LESS = tuple((more, less) for less, more in TO_MORE)
# How the value may compare with a cell's, as bits of `numeric_relations`.
ALLOWED = ((AT_MOST, EQUAL | GREATER), (AT_LEAST, EQUAL | LESS), (OVER, LESS), (UNDER, GREATER))
COMPARABLE = 0.6  # the share of a column's cells that compare with the value
# Whole cells: those of columns of yes and no, whose name is a condition, and those of one letter,
# such as A, which is not what "a" means.
YES = r" *(?:yes|y|true|✓|✔|x) *"
YES_OR_NO = rf"{YES}| *(?:no|n|false|✗|-)? *"
ONE_LETTER = r"\D?"
# What a column of yes and no is said not to be: "without a garage" needs a no.
NEGATED = (
    r"\b(?:do|does|did|have|has|had|is|are|was|were|ca|wo)n'?t\b|"
    r"\b(?:not|no|without|never|yet to|neither)\b"
)
# With these, the rows may not be those that meet all conditions.
NOT_ALL = r" or |n't\b|\b(?:not|no|none|never|without|except|but|other|only|neither|nor)\b"
DIGIT = r"\d"
NO_WORD = r"\W"
# A whole cell that is a name with a number, such as "Shelf 4", and so not the value of a question.
NUMBERED = r"[a-z]{4,} \d+"
# By operator, how many conditions suffice: one where cells are counted, two where they are added
# up; 0 needs a value to be beyond.
FEWEST = [{"NONE": 0, "COUNT": 1}.get(name, 2) for name in AGGREGATIONS]
IN_PART = 0.3  # the share of a cell's tokens that mentions it where no cell is mentioned whole


class RowFacts(NamedTuple):
    """What the tokens of a table say, as of `TokenFacts`, and its cells."""

    mentioned: np.ndarray  # float64 [R, C]
    num_tokens: np.ndarray  # int64 [R, C]
    ranks: np.ndarray  # float64 [R, C]
    places: np.ndarray  # float64 [R, C]
    names: np.ndarray  # float64 [C]
    is_time: np.ndarray  # bool [C], whether a column has dates or times of day
    relations: np.ndarray  # float64 [R, C], as of `rows_beyond`
    header: Sequence[str]
    cells: Sequence[Sequence[str]]  # the texts of the body, R rows of C


class NamedRow(NamedTuple):
    """The row that words name."""

    row: int
    possible: np.ndarray  # bool [R], rows that the words allow; a sure model keeps its row there
    is_extreme: bool = False  # among the rows beyond a value


def row_in_words(question: str, facts: RowFacts, column: int) -> NamedRow | None:
    """The row that the words name for an answer in a column; None for none or several."""
    text = question.lower()
    nth = max((nth for nth, pattern in NTH.items() if _is_in(pattern, text)), default=1)
    if nth > 1:
        text = _compiled(ORDINAL).sub("", text)
    bare = _compiled(NOT_SUPERLATIVE).sub("", text)
    is_superlative = _is_in(SUPERLATIVE, bare)
    met, are_flags, is_no = _flags(text, facts)
    if is_no.any() and is_superlative:
        text = _compiled(NEGATED).sub("", text)
    of_kind = is_of_kind(text, facts)
    found = rows_beyond(question, facts.relations, facts.names, of_kind)
    whole = np.where(facts.mentioned >= 1.0, facts.num_tokens, 0.0)  # [R, C]
    every = np.ones(len(whole), bool)
    is_beyond = found is not None and is_superlative and not _is_in(NO_EXTREME, bare)
    beyond, by_value = found if found is not None and is_beyond else (every, None)
    if is_beyond:
        text = _compiled(NOT_SUPERLATIVE).sub("", text)
    elif not _is_in(NOT_LOOKED_UP, text):
        return _named(_looked_up(whole, facts.mentioned), every)
    elif _is_in(NOT_ALONE, text):
        return None
    words = {name: _is_in(pattern, text) for name, pattern in WORDS.items()}
    is_extreme = words["most"] or words["least"]
    is_neighbour = words["next"] != words["previous"]
    is_newest_first = _is_newest_first(facts)
    if is_neighbour and not is_extreme and not is_beyond:
        return _named(_neighbour(whole, 1 if words["next"] != is_newest_first else -1), every)
    if is_beyond or not _is_in(COMPARED, text):
        known = np.where(facts.relations == 0, whole, 0.0) if is_beyond else whole
        among = _most(known.max(axis=1))
        among |= among.sum() < 2
        of_flags = (met | ~(are_flags & met.any(axis=0))).all(axis=1)
        for rows in (of_flags, beyond):
            among &= rows | np.logical_not((among & rows).any())
        row = _extreme(text, facts, column, words, among, nth, of_kind, by_value)
        if row is not None or is_beyond:
            return _named(row, among & (nth == 1), is_beyond)
    is_end = words["first"] != words["last"] and not is_neighbour and not _is_in(STEPS, text)
    among = _most(whole.max(axis=1))  # the rows of which one is the first
    if is_end and among.sum() != 1:
        among |= not among.any()
        times = np.flatnonzero(facts.is_time & _are_ranked(facts))
        if not len(times) or _is_in(IN_ORDER, text):
            row = int(np.flatnonzero(among)[0 if words["first"] != is_newest_first else -1])
            return _named(row, every)
        ranks = np.where(among, facts.ranks[:, times[0]], 0.0)
        return _named(_only_row(ranks, words["last"]), every) if len(times) == 1 else None
    return None


def is_of_kind(text: str, facts: RowFacts) -> np.ndarray:
    """The columns of a kind that a question in lower case speaks of, bool [C]."""
    said = [column for asked, column in KINDS if _is_in(asked, text)]
    texts = [
        f"{name} {cell}".lower() for name, cell in zip(facts.header, facts.cells[0], strict=True)
    ]
    return np.array([any(_is_in(pattern, column) for pattern in said) for column in texts])


def rows_beyond(
    question: str, relations: np.ndarray, names: np.ndarray, of_kind: np.ndarray
) -> tuple[np.ndarray, int] | None:
    """The rows with more or less than the value that the question names, or between two values.

    They are a part of the table, bool [R], in the column whose name is mentioned, or that is of the
    kind, or the only one where they are, and come with this column. None where the words name none.
    The relations are [R, C], the bits of `numeric_relations` of each cell, and others where it has
    none; names are those of `RowFacts`, kinds of `is_of_kind`.
    """
    text = question.lower()
    found = [_is_in(pattern, text) for pattern, _ in ALLOWED]
    is_between = _is_in(BETWEEN, text) and not _is_in(APART, text)
    is_unclear = _is_in(NOT_BEYOND, text) or (found[2:] == [True, True] and not any(found[:2]))
    if not is_between and (is_unclear or not any(found)):
        return None
    possible = range(1, 8) if is_between else (EQUAL, LESS, GREATER)
    is_one = np.isin(relations, possible)
    bits = np.where(is_one, relations, 0).astype(np.int64)  # [R, C]
    if is_between:  # equal to one of the values, or beyond one and below the other
        rows = ((bits & EQUAL) > 0) | (bits == LESS | GREATER)
    else:
        rows = (bits & ALLOWED[found.index(True)][1]) > 0
    count = rows.sum(axis=0)
    fits = (is_one.mean(axis=0) >= COMPARABLE) & ((relations <= 0) | is_one).all(axis=0)
    fits &= (count > 0) & (count < len(rows))
    names = names + OF_KIND * of_kind
    shares = np.where(fits, names, -1.0)
    by = np.flatnonzero(fits & (shares == shares.max(initial=-1.0)) & (names >= NAMED))
    if len(by) != 1:
        by = np.flatnonzero(fits)
    return (rows[:, by[0]], int(by[0])) if len(by) == 1 else None


def rows_of_all(question: str, facts: RowFacts, fewest: int) -> np.ndarray | None:
    """The rows that meet all conditions of the question; or those beyond its value.

    A condition is a column with a cell that is mentioned whole, the yes or the no of a column whose
    name is mentioned, or a value that rows are beyond. It holds for a part of the rows. Columns of
    which the same words mention a cell are one condition. Where no row meets all, the value alone
    counts. A condition that stands alone is a no, or is without digits and holds for several rows.

    Args:
        question: its text.
        facts: of the table.
        fewest: how many conditions suffice, one of FEWEST.

    Returns:
        bool [R]; None where the words name none.
    """
    text, cells, relations = question.lower(), facts.cells, facts.relations
    found = rows_beyond(question, relations, facts.names, is_of_kind(text, facts))
    beyond = None if found is None else found[0]
    met, are_flags, is_no = _flags(text, facts)
    others = _compiled(NEGATED).sub("", text) if is_no.any() else text
    if _is_in(NOT_ALL, others) or (beyond is None and not fewest):
        return beyond
    is_one_letter = _are(ONE_LETTER, cells)
    said = (facts.mentioned >= 1.0) & ~are_flags & ~is_one_letter  # [R, C]
    if beyond is not None:
        said &= (relations == 0) | _are(NUMBERED, cells)  # not the value itself
    first = np.where(said, facts.places, np.inf).min(axis=0)  # [C]
    is_again = np.tril(first[:, np.newaxis] == first, -1).any(axis=1)
    met = np.where(are_flags, met, said & ~is_again)  # [R, C]
    if beyond is not None:
        met = np.append(met, beyond[:, np.newaxis], axis=1)
    count = met.sum(axis=0)
    is_condition = (count > 0) & (count < len(met))
    rows, number = np.asarray(met[:, is_condition].all(axis=1)), is_condition.sum()
    if number == 1 and beyond is None and (is_condition & is_no).any():
        return rows
    if number == 1 == fewest and beyond is None and rows.sum() > 1:
        has_digit = _are(rf"(?s).*{DIGIT}.*", cells)
        return None if (met & is_condition & has_digit).any() else rows
    return rows if number > 1 and rows.any() else beyond


def moves_in_words(question: str, name: str) -> tuple[tuple[str, str], ...]:
    """Operators that the words speak against, each with the one that they mean instead.

    The name is that of the column that is compared.
    """
    text = question.lower()
    asked = f"{text}\n{name.lower()}"
    more, less = _is_in(MORE_OF_COLUMN, asked), _is_in(LESS_OF_COLUMN, asked)
    if more == less:
        more, less = _is_in(COMPARED_MORE, text), _is_in(COMPARED_LESS, text)
    return () if more == less else TO_MORE if more else TO_LESS


@functools.cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.ASCII)


def _is_in(pattern: str, text: str) -> bool:
    return _compiled(pattern).search(text) is not None


def _are(pattern: str, cells: Sequence[Sequence[str]]) -> np.ndarray:
    """Whether a pattern matches each whole cell in lower case: bool [R, C]."""
    matches = _compiled(pattern).fullmatch
    return np.array([[matches(cell.lower()) is not None for cell in row] for row in cells])


def _flags(text: str, facts: RowFacts) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Cells that meet the words in columns of yes and no, bool [R, C].

    A column is named by all of its name, or by "un" before it; of several, nobody knows which one a
    negation means. Also the columns of yes and no, and those of which the words want the no,
    bool [C].
    """
    is_yes = _are(YES, facts.cells)
    are_flags = np.asarray(_are(YES_OR_NO, facts.cells).all(axis=0) & is_yes.any(axis=0))  # [C]
    words = _compiled(NO_WORD).sub(" ", text).split()
    is_un = np.array([f"un{name.lower()}" in words for name in facts.header])
    is_named = are_flags & ((facts.names >= 1.0) | is_un)
    is_negated = _is_in(NEGATED, text)
    is_named &= not is_negated or is_named.sum() == 1
    is_no = is_named & (is_un ^ is_negated)
    return is_named & (is_yes != is_no), are_flags, is_no


def _named(row: int | None, possible: np.ndarray, is_extreme: bool = False) -> NamedRow | None:
    return None if row is None else NamedRow(row, possible, is_extreme)


def _looked_up(whole: np.ndarray, mentioned: np.ndarray) -> int | None:
    """The row of the longest mentioned cell, or of the one that is mentioned most.

    Of several, the one with the most mentioned cells.
    """
    longest = whole.max(axis=1)
    if not longest.any():
        longest = np.where(mentioned >= IN_PART, mentioned, 0.0).max(axis=1)
    return _only(_most(np.where(_most(longest), 1 + (whole > 0).sum(axis=1), 0)))


def _most(values: np.ndarray) -> np.ndarray:
    return (values == values.max()) & (values > 0)


def _only(are: np.ndarray) -> int | None:
    """The index of the only true value; None for none or several."""
    found = np.flatnonzero(are)
    return int(found[0]) if len(found) == 1 else None


def _only_row(ranks: np.ndarray, is_most: bool, nth: int = 1) -> int | None:
    """The only row with the nth highest or lowest rank; None where several have it, or none."""
    order = np.where(ranks > 0, ranks if is_most else -ranks, -np.inf)
    is_nth = order == np.sort(order)[-min(nth, len(order))]
    return _only(is_nth & (order > -np.inf)) if nth <= len(order) else None


def _neighbour(whole: np.ndarray, step: int) -> int | None:
    row = _only(_most(whole.max(axis=1)))
    return None if row is None or not 0 <= row + step < len(whole) else row + step


def _extreme(
    text: str,
    facts: RowFacts,
    column: int,
    words: Mapping[str, bool],
    among: np.ndarray,
    nth: int,
    of_kind: np.ndarray,
    by_value: int | None,
) -> int | None:
    """The row with the nth largest or smallest value in the column that is meant, among some rows.

    It is the column that is mentioned for more than its value, or that is on a scale, or else that
    of times, or of the kind.
    """
    header = facts.header
    asked_of = [f"{text}\n{name.lower()}" for name in header]
    is_place = np.array([_is_in(PLACES, name.lower()) for name in header])
    says_either = words["most"] != words["least"]
    names = facts.names if says_either else np.zeros(len(header))  # [C]
    names = np.where(np.arange(len(header)) == by_value, 0.0, names)
    is_most = np.full(len(header), words["most"])
    for share, patterns in SCALES:
        most, least = ([_is_in(pattern, asked) for asked in asked_of] for pattern in patterns)
        is_scaled = np.not_equal(most, least) & (names < NAMED)
        names = np.where(is_scaled, share, names)
        is_most = np.where(is_scaled, most, is_most)
    is_ranked = _are_ranked(facts)  # [C]
    names = np.where(is_ranked & ~is_place, names, 0.0)
    for more, less, of_words in (
        (LATEST, EARLIEST, facts.is_time & is_ranked),
        (BIGGER, SMALLER, of_kind & is_ranked & ~is_place),
    ):
        is_more, is_less = _is_in(more, text), _is_in(less, text)
        is_other = of_words & (np.arange(len(header)) != by_value)
        of_words = is_other if is_other.any() else of_words
        if is_more != is_less and of_words.any() and (names < NAMED).all():
            names = np.where(of_words, NAMED + facts.names, 0.0)
            is_most = np.full(len(header), is_more)
            break
    by = np.flatnonzero((names == names.max()) & (names >= NAMED))
    if len(by) > 1:
        by = by[by != column]
    if len(by) != 1 or (by[0] == column and not _is_in(ASKS_FOR_VALUE, text)):
        return None
    return _only_row(np.where(among, facts.ranks[:, by[0]], 0.0), bool(is_most[by[0]]), nth)


def _are_ranked(facts: RowFacts) -> np.ndarray:
    """Whether most cells of a column have a value: bool [C]."""
    return np.asarray((facts.ranks > 0).mean(axis=0) >= RANKED)


def _is_newest_first(facts: RowFacts) -> bool:
    """Whether a column of times has a value in each row, and never a later one below."""
    return any(
        _is_in(TIMES, name.lower())
        and bool((ranks > 0).all() and (np.diff(ranks) <= 0).all() and ranks[0] > ranks[-1])
        for name, ranks in zip(facts.header, facts.ranks.T, strict=True)
    )
