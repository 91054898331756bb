"""A true statement and a false one that differs from it in a single thing."""

from collections.abc import Sequence
from typing import NamedTuple

from mate_tf.tables.table import Question, Table

REFUTED, ENTAILED = 0, 1  # the classes, as TabFact's


class Pair(NamedTuple):
    """Two statements about a table.

    Attributes:
        table: what they are about.
        operation: what they are counted under; both identifiers end in it, what was changed, and
            their class.
        true, false: the statements, as questions with a class.
    """

    table: Table
    operation: str
    true: Question
    false: Question


class StatementsError(ValueError):
    """No statement can be made about a table.

    Attributes:
        reason: a few words, the same for all tables that it is true of.
    """

    def __init__(self, reason: str, message: str):
        super().__init__(message)
        self.reason = reason


def make_pair(table: Table, name: str, operation: str, texts: Sequence[str]) -> Pair:
    """A pair of texts, the true one first, named after `name` and their class."""
    true, false = (
        Question(text, f"{name}:{label}", class_index=label)
        for text, label in zip(texts, (ENTAILED, REFUTED), strict=True)
    )
    return Pair(table, operation, true, false)


def kind_of_id(question_id: str) -> tuple[str, str]:
    """The operation of a statement and the change of its pair, by its identifier.

    Both are "" where the identifier is not a pair's; a counterfactual pair has no change.
    """
    parts = question_id.rsplit(":", 2)
    operation, _, change = parts[1].partition("/") if len(parts) == 3 else ("", "", "")
    return operation, change
