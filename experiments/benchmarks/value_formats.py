"""Whether the default model's answers depend on how numbers and dates are written.

The same random tables are asked in every format: 4 to 7 cities with revenues from 10 to a million,
and the same with dates of 2024.

    python -m experiments.benchmarks.value_formats
"""

import datetime
import random
from collections.abc import Callable

from absl import app, flags

from mate_tf import Question, Table
from mate_tf.answers.answer import Answer
from mate_tf.command_line.arguments import find_model

_TABLES = flags.DEFINE_integer("tables", 60, "how many tables are asked about in each format", 1)
_SEED = flags.DEFINE_integer("seed", 1, "the seed of the tables")
_MODEL = flags.DEFINE_string("model", None, "another model, as --model of mate-tf ask")

CITIES = "Lima Quito Oslo Cairo Perth Turin Lagos Seoul Bergen Nairobi Austin Kyoto".split()


def _grouped(value: float, group: str, point: str) -> str:
    return f"{value:,.2f}".translate({ord(","): group, ord("."): point})


def _indian(value: float) -> str:
    whole, cents = f"{value:.2f}".split(".")
    head, tail = whole[:-3], whole[-3:]
    groups = [head[max(end - 2, 0) : end] for end in range(len(head), 0, -2)][::-1]
    return ",".join([*groups, tail]) + f".{cents}"


def _short(value: float) -> str:
    return f"${value / 1e6:.3f}M" if value >= 1e5 else f"${value / 1e3:.5f}K"


NUMBERS: dict[str, Callable[[float], str]] = {
    "1234.56": "{:.2f}".format,
    "1,234.56": "{:,.2f}".format,
    "1.234,56": lambda value: _grouped(value, ".", ","),
    "1 234,56": lambda value: _grouped(value, " ", ","),
    "1'234.56": lambda value: _grouped(value, "'", "."),
    "12,34,567.89": _indian,
    "$1,234.56": "${:,.2f}".format,
    "1.234,56 €": lambda value: _grouped(value, ".", ",") + " €",
    "(1,234.56)": "{:,.2f}".format,
    "$0.123M": _short,
    "1234.56 USD": "{:.2f} USD".format,
}
DATES: dict[str, str] = {
    "2024-01-31": "%Y-%m-%d",
    "31/01/2024": "%d/%m/%Y",
    "01/31/2024": "%m/%d/%Y",
    "31.01.2024": "%d.%m.%Y",
    "31 Jan 2024": "%d %b %Y",
    "January 31, 2024": "%B %d, %Y",
    "31-Jan-24": "%d-%b-%y",
    "2024-01-31T10:30:00": "%Y-%m-%dT10:30:00",
    "31/01/2024 10:30": "%d/%m/%Y 10:30",
}


def tables(number: int, seed: int) -> list[tuple[list[str], list[float], list[datetime.date]]]:
    """Cities, amounts and dates of random tables."""
    random_ = random.Random(seed)
    found = []
    for _ in range(number):
        cities = random_.sample(CITIES, random_.randint(4, 7))
        amounts = [round(10 ** random_.uniform(1, 6), 2) for _ in cities]
        days = random_.sample(range(366), len(cities))
        dates = [datetime.date(2024, 1, 1) + datetime.timedelta(day) for day in days]
        found.append((cities, amounts, dates))
    return found


def main(_: list[str]) -> None:
    from mate_tf import from_pretrained

    predictor = from_pretrained(find_model(_MODEL.value))

    def right(header: str, columns: list[list[str]], question: str, best: list[int]) -> int:
        asked = [
            Table.from_rows(zip(cities, column, strict=True), header=["City", header])
            for (cities, _, _), column in zip(made, columns, strict=True)
        ]
        found = predictor.answer_all((table, Question(question)) for table in asked)
        return sum(
            isinstance(answer, Answer) and answer.text in table.rows[row][:2]
            for (table, _, answer), row in zip(found, best, strict=True)
        )

    made = tables(_TABLES.value, _SEED.value)
    print(f"right of {len(made)}\n\n| revenue | highest | lowest |\n|---|---|---|")
    for name, write in NUMBERS.items():
        sign = -1 if name.startswith("(") else 1
        columns = [[write(amount) for amount in amounts] for _, amounts, _ in made]
        if sign < 0:
            columns = [[f"({text})" for text in column] for column in columns]
        counts = []
        for word, pick in (("highest", max), ("lowest", min)):
            best = [
                pick(range(len(amounts)), key=[sign * amount for amount in amounts].__getitem__)
                for _, amounts, _ in made
            ]
            question = f"which city has the {word} revenue?"
            counts.append(right("Revenue", columns, question, best))
        print(f"| {name} | {counts[0]} | {counts[1]} |", flush=True)
    print("\n| date | latest | earliest |\n|---|---|---|")
    for name, form in DATES.items():
        columns = [[date.strftime(form) for date in dates] for _, _, dates in made]
        counts = []
        for word, pick in (("latest", max), ("earliest", min)):
            best = [pick(range(len(dates)), key=dates.__getitem__) for _, _, dates in made]
            counts.append(right("Date", columns, f"what is the {word} date?", best))
        print(f"| {name} | {counts[0]} | {counts[1]} |", flush=True)


if __name__ == "__main__":
    app.run(main)
