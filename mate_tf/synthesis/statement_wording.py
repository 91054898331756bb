"""Statements in English: a few wordings for each expression, drawn at random."""

import random

from mate_tf.synthesis.statement_execution import (
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
)
from mate_tf.synthesis.typed_table import Kind, TypedTable

_AGGREGATIONS: dict[Aggregation, tuple[str, ...]] = {
    "sum": ("the sum of {}", "the total {}", "the total of {}"),
    "average": ("the average {}", "the mean {}", "the average of {}"),
    "minimum": ("the lowest {}", "the smallest {}", "the minimum {}"),
    "maximum": ("the highest {}", "the largest {}", "the maximum {}"),
}
_OF_DATES: dict[Aggregation, tuple[str, ...]] = {
    "minimum": ("the earliest {}", "the first {}"),
    "maximum": ("the latest {}", "the last {}"),
}
_EXTREMES: dict[Aggregation, tuple[str, ...]] = {
    "minimum": ("the lowest", "the smallest"),
    "maximum": ("the highest", "the largest"),
}
_EXTREME_DATES: dict[Aggregation, tuple[str, ...]] = {
    "minimum": ("the earliest",),
    "maximum": ("the latest",),
}
_COMPARATORS = {
    "equal": ("is", "is equal to"),
    "greater": ("is greater than", "is more than", "is higher than"),
    "less": ("is less than", "is lower than", "is smaller than"),
}
_OF_DATES_COMPARED = {
    "equal": ("is",),
    "greater": ("is after", "is later than"),
    "less": ("is before", "is earlier than"),
}
_WHERE = ("when", "where", "for which")
_COUNTS = ("the number of rows", "the count of rows", "the number of entries")
# Of {1} rows that meet the conditions {0}, or have the names and values {2}.
_COUNTS_OF_ALL = {
    "equal": ("there are exactly {1} rows {0}", "exactly {1} of the rows have {2}"),
    "greater": ("there are more than {1} rows {0}", "more than {1} of the rows have {2}"),
    "less": ("there are fewer than {1} rows {0}", "fewer than {1} of the rows have {2}"),
}
_DIFFERENCES = ("the difference between {} and {}", "the gap between {} and {}")


def verbalize(statement: Statement, table: TypedTable, rng: random.Random) -> str:
    """A statement in English, of the names and the cells of the table and of its constants.

    Args:
        statement: the statement, whose columns have names.
        table: what it is about.
        rng: draws the wordings.
    """
    return _Wording(table, rng).statement(statement)


class _Wording:
    def __init__(self, table: TypedTable, rng: random.Random):
        self._table = table
        self._rng = rng

    def statement(self, statement: Statement) -> str:
        left, comparator, right = statement.left, statement.comparator, statement.right
        match left, right:
            case Count(conditions), Constant(text) if conditions and self._rng.random() < 0.5:
                return self._there_are(conditions, comparator, text)
        words = _COMPARATORS
        if self._kind(left) == "date" or self._kind(right) == "date":
            words = _OF_DATES_COMPARED
        elif self._kind(left) == "text":
            words = {"equal": ("is",)}
        verb = self._one_of(words[comparator])
        return f"{self._expression(left)} {verb} {self._expression(right)}"

    def _there_are(
        self, conditions: tuple[Condition, ...], comparator: Comparator, number: str
    ) -> str:
        """That so many rows meet conditions, with the number in front."""
        chosen = self._conditions(conditions)
        having = self._having(conditions)
        forms = _COUNTS_OF_ALL[comparator]
        form = self._one_of(forms if having else forms[:1])
        return form.format(f"{self._one_of(_WHERE[:2])} {chosen}", number, having)

    def _expression(self, expression: Expression) -> str:
        match expression:
            case Constant(text):
                return text
            case Select(column, conditions):
                return self._select(self._name(column), conditions)
            case Aggregate(aggregation, column, conditions):
                words = _OF_DATES if self._columns[column].kind == "date" else _AGGREGATIONS
                phrase = self._one_of(words[aggregation]).format(self._name(column))
                return self._where(phrase, conditions)
            case Count(conditions):
                return self._where(self._one_of(_COUNTS), conditions)
            case Difference(left, right):
                form = self._one_of(_DIFFERENCES)
                return form.format(self._expression(left), self._expression(right))
        raise AssertionError(expression)

    def _select(self, name: str, conditions: tuple[Condition, ...]) -> str:
        if len(conditions) == 1 and self._is_entity(conditions[0]):
            form = self._one_of(("the {0} of {1}", "the {0} for {1}", ""))
            if form:
                operand = conditions[0].operand
                assert isinstance(operand, Constant)
                return form.format(name, operand.text)
        return self._where(f"the {name}", conditions)

    def _is_entity(self, condition: Condition) -> bool:
        """Whether a condition names a text that is in no other column, so that it stands alone."""
        operand = condition.operand
        if not isinstance(operand, Constant) or condition.comparator != "equal":
            return False
        columns = [column for column in self._columns if operand.text in column.cells]
        return len(columns) == 1 and columns[0].kind == "text"

    def _where(self, phrase: str, conditions: tuple[Condition, ...]) -> str:
        if not conditions:
            return phrase
        return f"{phrase} {self._one_of(_WHERE)} {self._conditions(conditions)}"

    def _conditions(self, conditions: tuple[Condition, ...]) -> str:
        return " and ".join(map(self._condition, conditions))

    def _condition(self, condition: Condition) -> str:
        name, operand = self._name(condition.column), condition.operand
        is_date = self._columns[condition.column].kind == "date"
        is_text = self._columns[condition.column].kind == "text"
        match operand:
            case Aggregate(aggregation, column, ()) if (
                column == condition.column
                and condition.comparator == "equal"
                and aggregation in _EXTREMES
            ):
                words = _EXTREME_DATES if is_date else _EXTREMES
                return f"{name} is {self._one_of(words[aggregation])}"
        if is_text:
            return f"{name} is {self._expression(operand)}"
        words_of = _OF_DATES_COMPARED if is_date else _COMPARATORS
        return f"{name} {self._one_of(words_of[condition.comparator])} {self._expression(operand)}"

    def _having(self, conditions: tuple[Condition, ...]) -> str:
        """Conditions as what rows have; "" where one is no text or number that a column equals."""
        told = []
        for condition in conditions:
            if condition.comparator != "equal" or not isinstance(condition.operand, Constant):
                return ""
            told.append(f"{self._name(condition.column)} {condition.operand.text}")
        return " and ".join(told)

    def _kind(self, expression: Expression) -> Kind | None:
        match expression:
            case Select(column) | Aggregate(_, column):
                return self._columns[column].kind
        return None

    def _name(self, column: int) -> str:
        return self._columns[column].name

    @property
    def _columns(self):
        return self._table.columns

    def _one_of(self, words: tuple[str, ...]) -> str:
        return self._rng.choice(words)


def constant_text(expression: Expression, table: TypedTable) -> str:
    """The value of an expression as a statement gives it: a cell's text, or a number.

    Raises:
        UndefinedError: as `evaluate`.
    """
    value = evaluate(expression, table)
    if isinstance(expression, Select) or (
        isinstance(expression, Aggregate) and expression.aggregation in ("minimum", "maximum")
    ):
        column = table.columns[expression.column]
        return next(c for c, v in zip(column.cells, column.values, strict=True) if v == value)
    if not isinstance(value, float):
        raise UndefinedError("expected a number")
    return f"{value:.2f}".rstrip("0").rstrip(".")
