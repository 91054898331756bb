"""A true statement about a table and a false one that is as like it as can be."""

from typing import NamedTuple

from mate_tf.tables.table import Question, Table

REFUTED, ENTAILED = 0, 1  # the classes, as TabFact's


class Pair(NamedTuple):
    """A true and a false statement.

    Attributes:
        operation: what they are counted under.
        true, false: what each is about, and the statement as a question with a class.
    """

    operation: str
    true: tuple[Table, Question]
    false: tuple[Table, Question]

    @property
    def examples(self) -> tuple[tuple[Table, Question], ...]:
        return self.true, self.false


class StatementsError(ValueError):
    """Nothing can be made of a table: no statement, or no question.

    Attributes:
        reason: a few words, the same for all tables that it is true of.
    """

    def __init__(self, reason: str, message: str):
        super().__init__(message)
        self.reason = reason


def make_pair(
    operation: str, true: tuple[Table, str], false: tuple[Table, str], name: str, way: str = ""
) -> Pair:
    """A pair of tables and texts, whose identifiers are of what `kind_of_id` gives.

    Args:
        operation: what they are counted under.
        true, false: what each statement is about, and its text.
        name: what both identifiers begin with.
        way: in which the two differ; "" where all of the operation differ in the same.
    """
    kind = f"{operation}/{way}" if way else operation
    examples = [
        (table, Question(text, f"{name}:{kind}:{label}", class_index=label))
        for (table, text), label in ((true, ENTAILED), (false, REFUTED))
    ]
    return Pair(operation, *examples)


def kind_of_id(question_id: str) -> tuple[str, str]:
    """The operation of a statement and the way of its pair, by its identifier.

    Both are "" where the identifier is not a pair's; a counterfactual pair has no way.
    """
    parts = question_id.rsplit(":", 2)
    operation, _, way = parts[1].partition("/") if len(parts) == 3 else ("", "", "")
    return operation, way
