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
    "(1,234.56)": "({:,.2f})".format,  # below zero
    "$0.123M": _short,
    "1234.56 USD": "{:.2f} USD".format,
}
DATES: dict[str, Callable[[datetime.date], str]] = {
    "2024-01-31": "{:%Y-%m-%d}".format,
    "31/01/2024": "{:%d/%m/%Y}".format,
    "01/31/2024": "{:%m/%d/%Y}".format,
    "31.01.2024": "{:%d.%m.%Y}".format,
    "31 Jan 2024": "{:%d %b %Y}".format,
    "January 31, 2024": "{:%B %d, %Y}".format,
    "31-Jan-24": "{:%d-%b-%y}".format,
    "2024-01-31T10:30:00": "{:%Y-%m-%dT10:30:00}".format,
    "31/01/2024 10:30": "{:%d/%m/%Y 10:30}".format,
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
    cities, amounts, dates = zip(*tables(_TABLES.value, _SEED.value), strict=True)
    print(f"right of {len(cities)}")
    for header, most, least, question, values, formats in (
        ("Revenue", "highest", "lowest", "which city has the {} revenue?", amounts, NUMBERS),
        ("Date", "latest", "earliest", "what is the {} date?", dates, DATES),
    ):
        print(f"\n| {header.lower()} | {most} | {least} |\n|---|---|---|")
        for name, write in formats.items():
            asked = [
                Table.from_rows(
                    zip(names, map(write, column), strict=True), header=["City", header]
                )
                for names, column in zip(cities, values, strict=True)
            ]
            counts = []
            for word, pick in ((most, max), (least, min)):
                if name.startswith("("):
                    pick = min if pick is max else max
                best = [pick(range(len(column)), key=column.__getitem__) for column in values]
                text = Question(question.format(word))
                found = predictor.answer_all((table, text) for table in asked)
                right = (
                    isinstance(answer, Answer) and answer.text in table.rows[row][:2]
                    for (table, _, answer), row in zip(found, best, strict=True)
                )
                counts.append(sum(right))
            print(f"| {name} | {counts[0]} | {counts[1]} |", flush=True)


if __name__ == "__main__":
    app.run(main)
