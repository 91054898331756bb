r"""Asks about tables of tens of thousands of rows, and the same about 100 of their rows.

    python -m experiments.benchmarks.chosen_rows --rows=50000 --questions=50

Four tables are made up (orders, employees, loans of a library, readings of sensors), and so many
questions of each kind are asked: names, extremes, counts and sums. Prints for each kind how many
are right about the whole tables and about 100 rows each, the CPU seconds of an answer after the
first one, and the process's memory. The questions are made by patterns, with the answers that the
cells say; no other program uses them.
"""

import itertools
import pathlib
import random
import resource
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from absl import app, flags

from mate_tf.tables.table import Table

_ROWS = flags.DEFINE_integer("rows", 50_000, "rows of each table", lower_bound=100)
_QUESTIONS = flags.DEFINE_integer("questions", 50, "questions of each kind", lower_bound=1)
_SEED = flags.DEFINE_integer("seed", 7, "of tables and questions")
_FEW = 100  # rows of the short tables

_FIRST = "Anna Ben Clara David Eva Felix Greta Hugo Ida Jan Karla Leo Mia Nils Olga Paul".split()
_LAST = "Adler Brandt Cruz Dietz Evans Frank Gomez Hahn Ito Jansen Kern Lopez Meyer Novak".split()
_CITIES = "Berlin Paris Madrid Rome Oslo Vienna Lisbon Dublin Prague Warsaw".split()
_BOOKS = ("Blue River", "Cold Harbour", "Dry Season", "Early Light", "Far Shore", "Green Hills")

Row = dict[str, str]


class Asked(NamedTuple):
    """A question with its right answer."""

    kind: str
    text: str
    answer: str


def _day(draw: random.Random) -> str:
    return f"20{draw.randint(18, 24)}-{draw.randint(1, 12):02}-{draw.randint(1, 28):02}"


def _name(draw: random.Random) -> str:
    return f"{draw.choice(_FIRST)} {draw.choice(_LAST)}"


def _like(rows: Sequence[Row], row: Row, same: Sequence[str]) -> list[Row]:
    return [other for other in rows if all(other[name] == row[name] for name in same)]


def answer(operation: str, rows: Sequence[Row], row: Row) -> str:
    """The right answer about some rows, of which a question names one.

    Operations are those of chosen_rows.txt: a name, a column and others, in which rows are alike.
    """
    name, column, *same = operation.split()
    if name == "cell":
        return row[column]
    if name == "count":
        return str(len(_like(rows, row, [column, *same])))
    if name in ("more", "fewer"):
        is_beyond = {"more": float.__gt__, "fewer": float.__lt__}[name]
        return str(sum(is_beyond(float(one[column]), float(row[column])) for one in rows))
    if name in ("sum", "average"):
        values = [float(one[column]) for one in _like(rows, row, same)]
        return repr(sum(values) if name == "sum" else statistics.fmean(values))
    # The cells, with bars, of another column in the rows with the largest or smallest value.
    other, *same = same
    among = _like(rows, row, same)
    most = {"max": max, "min": min}[name](float(one[column]) for one in among)
    return "|".join(one[other] for one in among if float(one[column]) == most)


