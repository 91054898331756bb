r"""Asks about tables of tens of thousands of rows, and the same about 100 of their rows.

    python -m experiments.benchmarks.chosen_rows --rows=50000 --questions=50

Four tables are made up (orders, employees, loans of a library, readings of sensors), and so many
questions of each kind are asked: names, extremes, counts and sums. Prints for each kind how many
are right about the whole tables and about 100 rows each, the CPU seconds of an answer after the
first one, and the process's memory. The questions are made by patterns, with the answers that the
cells say; no other program uses them.
"""

import itertools
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


class Subject(NamedTuple):
    """A table that is made up, and what is asked about it.

    The questions of a kind are patterns of a row's cells, each with the function that answers them
    from all rows and this one.
    """

    row: Callable[[random.Random, int], Row]
    questions: dict[str, dict[str, Callable[[Sequence[Row], Row], str]]]


class Asked(NamedTuple):
    """A question with its right answer."""

    kind: str
    text: str
    answer: str


def _day(draw: random.Random) -> str:
    return f"20{draw.randint(18, 24)}-{draw.randint(1, 12):02}-{draw.randint(1, 28):02}"


def _name(draw: random.Random) -> str:
    return f"{draw.choice(_FIRST)} {draw.choice(_LAST)}"


def _cell(column: str) -> Callable[[Sequence[Row], Row], str]:
    return lambda rows, row: row[column]


def _at_end(end: Callable, by: str, column: str, *same: str) -> Callable[[Sequence[Row], Row], str]:
    """The cells, with bars, in the rows with the largest or smallest value of another column."""

    def answer(rows: Sequence[Row], row: Row) -> str:
        among = _like(rows, row, same)
        most = end(float(one[by]) for one in among)
        return "|".join(one[column] for one in among if float(one[by]) == most)

    return answer


def _like(rows: Sequence[Row], row: Row, same: Sequence[str]) -> list[Row]:
    return [other for other in rows if all(other[name] == row[name] for name in same)]


def _count(*same: str) -> Callable[[Sequence[Row], Row], str]:
    return lambda rows, row: str(len(_like(rows, row, same)))


def _count_beyond(column: str, sign: int) -> Callable[[Sequence[Row], Row], str]:
    return lambda rows, row: str(
        sum(sign * float(other[column]) > sign * float(row[column]) for other in rows)
    )


def _sum(column: str, *same: str) -> Callable[[Sequence[Row], Row], str]:
    return lambda rows, row: repr(sum(float(other[column]) for other in _like(rows, row, same)))


def _average(column: str, *same: str) -> Callable[[Sequence[Row], Row], str]:
    return lambda rows, row: repr(
        statistics.fmean(float(other[column]) for other in _like(rows, row, same))
    )


