"""Writes train.jsonl and dev.jsonl from the tables beside this file and plan.json.

The plan says which rows and values of each table the questions ask about. The answers, their cells
and numbers are looked up here, so they cannot differ from the tables. Run it after changing a table
or the plan:

    python experiments/demo_data/make_questions.py
"""

import csv
import dataclasses
import fractions
import functools
import json
import pathlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

HERE = pathlib.Path(__file__).resolve().parent
SPLITS = ("train", "dev")
Cell = tuple[int, int]


@dataclasses.dataclass(frozen=True)
class PlannedTable:
    """A table with the words that its questions use; key is the column that names the rows."""

    name: str
    header: list[str]
    rows: list[list[str]]
    key: str
    noun: str
    plural: str
    of_key: str
    phrases: dict[str, dict[str, str]]

    def cells_with(self, column: str, value: str) -> list[Cell]:
        """The (row, column) pairs of the cells of one column that hold the value."""
        index = self.header.index(column)
        cells = [(row, index) for row, texts in enumerate(self.rows) if texts[index] == value]
        if not cells:
            raise ValueError(f"expected {value!r} in column {column!r}, got none ({self.name}.csv)")
        return cells

    def row_of(self, key: str) -> int:
        """The row that the key names."""
        cells = self.cells_with(self.key, key)
        if len(cells) > 1:
            raise ValueError(f"expected one row {key!r}, got {len(cells)} ({self.name}.csv)")
        return cells[0][0]

    def in_column(self, rows: Sequence[int], column: str) -> list[Cell]:
        """The cells of one column in the given rows."""
        return [(row, self.header.index(column)) for row in rows]

    def texts(self, cells: Sequence[Cell]) -> list[str]:
        """What the cells hold."""
        return [self.rows[row][column] for row, column in cells]

    def condition(self, column: str, value: str) -> str:
        """How a question says that a column holds a value: "the period 2", "no rings"."""
        return self.phrases.get(column, {}).get(value, f"the {column.lower()} {value}")


def load_table(name: str, plan: dict[str, Any], directory: pathlib.Path = HERE) -> PlannedTable:
    """Reads NAME.csv; the plan gives the words."""
    with open(directory / f"{name}.csv", encoding="utf-8", newline="") as file:
        header, *rows = csv.reader(file)
    return PlannedTable(
        name=name,
        header=header,
        rows=rows,
        key=plan["key"],
        noun=plan["noun"],
        plural=plan["plural"],
        of_key=plan.get("of_key", "{}"),
        phrases=plan.get("phrases", {}),
    )


def look_up(table: PlannedTable, column: str, key: str) -> dict[str, Any]:
    """One cell, by its row's name and its column."""
    cells = table.in_column([table.row_of(key)], column)
    return selection(f"what is the {column.lower()} of {table.of_key.format(key)}?", table, cells)


def find(table: PlannedTable, column: str, value: str) -> dict[str, Any]:
    """The one row with a value, by name."""
    rows = [row for row, _ in table.cells_with(column, value)]
    if len(rows) > 1:
        raise ValueError(f"expected one {value!r}, got {len(rows)} ({table.name}.csv)")
    question = f"which {table.noun} has {table.condition(column, value)}?"
    return selection(question, table, table.in_column(rows, table.key))


def find_all(table: PlannedTable, column: str, value: str) -> dict[str, Any]:
    """All rows with a value, by name."""
    rows = [row for row, _ in table.cells_with(column, value)]
    question = f"which {table.plural} have {table.condition(column, value)}?"
    return selection(question, table, table.in_column(rows, table.key))


def selection(question: str, table: PlannedTable, cells: list[Cell]) -> dict[str, Any]:
    """A question that cells answer."""
    return {
        "question": question,
        "answers": table.texts(cells),
        "answer_coordinates": cells,
        "aggregation": "NONE",
    }


def count(table: PlannedTable, column: str, value: str) -> dict[str, Any]:
    """The number of cells with a value; the cells are those that hold it."""
    cells = table.cells_with(column, value)
    question = f"how many {table.plural} have {table.condition(column, value)}?"
    return computed(question, cells, "COUNT", fractions.Fraction(len(cells)))


def total(
    aggregation: str, table: PlannedTable, column: str, keys: list[str] | str
) -> dict[str, Any]:
    """The exact SUM or AVERAGE of a column over some rows, or over "all"."""
    if keys == "all":
        rows = list(range(len(table.rows)))
        asked = f"all {table.plural}"
    else:
        rows = [table.row_of(key) for key in keys]
        asked = " and ".join(table.of_key.format(key) for key in keys)
    question = f"what is the {aggregation.lower()} of the {column.lower()} of {asked}?"
    cells = table.in_column(rows, column)
    number = sum(map(fractions.Fraction, table.texts(cells)), fractions.Fraction())
    if aggregation == "AVERAGE":
        number /= len(cells)
    return computed(question, cells, aggregation, number)


def computed(
    question: str, cells: list[Cell], aggregation: str, value: fractions.Fraction
) -> dict[str, Any]:
    """A question that a number computed from cells answers."""
    number = int(value) if value.denominator == 1 else float(value)
    return {
        "question": question,
        "answers": [str(number)],
        "answer_coordinates": cells,
        "aggregation": aggregation,
        "answer_number": number,
    }


KINDS: dict[str, Callable[[PlannedTable, str, Any], dict[str, Any]]] = {
    "look_up": look_up,
    "find": find,
    "find_all": find_all,
    "count": count,
    "sum": functools.partial(total, "SUM"),
    "average": functools.partial(total, "AVERAGE"),
}


def make_questions(split: str, directory: pathlib.Path = HERE) -> Iterator[dict[str, Any]]:
    """The questions of one split, in the order of the plan."""
    plans = json.loads((directory / "plan.json").read_text(encoding="utf-8"))
    for name, plan in plans.items():
        table = load_table(name, plan, directory)
        asked = [
            KINDS[kind](table, column, item)
            for kind, columns in plan[split].items()
            for column, items in columns.items()
            for item in items
        ]
        for number, fields in enumerate(asked, start=1):
            yield {"id": f"{name}-{split}-{number:02d}", "table": f"{name}.csv", **fields}


def to_json_lines(questions: Iterator[dict[str, Any]]) -> str:
    """One JSON object a line."""
    return "".join(json.dumps(fields, ensure_ascii=False) + "\n" for fields in questions)


def main() -> None:
    for split in SPLITS:
        path = HERE / f"{split}.jsonl"
        path.write_text(to_json_lines(make_questions(split)), encoding="utf-8")
        print(f"{path}: {len(path.read_text(encoding='utf-8').splitlines())} questions")


if __name__ == "__main__":
    main()
