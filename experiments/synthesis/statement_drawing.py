"""Draws true statements of each operation from a table, and puts statements in English."""

import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from experiments.synthesis import WORDS
from experiments.synthesis.statement_execution import (
    AGGREGATIONS,
    COMPARATORS,
    Aggregate,
    Aggregation,
    Comparator,
    Condition,
    Constant,
    Count,
    Difference,
    Expression,
    Select,
    Statement,
    UndefinedError,
    evaluate,
    execute,
    operation_of,
    selected_rows,
    variants,
)
from experiments.synthesis.typed_table import (
    Kind,
    NotDrawnError,
    TypedTable,
    draw_often,
    need,
    pick,
)

_UNEQUAL: tuple[Comparator, ...] = ("greater", "less")
_EXTREMES: tuple[Aggregation, ...] = ("minimum", "maximum")
_BY_ORDER: tuple[Aggregation, ...] = ("first", "last")
_ATTEMPTS = 30
_COUNTS_DRAWN = 6
_SHARE_OF_EQUALITIES = 0.7
_SHARE_OF_FILTERED = 0.4
_SHARE_OF_SECOND_CONDITIONS = 0.15

# Of "counts of all", {1} rows meet the conditions {0}, or have the names and values {2}.
_WORDS = WORDS["statements"]


def draw_true(operation: str, table: TypedTable, rng: random.Random) -> Statement | None:
    """A true statement of one of OPERATIONS; None if none was found."""

    def draw() -> Statement | None:
        drawn = _DRAWERS[operation](table, rng)
        statement = drawn if isinstance(drawn, Statement) else _about(drawn, table, rng)
        is_wanted = operation_of(statement) == operation and execute(statement, table)
        return statement if is_wanted else None

    return draw_often(_ATTEMPTS, draw)


def _comparison(table: TypedTable, rng: random.Random) -> Statement:
    column = pick(table.select("number", "date"), rng)
    left = _select(column, table, rng)
    if rng.random() < 0.5:
        return _ordered(left, _select(column, table, rng), table, rng)
    return _ordered(left, Constant(rng.choice(table.columns[column].cells)), table, rng)


def _count(table: TypedTable, rng: random.Random) -> Count:
    """Counts rows; its value is drawn among those of several counts, most of which are 1."""
    by_value: dict[int, Count] = {}
    for _ in range(_COUNTS_DRAWN):
        count = Count(_conditions(table, rng))
        by_value.setdefault(len(selected_rows(count.conditions, table)), count)
    return by_value[rng.choice(sorted(by_value))]


def _aggregate(aggregation: Aggregation, table: TypedTable, rng: random.Random) -> Aggregate:
    kinds: tuple[Kind, ...] = ("number", "date") if aggregation in _EXTREMES else ("number",)
    column = pick(table.select(*(() if aggregation in _BY_ORDER else kinds)), rng)
    if rng.random() < _SHARE_OF_FILTERED:
        return Aggregate(aggregation, column, _conditions(table, rng, but=column))
    return Aggregate(aggregation, column)


def _difference(table: TypedTable, rng: random.Random) -> Difference:
    column = pick(table.select("number"), rng)
    return Difference(_select(column, table, rng), _select(column, table, rng))


def _selection_of_extreme(table: TypedTable, rng: random.Random) -> Statement:
    by = pick(table.select("number", "date"), rng)
    column = pick(table.select(but=by), rng)
    extreme = Aggregate(rng.choice(_EXTREMES), by)
    return _equal(Select(column, (Condition(by, "equal", extreme),)), table)


def _aggregate_beside_average(table: TypedTable, rng: random.Random) -> Aggregate:
    condition = _beside_average(table, rng)
    aggregation = rng.choice(AGGREGATIONS)
    column = pick(table.select("number", but=condition.column), rng)
    return Aggregate(aggregation, column, (condition,))


def _range(table: TypedTable, rng: random.Random) -> Difference:
    column = pick(table.select("number"), rng)
    return Difference(Aggregate("maximum", column), Aggregate("minimum", column))


def _two_aggregates(table: TypedTable, rng: random.Random) -> Statement:
    left = _aggregate(rng.choice(AGGREGATIONS), table, rng)
    # With the same aggregation: no table is needed to say that a maximum is above the minimum.
    aggregates = (other for other in variants(left, table) if isinstance(other, Aggregate))
    others = [other for other in aggregates if other.aggregation == left.aggregation]
    return _ordered(left, pick(others, rng), table, rng)


