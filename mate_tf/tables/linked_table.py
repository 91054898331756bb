"""A table whose cells link to passages of text, as plain immutable data."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from mate_tf.tables.table import Table


class Passage(NamedTuple):
    """A page that cells link to.

    Attributes:
        link: its address, such as "/wiki/New_York_City".
        text: its text, or the beginning.
    """

    link: str
    text: str

    @property
    def title(self) -> str:
        """The page's title as in its address: "New York City"."""
        return self.link.removeprefix("/wiki/").replace("_", " ")


@dataclass(frozen=True)
class LinkedTable:
    """A table and the passages that its body cells link to.

    Attributes:
        table: the cells' own texts.
        passages: for each row and column the passages of the cell, in the order of its links.
        other_passages: passages that no body cell links to, such as the header's.
        dead_links: links of body cells without a passage, each once.

    Raises:
        ValueError: if the shape of the passages is not that of the table's body.
    """

    table: Table
    passages: tuple[tuple[tuple[Passage, ...], ...], ...]
    other_passages: tuple[Passage, ...] = ()
    dead_links: tuple[str, ...] = ()

    @classmethod
    def from_links(
        cls, table: Table, links: Sequence[Sequence[Sequence[str]]], texts: Mapping[str, str]
    ) -> "LinkedTable":
        """A table whose cells have links, with the texts that they lead to.

        Args:
            table: the table.
            links: for each row and column the links of the cell, in order; a repeated link counts
                once. () for a table without links.
            texts: the passages by link. Those that no cell links to become `other_passages`; links
                without a passage become `dead_links`.

        Raises:
            ValueError: as the constructor.
        """
        passages = {link: Passage(link, text) for link, text in texts.items()}
        links = links or [[()] * table.num_columns] * table.num_rows
        unique = [[tuple(dict.fromkeys(cell)) for cell in row] for row in links]
        of_body = dict.fromkeys(link for row in unique for cell in row for link in cell)
        return cls(
            table,
            tuple(
                tuple(tuple(passages[link] for link in cell if link in passages) for cell in row)
                for row in unique
            ),
            tuple(passages[link] for link in passages if link not in of_body),
            tuple(link for link in of_body if link not in passages),
        )

    def __post_init__(self) -> None:
        shape = [len(row) for row in self.passages]
        if shape != [self.table.num_columns] * self.table.num_rows:
            raise ValueError(
                f"expected passages for {self.table.num_rows} rows of {self.table.num_columns} "
                f"cells, got rows of {shape} (table '{self.table.table_id}')"
            )

    def distinct_passages(self) -> Iterator[Passage]:
        """The passages of the body's cells, each once, in the order of their first cells."""
        return iter(
            dict.fromkeys(passage for row in self.passages for cell in row for passage in cell)
        )


def plain_table(item: Table | LinkedTable) -> Table:
    """The table itself, with or without passages."""
    return item.table if isinstance(item, LinkedTable) else item