ROWS: dict[str, Callable[[random.Random, int], Row]] = {
    "orders": lambda draw, number: {
        "Order": str(10_001 + number),
        "Customer": _name(draw),
        "City": draw.choice(_CITIES),
        "Date": _day(draw),
        "Amount": f"{draw.randint(500, 9_999_999) / 100:.2f}",
        "Status": draw.choice(["shipped", "pending", "returned", "cancelled"]),
    },
    "employees": lambda draw, number: {
        "Employee ID": f"E{number + 1:05}",
        "Name": f"{draw.choice(_FIRST)} {draw.choice(_LAST)}-{number + 1}",
        "Department": draw.choice(["Sales", "Finance", "Research", "Support", "Legal"]),
        "Office": draw.choice(_CITIES),
        "Salary": str(draw.randint(25_000, 180_000)),
        "Hired": _day(draw),
    },
    "loans": lambda draw, number: {
        "Loan": str(500_001 + number),
        "Title": draw.choice(_BOOKS),
        "Member": _name(draw),
        "Branch": draw.choice(_CITIES),
        "Days": str(draw.randint(1, 60_000)),
        "Fine": f"{draw.randint(0, 2_000_000) / 100:.2f}",
    },
    "sensors": lambda draw, number: {
        "Reading": f"R-{number + 1:06}",
        "Sensor": f"S{draw.randint(1, 40)}",
        "Room": draw.choice(["Kitchen", "Attic", "Cellar", "Garage", "Hall", "Office"]),
        "Day": _day(draw),
        "Temperature": f"{draw.randint(-20_000, 45_000) / 1_000:.3f}",
        "Battery": draw.choice(["full", "half", "low", "empty"]),
    },
}
KINDS = ("names", "extremes", "counts", "sums")
# Of each line a subject, a kind, a pattern of a row's cells, and the operation that answers it.
QUESTIONS = pathlib.Path(__file__).with_suffix(".txt")


def made_rows(name: str, number: int, draw: random.Random) -> list[Row]:
    """So many rows of one of the subjects."""
    return [ROWS[name](draw, index) for index in range(number)]


def long_table(name: str, num_rows: int) -> Table:
    """A table of one of the subjects."""
    return Table.of(made_rows(name, num_rows, random.Random(name)), name)


def asked(name: str, rows: Sequence[Row], number: int, draw: random.Random) -> list[Asked]:
    """So many questions of each kind about some rows of a subject."""
    lines = [line.split(" | ") for line in QUESTIONS.read_text(encoding="utf-8").splitlines()]
    result = []
    for kind in KINDS:
        patterns = itertools.cycle(line[2:] for line in lines if line[:2] == [name, kind])
        for pattern, operation in itertools.islice(patterns, number):
            row = draw.choice(rows)
            text = pattern.format_map(row)
            result.append(Asked(kind, text, answer(operation, rows, row)))
    return result


def is_right(answer: str, expected: str) -> bool:
    """Whether an answer is one of the expected texts, or its number to a hundredth."""
    try:
        return abs(float(answer) - float(expected)) <= 0.01 + 1e-9 * abs(float(expected))
    except ValueError:
        return answer in expected.split("|")


def _answers() -> Iterator[tuple[str, bool, bool, float]]:
    """The kind of each question, whether it is of a whole table, right, and its CPU seconds."""
    import mate_tf

    model = mate_tf.from_pretrained()
    number = -(-_QUESTIONS.value // len(ROWS))
    for name in ROWS:
        draw = random.Random(f"{name} {_SEED.value}")
        rows = made_rows(name, _ROWS.value, draw)
        for part in (rows, draw.sample(rows, _FEW)):
            table = Table.of(part, name)
            for one in asked(name, part, number, draw):
                start = time.process_time()
                found = model.answer(table, one.text)
                seconds = time.process_time() - start
                right = is_right(found.text, one.answer)
                if part is rows:
                    assert f" of {len(rows):,} rows" in found.coverage, found
                if not right:
                    got = f"{found.text[:60]!r}, not {one.answer!r}"
                    print(f"  {len(part)} rows: {one.text} {got}")
                yield one.kind, part is rows, right, seconds


def main(_: list[str]) -> None:
    answers = list(_answers())
    for kind in KINDS:
        for whole in (True, False):
            chosen = [one for one in answers if one[0] == kind and one[1] == whole]
            num_right = sum(one[2] for one in chosen)
            seconds = [one[3] for one in chosen]
            print(
                f"{kind}, {_ROWS.value if whole else _FEW} rows: {num_right} of {len(chosen)} "
                f"right, {statistics.median(seconds):.2f} CPU s, at most {max(seconds):.2f}"
            )
    print(f"memory: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024} MB")


if __name__ == "__main__":
    app.run(main)