def _cell_beside_aggregate(table: TypedTable, rng: random.Random) -> Statement:
    column = pick(table.select("number"), rng)
    return _ordered(_select(column, table, rng), Aggregate("average", column), table, rng)


# Draws a statement, or an expression to be compared with a constant.
_Drawer = Callable[[TypedTable, random.Random], Statement | Expression]
_DRAWERS: dict[str, _Drawer] = {
    "selection": lambda table, rng: _equal(_select(pick(table.select(), rng), table, rng), table),
    "comparison": _comparison,
    "count": _count,
    **{aggregation: partial(_aggregate, aggregation) for aggregation in AGGREGATIONS},
    "difference": _difference,
    "nesting": lambda table, rng: rng.choice(_NESTINGS)(table, rng),
}
_NESTINGS: tuple[_Drawer, ...] = (
    _selection_of_extreme,
    lambda table, rng: Count((_beside_average(table, rng),)),
    _aggregate_beside_average,
    _range,
    _two_aggregates,
    lambda table, rng: _ordered(_count(table, rng), _count(table, rng), table, rng),
    _cell_beside_aggregate,
)


def _equal(left: Expression, table: TypedTable) -> Statement:
    return Statement(left, "equal", Constant(_constant_text(left, table)))


def _about(left: Expression, table: TypedTable, rng: random.Random) -> Statement:
    """Compares an expression with a constant: its value, or one that a variant of it has."""
    if rng.random() < _SHARE_OF_EQUALITIES:
        return _equal(left, table)
    other = pick(list(variants(left, table)), rng)
    return _ordered(left, Constant(_constant_text(other, table)), table, rng)


def _ordered(
    left: Expression, right: Expression, table: TypedTable, rng: random.Random
) -> Statement:
    """Two expressions with the comparator that makes a true statement of them."""
    need(left != right)
    if rng.random() < 0.5 and not isinstance(right, Constant):
        left, right = right, left
    for comparator in COMPARATORS:
        statement = Statement(left, comparator, right)
        is_stated = comparator == "equal" and isinstance(right, Constant)  # told by `_equal`
        if not is_stated and execute(statement, table):
            return statement
    raise NotDrawnError("expected two expressions that compare")


def _select(column: int, table: TypedTable, rng: random.Random) -> Select:
    """Selects the value of a random row, by its value in another column or two."""
    row = rng.randrange(table.num_rows)
    others = table.select(but=column)
    by = [pick(others, rng)]
    others.remove(by[0])
    if others and rng.random() < _SHARE_OF_SECOND_CONDITIONS:
        by.append(rng.choice(others))
    return Select(column, tuple(_has_cell(key, row, table) for key in by))


def _has_cell(column: int, row: int, table: TypedTable) -> Condition:
    need(table.has_values((row,), column))
    return Condition(column, "equal", Constant(table.columns[column].cells[row]))


def _conditions(
    table: TypedTable, rng: random.Random, but: int | None = None
) -> tuple[Condition, ...]:
    """One or two conditions with a random row's cells, without those of the column `but`."""
    columns = table.select(but=but)
    number = 1 + (rng.random() < _SHARE_OF_SECOND_CONDITIONS)
    row = rng.randrange(table.num_rows)
    need(len(columns) > 0)
    conditions = []
    for column in rng.sample(columns, min(number, len(columns))):
        condition = _has_cell(column, row, table)
        if table.columns[column].kind != "text" and rng.random() < 0.7:
            condition = replace(condition, comparator=rng.choice(_UNEQUAL))
        conditions.append(condition)
    return tuple(conditions)


def _beside_average(table: TypedTable, rng: random.Random) -> Condition:
    column = pick(table.select("number"), rng)
    return Condition(column, rng.choice(_UNEQUAL), Aggregate("average", column))


def _constant_text(expression: Expression, table: TypedTable) -> str:
    """The value of an expression as a statement gives it: a cell's text, or a number."""
    value = evaluate(expression, table)
    match expression:
        case Select(index) | Aggregate("minimum" | "maximum" | "first" | "last", index):
            column = table.columns[index]
            return next(c for c, v in zip(column.cells, column.values, strict=True) if v == value)
    if not isinstance(value, float):
        raise UndefinedError("expected a number")
    return f"{value:.2f}".rstrip("0").rstrip(".")


