"""A table whose columns are of numbers, of dates or of texts, as statements speak of them."""

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from mate_tf.features.normalization import normalize_for_match
from mate_tf.features.numeric import NumericValue, column_values, parse_text
from mate_tf.tables.table import Table

Kind = Literal["text", "number", "date"]
Value = NumericValue | str


@dataclass(frozen=True)
class TypedColumn:
    """A column.

    Attributes:
        name: how a statement calls it; "" where it has no name of its own, and none speaks of it.
        kind: what its cells are, all those that have a value.
        cells: their texts, without line breaks.
        values: number, date or normalized text of each cell; None where there is none.
    """

    name: str
    kind: Kind
    cells: tuple[str, ...]
    values: tuple[Value | None, ...]

    @property
    def is_varied(self) -> bool:
        """Whether two cells have different values."""
        return len({value for value in self.values if value is not None}) > 1


@dataclass(frozen=True)
class TypedTable:
    """A table and its columns."""

    table: Table

    @cached_property
    def columns(self) -> tuple[TypedColumn, ...]:
        names = [" ".join(name.split()) for name in self.table.header]
        times = Counter(map(normalize_for_match, names))
        return tuple(
            _typed(name if times[normalize_for_match(name)] == 1 else "", cells)
            for name, cells in zip(names, zip(*self.table.rows, strict=True), strict=True)
        )

    @property
    def num_rows(self) -> int:
        return self.table.num_rows

    def of_kind(self, *kinds: Kind) -> list[int]:
        """The columns of these kinds (of any without) that have a name and different values."""
        return [
            index
            for index, column in enumerate(self.columns)
            if column.name and column.is_varied and (not kinds or column.kind in kinds)
        ]


def _typed(name: str, texts: tuple[str, ...]) -> TypedColumn:
    cells = tuple(" ".join(text.split()) for text in texts)
    name = name if any(map(str.isalnum, name)) else ""
    found = column_values(cells)
    if found and all(_is_plain(cells[row]) for row in found):
        kind: Kind = "number" if isinstance(next(iter(found.values())), float) else "date"
        return TypedColumn(name, kind, cells, tuple(found.get(row) for row in range(len(cells))))
    values = (normalize_for_match(cell) if any(map(str.isalnum, cell)) else None for cell in cells)
    return TypedColumn(name, "text", cells, tuple(values))


def _is_plain(cell: str) -> bool:
    """Whether a cell holds a number or a date and no other word: "$1,200" or "45 %", not "3-2"."""
    text = normalize_for_match(cell)
    spans = parse_text(text)
    if len(spans) != 1:
        return False
    around = text[: spans[0].begin] + text[spans[0].end :]
    return not any(map(str.isalnum, around))