SUBJECTS = {
    "orders": Subject(
        lambda draw, number: {
            "Order": str(10_001 + number),
            "Customer": _name(draw),
            "City": draw.choice(_CITIES),
            "Date": _day(draw),
            "Amount": f"{draw.randint(500, 9_999_999) / 100:.2f}",
            "Status": draw.choice(["shipped", "pending", "returned", "cancelled"]),
        },
        {
            "names": {
                "who is the customer of order {Order}?": _cell("Customer"),
                "what is the status of order {Order}?": _cell("Status"),
                "which city did order {Order} go to?": _cell("City"),
            },
            "extremes": {
                "which order has the highest amount?": _at_end(max, "Amount", "Order"),
                "which order from {City} has the lowest amount?": _at_end(
                    min, "Amount", "Order", "City"
                ),
                "who is the customer of the {Status} order with the highest amount?": _at_end(
                    max, "Amount", "Customer", "Status"
                ),
            },
            "counts": {
                "how many orders are from {City}?": _count("City"),
                "how many orders are {Status}?": _count("Status"),
                "how many orders from {City} are {Status}?": _count("City", "Status"),
                "how many orders have an amount of more than {Amount}?": _count_beyond("Amount", 1),
            },
            "sums": {
                "what is the total amount of orders from {City}?": _sum("Amount", "City"),
                "what is the average amount of {Status} orders?": _average("Amount", "Status"),
                "what is the total amount of {Status} orders from {City}?": _sum(
                    "Amount", "City", "Status"
                ),
            },
        },
    ),
    "employees": Subject(
        lambda draw, number: {
            "Employee ID": f"E{number + 1:05}",
            "Name": f"{draw.choice(_FIRST)} {draw.choice(_LAST)}-{number + 1}",
            "Department": draw.choice(["Sales", "Finance", "Research", "Support", "Legal"]),
            "Office": draw.choice(_CITIES),
            "Salary": str(draw.randint(25_000, 180_000)),
            "Hired": _day(draw),
        },
        {
            "names": {
                "what is the salary of {Name}?": _cell("Salary"),
                "which department does {Name} work in?": _cell("Department"),
                "what is the name of employee {Employee ID}?": _cell("Name"),
            },
            "extremes": {
                "who has the highest salary?": _at_end(max, "Salary", "Name"),
                "who has the lowest salary in {Department}?": _at_end(
                    min, "Salary", "Name", "Department"
                ),
                "who has the highest salary in the {Office} office?": _at_end(
                    max, "Salary", "Name", "Office"
                ),
            },
            "counts": {
                "how many employees work in {Department}?": _count("Department"),
                "how many employees are in the {Office} office?": _count("Office"),
                "how many employees earn more than {Salary}?": _count_beyond("Salary", 1),
            },
            "sums": {
                "what is the total salary of the {Department} department?": _sum(
                    "Salary", "Department"
                ),
                "what is the average salary in the {Office} office?": _average("Salary", "Office"),
            },
        },
    ),
    "loans": Subject(
        lambda draw, number: {
            "Loan": str(500_001 + number),
            "Title": draw.choice(_BOOKS),
            "Member": _name(draw),
            "Branch": draw.choice(_CITIES),
            "Days": str(draw.randint(1, 60_000)),
            "Fine": f"{draw.randint(0, 2_000_000) / 100:.2f}",
        },
        {
            "names": {
                "which member took loan {Loan}?": _cell("Member"),
                "what is the title of loan {Loan}?": _cell("Title"),
            },
            "extremes": {
                "which loan has the highest fine?": _at_end(max, "Fine", "Loan"),
                "which loan has the most days?": _at_end(max, "Days", "Loan"),
                "which loan of {Title} has the highest fine?": _at_end(
                    max, "Fine", "Loan", "Title"
                ),
            },
            "counts": {
                "how many loans of {Title} are there?": _count("Title"),
                "how many loans did the {Branch} branch have?": _count("Branch"),
                "how many loans have fewer than {Days} days?": _count_beyond("Days", -1),
            },
            "sums": {
                "what is the total fine of {Title}?": _sum("Fine", "Title"),
                "what is the sum of the fines at the {Branch} branch?": _sum("Fine", "Branch"),
            },
        },
    ),
    "sensors": Subject(
        lambda draw, number: {
            "Reading": f"R-{number + 1:06}",
            "Sensor": f"S{draw.randint(1, 40)}",
            "Room": draw.choice(["Kitchen", "Attic", "Cellar", "Garage", "Hall", "Office"]),
            "Day": _day(draw),
            "Temperature": f"{draw.randint(-20_000, 45_000) / 1_000:.3f}",
            "Battery": draw.choice(["full", "half", "low", "empty"]),
        },
        {
            "names": {
                "in which room was reading {Reading}?": _cell("Room"),
                "what was the temperature of reading {Reading}?": _cell("Temperature"),
            },
            "extremes": {
                "which reading had the highest temperature?": _at_end(
                    max, "Temperature", "Reading"
                ),
                "which reading in the {Room} had the lowest temperature?": _at_end(
                    min, "Temperature", "Reading", "Room"
                ),
            },
            "counts": {
                "how many readings are from the {Room}?": _count("Room"),
                "how many readings had a battery that is {Battery}?": _count("Battery"),
                "how many readings are from sensor {Sensor}?": _count("Sensor"),
            },
            "sums": {
                "what is the average temperature in the {Room}?": _average("Temperature", "Room"),
                "what is the average temperature of sensor {Sensor}?": _average(
                    "Temperature", "Sensor"
                ),
            },
        },
    ),
}
KINDS = ("names", "extremes", "counts", "sums")


def made_rows(name: str, number: int, draw: random.Random) -> list[Row]:
    """So many rows of one of the subjects."""
    return [SUBJECTS[name].row(draw, index) for index in range(number)]


def long_table(name: str, num_rows: int) -> Table:
    """A table of one of the subjects."""
    return Table.of(made_rows(name, num_rows, random.Random(name)), name)


def asked(subject: Subject, rows: Sequence[Row], number: int, draw: random.Random) -> list[Asked]:
    """So many questions of each kind about some rows."""
    result = []
    for kind in KINDS:
        patterns = itertools.cycle(subject.questions[kind].items())
        for pattern, answer in itertools.islice(patterns, number):
            row = draw.choice(rows)
            result.append(Asked(kind, pattern.format_map(row), answer(rows, row)))
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
    number = -(-_QUESTIONS.value // len(SUBJECTS))
    for name, subject in SUBJECTS.items():
        draw = random.Random(f"{name} {_SEED.value}")
        rows = made_rows(name, _ROWS.value, draw)
        for part in (rows, draw.sample(rows, _FEW)):
            table = Table.of(part, name)
            for one in asked(subject, part, number, draw):
                start = time.process_time()
                answer = model.answer(table, one.text)
                seconds = time.process_time() - start
                right = is_right(answer.text, one.answer)
                if part is rows:
                    assert f" of {len(rows):,} rows" in answer.coverage, answer
                if not right:
                    print(
                        f"  {len(part)} rows: {one.text} {answer.text[:60]!r}, not {one.answer!r}"
                    )
                yield one.kind, part is rows, right, seconds


def main(_: list[str]) -> None:
    answers = list(_answers())
    for kind in KINDS:
        for whole in (True, False):
            of_kind = [one for one in answers if one[0] == kind and one[1] == whole]
            num_right = sum(one[2] for one in of_kind)
            seconds = [one[3] for one in of_kind]
            print(
                f"{kind}, {_ROWS.value if whole else _FEW} rows: {num_right} of {len(of_kind)} "
                f"right, {statistics.median(seconds):.2f} CPU s, at most {max(seconds):.2f}"
            )
    print(f"memory: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024} MB")


if __name__ == "__main__":
    app.run(main)