def verbalize(statement: Statement, table: TypedTable, rng: random.Random) -> str:
    """A statement in English, with the names and cells of the table, where columns have names."""
    return _Wording(table, rng).statement(statement)


@dataclass(frozen=True)
class _Wording:
    table: TypedTable
    rng: random.Random

    def statement(self, statement: Statement) -> str:
        left, right = statement.sides
        match left, right:
            case Count(conditions), Constant(text) if conditions and self.rng.random() < 0.5:
                return self._there_are(conditions, statement.comparator, text)
        kinds = [self._kind(side) for side in (left, right)]
        kind: Kind = "date" if "date" in kinds else kinds[0]
        verb = self.rng.choice(_WORDS["comparators"][kind][statement.comparator])
        return f"{self._expression(left)} {verb} {self._expression(right)}"

    def _there_are(
        self, conditions: tuple[Condition, ...], comparator: Comparator, number: str
    ) -> str:
        chosen = " and ".join(map(self._condition, conditions))
        having = self._having(conditions)
        forms = _WORDS["counts of all"][comparator]
        form = self.rng.choice(forms if having else forms[:1])
        where = self.rng.choice(_WORDS["where"][:2])
        return form.format(f"{where} {chosen}", number, having)

    def _having(self, conditions: tuple[Condition, ...]) -> str:
        """Conditions as what rows have, "Country Peru"; "" if one does not equal a constant."""
        texts = []
        for condition in conditions:
            if condition.comparator != "equal" or not isinstance(condition.operand, Constant):
                return ""
            texts.append(f"{self._name(condition.column)} {condition.operand.text}")
        return " and ".join(texts)

    def _expression(self, expression: Expression) -> str:
        match expression:
            case Constant(text):
                return text
            case Select(column, conditions):
                return self._select(self._name(column), conditions)
            case Aggregate(aggregation, column, conditions):
                is_date = self.table.columns[column].kind == "date"
                words = _WORDS["aggregates"] | (_WORDS["aggregates of dates"] if is_date else {})
                phrase = self.rng.choice(words[aggregation]).format(self._name(column))
                return self._where(phrase, conditions)
            case Count(conditions):
                return self._where(self.rng.choice(_WORDS["counts"]), conditions)
            case Difference(left, right):
                form = self.rng.choice(_WORDS["differences"])
                return form.format(self._expression(left), self._expression(right))
        raise AssertionError(expression)

    def _select(self, name: str, conditions: tuple[Condition, ...]) -> str:
        match conditions:
            case (Condition(_, "equal", Constant(text)),) if self._is_entity(text):
                form = self.rng.choice(("the {0} of {1}", "the {0} for {1}", ""))
                if form:
                    return form.format(name, text)
        return self._where(f"the {name}", conditions)

    def _is_entity(self, text: str) -> bool:
        """Whether a text is a cell of one column alone, a column of texts, so it needs no name."""
        columns = [column for column in self.table.columns if text in column.cells]
        return len(columns) == 1 and columns[0].kind == "text"

    def _where(self, phrase: str, conditions: tuple[Condition, ...]) -> str:
        if not conditions:
            return phrase
        where = self.rng.choice(_WORDS["where"])
        return f"{phrase} {where} {' and '.join(map(self._condition, conditions))}"

    def _condition(self, condition: Condition) -> str:
        column, comparator, operand = condition.column, condition.comparator, condition.operand
        name, kind = self._name(column), self.table.columns[column].kind
        match comparator, operand:
            case "equal", Aggregate("minimum" | "maximum" as extreme, of, ()) if of == column:
                # Such as "Points is the highest": "minimum" needs a noun.
                name_of = "aggregates of dates" if kind == "date" else "aggregates"
                form = self.rng.choice(_WORDS[name_of][extreme][:2])
                return f"{name} is {form.removesuffix(' {}')}"
        verb = "is" if kind == "text" else self.rng.choice(_WORDS["comparators"][kind][comparator])
        return f"{name} {verb} {self._expression(operand)}"

    def _kind(self, expression: Expression) -> Kind:
        """The kind of an expression's value; a constant and what is computed count as numbers."""
        match expression:
            case Select(column) | Aggregate(_, column):
                return self.table.columns[column].kind
        return "number"

    def _name(self, column: int) -> str:
        return self.table.columns[column].name
