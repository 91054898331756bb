"""A table whose cells link to passages of text, as plain immutable data."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from mate_tf.tables.table import Table


class Passage(NamedTuple):
    """A page that cells link to."""

    link: str  # its address, such as "/wiki/New_York_City"
    text: str  # its text, or the beginning

    @property
    def title(self) -> str:
        """The page's title as in its address: "New York City"."""
        return self.link.removeprefix("/wiki/").replace("_", " ")


@dataclass(frozen=True)
class LinkedTable:
    """A table and the passages that its body cells link to.

    ValueError if the shape of the passages is not that of the table's body.
    """

    table: Table  # of the cells' own texts
    # For each row and column the passages of the cell, in the order of its links.
    passages: tuple[tuple[tuple[Passage, ...], ...], ...]
    other_passages: tuple[Passage, ...] = ()  # to which no body cell links, such as the header's
    dead_links: tuple[str, ...] = ()  # of body cells without a passage, each once

    @classmethod
    def from_links(
        cls, table: Table, links: Sequence[Sequence[Sequence[str]]], texts: Mapping[str, str]
    ) -> "LinkedTable":
        """A table whose cells have links, with the texts that they lead to; errors as of the class.

        `links` are those of each cell by row and column, in order; a repeated one counts once; ()
        without any. `texts` are the passages by link. Those that no cell links to become
        `other_passages`; links without a passage become `dead_links`.
        """
        passages = {link: Passage(link, text) for link, text in texts.items()}
        links = links or [[()] * table.num_columns] * table.num_rows
        unique = [[tuple(dict.fromkeys(cell)) for cell in row] for row in links]
        body_links = dict.fromkeys(link for row in unique for cell in row for link in cell)
        by_cell = tuple(
            tuple(tuple(passages[link] for link in cell if link in passages) for cell in row)
            for row in unique
        )
        others = tuple(passages[link] for link in passages if link not in body_links)
        return cls(table, by_cell, others, tuple(it for it in body_links if it not in passages))

    def __post_init__(self) -> None:
        shape = [len(row) for row in self.passages]
        if shape != [self.table.num_columns] * self.table.num_rows:
            raise ValueError(
                f"expected passages for {self.table.num_rows} rows of {self.table.num_columns} "
                f"cells, got rows of {shape} (table '{self.table.table_id}')"
            )

    def distinct_passages(self) -> Iterator[Passage]:
        """The passages of the body's cells, each once, in the order of their first cells."""
        cells = (cell for row in self.passages for cell in row)
        return iter(dict.fromkeys(passage for cell in cells for passage in cell))


def plain_table(item: Table | LinkedTable) -> Table:
    """The table itself, with or without passages."""
    return item.table if isinstance(item, LinkedTable) else item
