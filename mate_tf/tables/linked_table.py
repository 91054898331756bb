"""A table whose cells link to pages of text, as plain immutable data."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from mate_tf.tables.table import Table


class Passage(NamedTuple):
    """A page that cells link to.

    Attributes:
        link: its address, such as "/wiki/New_York_City".
        text: what it says, or how it begins.
    """

    link: str
    text: str

    @property
    def title(self) -> str:
        """The page's title, as its address spells it: "New York City"."""
        return self.link.removeprefix("/wiki/").replace("_", " ")


@dataclass(frozen=True)
class LinkedTable:
    """A table and the passages that its body cells link to.

    Attributes:
        table: the cells' own texts.
        passages: for each row and column the passages of the cell, in the order of its links.
        other_passages: those that come with the table without a body cell's link, such as the
            header's.

    Raises:
        ValueError: if passages have another shape than the table's body.
    """

    table: Table
    passages: tuple[tuple[tuple[Passage, ...], ...], ...]
    other_passages: tuple[Passage, ...] = ()

    def __post_init__(self) -> None:
        shape = [len(row) for row in self.passages]
        if shape != [self.table.num_columns] * self.table.num_rows:
            raise ValueError(
                f"expected passages for {self.table.num_rows} rows of {self.table.num_columns} "
                f"cells, got rows of {shape} (table '{self.table.table_id}')"
            )

    def distinct_passages(self) -> Iterator[Passage]:
        """The passages of the body's cells, each where it first occurs, row by row."""
        return iter(
            dict.fromkeys(passage for row in self.passages for cell in row for passage in cell)
        )
