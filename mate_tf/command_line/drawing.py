"""An answer and its table on a terminal, in a pipe or as Markdown, in a limited number of lines."""

import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text

from mate_tf.answers.answer import Answer, SelectedCell
from mate_tf.answers.drawing import source
from mate_tf.tables.cell_texts import format_number
from mate_tf.tables.drawing import count, cut, quoted, rows_shown, with_gaps
from mate_tf.tables.table import Table

MOST_LINES, _LEAST_LINES = 30, 16
_LINES_OF_HEAD = 12  # of a table that several questions are about
_LINES_OF_ITEMS = 3
_ROWS_OF_ANSWER = 5  # of several answers about a table
_AROUND_ROWS = 4  # lines of a table beside its rows: header, rule, and what is left out, in two
_MARKDOWN_WIDTH = 120
_CELL_WIDTHS = (200, 100, 60, 40, 24)  # the largest with which all columns fit, or else the last
_BETWEEN, _GAP_WIDTH = 2, 8  # characters
_MOST_CHARACTERS = 300  # of a cell
_CHOSEN, _FAINT = "bold reverse green", "dim"
_STYLES = {"sure": "bold green", "probably": "bold cyan", "not sure": "bold yellow"}
_MARKDOWN = re.compile(r"([\\`*_<>\[\]|])")


class _Console(Console):
    """A console that leaves it to the program what to do where nobody reads."""

    def on_broken_pipe(self) -> None:
        raise  # rich calls this where it has caught a BrokenPipeError


@dataclass(frozen=True)
class Paper:
    """The console for answers: they are printed whole, however long and wide, if it is full."""

    console: Console
    full: bool = False
    markdown: bool = False
    more: str = "--full"  # what prints all of an answer and its table

    @classmethod
    def stdout(cls, full: bool = False, markdown: bool = False, more: str = more) -> "Paper":
        """Standard output; rich knows its width and whether it is a terminal."""
        options: dict[str, Any] = {"color_system": None} if markdown else {}
        console = _Console(file=sys.stdout, highlight=False, markup=False, emoji=False, **options)
        return cls(console, full, markdown, more)

    @property
    def width(self) -> int:
        """Characters of a line, unless everything is printed."""
        return _MARKDOWN_WIDTH if self.markdown else self.console.width

    @property
    def most_lines(self) -> int:
        """The most lines for an answer with its table; on a terminal they fit its height."""
        if not self.console.is_terminal:
            return MOST_LINES
        return min(MOST_LINES, max(self.console.height - 1, _LEAST_LINES))

    def head(self, table: Table) -> None:
        """Prints a table that several questions are about, with what was assumed about it."""
        if assumed := list(self._assumed(table)):
            if not self.full:
                assumed = self._first(assumed, self.most_lines - 2 - _LINES_OF_HEAD)
            self.say(assumed)
            self.say([Text()])
        self.table(table)

    def question(self, text: str) -> None:
        """Prints a question, to stand above its answer."""
        self.say([self._labelled("" if self.markdown else "question: ", text, "bold")])

    def answer(self, table: Table, answer: Answer, with_table: bool = True, name: str = "") -> None:
        """Prints an answer with its table (named where there are several), or its rows alone."""
        lines = list(self._about(table, answer, name))
        lines += self._assumed(table) if with_table else ()
        chosen = answer.guess.cells
        if not self.full:
            lines = self._first(lines, self.most_lines - 1 - _LINES_OF_HEAD)
        self.say(lines)
        if with_table or chosen:
            if not self.markdown:
                self.say([Text()])
            left = self.most_lines - 1 - sum(map(self._height, lines))
            rows = None if with_table else sorted({cell.row for cell in chosen})
            if rows and not self.full:
                rows = rows[:_ROWS_OF_ANSWER]
            self.table(table, chosen, left, rows, with_table)

    def say(self, lines: Iterable[Text]) -> None:
        """Prints lines, broken between words on a terminal; each is a paragraph of Markdown."""
        is_whole = self.full or self.markdown or not self.console.is_terminal
        for line in lines:
            self.console.print(line, soft_wrap=is_whole)
            if self.markdown and line:
                self.console.print()

    def _labelled(self, label: str, text: str, style: str) -> Text:
        """A label and a text that stands out."""
        shown = self._quoted(text)
        return Text.assemble(label, (f"**{shown}**" if self.markdown else shown, style))

    def _quoted(self, text: str) -> str:
        """A text in one line that neither a terminal nor Markdown takes for anything else."""
        line = quoted(text)
        return _MARKDOWN.sub(r"\\\1", line) if self.markdown else line

    def _assumed(self, table: Table) -> Iterator[Text]:
        """The sentences about a table."""
        return (Text(self._quoted(sentence), _FAINT) for sentence in table.all_assumed)

    def _about(self, table: Table, answer: Answer, name: str) -> Iterator[Text]:
        shown, others = answer.guess, answer.alternatives[not answer.answered :]
        style = _STYLES[answer.confidence if answer.answered else "not sure"]
        if text := self._items(shown):
            yield self._labelled(f"{answer.verdict}: ", text, style)
        else:
            yield Text(answer.verdict)
        facts = [f"score {answer.score:.2f}", self._source(table, shown)]
        if shown.number is not None and format_number(shown.number) != shown.text:
            facts.append(f"as a number {format_number(shown.number)}")
        facts.append(name and f"table {self._quoted(name)}")
        yield Text(" · ".join(filter(None, facts)))
        yield from (Text(self._quoted(it)) for it in (shown.note, answer.coverage) if it)
        for other in others:
            facts = [f"{other.score:.2f}", self._source(table, other)]
            line = self._labelled("or: ", self._items(other), "bold")
            yield line.append(" · ".join(["", *filter(None, facts)]))

    def _source(self, table: Table, answer: Answer) -> str:
        return self._quoted(source(table.header, answer))

    def _items(self, answer: Answer) -> str:
        """The answer's text, or its first items and how many there are beside them."""
        room = _LINES_OF_ITEMS * self.width - 50  # for what stands around them
        if self.full or cell_len(answer.text) <= room:
            return answer.text
        kept = len(answer.items)
        while kept > 1 and cell_len(", ".join(answer.items[:kept])) > room:
            kept -= 1
        more = len(answer.items) - kept
        text = Text(", ".join(answer.items[:kept]))
        text.truncate(room, overflow="ellipsis")
        return text.plain + (f" and {more:,} more" if more else "")

    def _first(self, lines: list[Text], most: int) -> list[Text]:
        """As many of the lines as there is room for, and how many there are beside them."""
        for number, line in enumerate(lines):
            most -= self._height(line)
            if most < (number < len(lines) - 1):
                more = count(len(lines) - number, "more line")
                return [*lines[:number], Text(f"… {more}; {self.more} shows all", _FAINT)]
        return lines

    def _height(self, line: Text) -> int:
        if not self.console.is_terminal:
            return 1
        return len(line.wrap(self.console, self.console.width))

    def table(
        self,
        table: Table,
        chosen: Sequence[SelectedCell] = (),
        most_lines: int = _LINES_OF_HEAD,
        rows: Sequence[int] | None = None,
        is_whole: bool = True,
    ) -> None:
        """Prints a table: its head, the chosen cells, and how much is left out between them.

        Without rows to print, those are printed that fit. What is left out is not said unless it is
        the whole table that is to be seen, or it is chosen.
        """
        marked = {(cell.row, cell.column) for cell in chosen}
        if self.full and is_whole:
            rows = range(table.num_rows)
        elif rows is None:
            ranked = [cell.row for cell in chosen]
            rows = _fitting_rows(table.num_rows, ranked, most_lines - _AROUND_ROWS)
        lines = [self._cells(table, row, marked) for row in (-1, *rows)]
        widths = [max(map(cell_len, map(str, cells))) for cells in zip(*lines, strict=True)]
        index_width = max(3, len(str(table.num_rows)))
        columns, most = list(range(table.num_columns)), None
        if not self.full:
            columns, most = self._fitting_columns(widths, index_width, [it.column for it in chosen])
        with_left_out = [*with_gaps(columns, table.num_columns)]
        padding = (0, _BETWEEN - 1, 0, 0)  # the box has a blank between columns
        grid = Grid(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=padding)
        if self.markdown:
            grid = Grid(box=box.MARKDOWN)
        grid.add_column("row", justify="right", style=_FAINT, min_width=index_width)
        for column, gap in with_left_out:
            if gap:
                grid.add_column(f"… {len(gap)} …", style=_FAINT, no_wrap=True)
            if column is not None:
                side: Any = "right" if table.column(column).kind == "number" else "left"
                grid.add_column(lines[0][column], justify=side, no_wrap=True, max_width=most)
        for row, cells in zip(rows, lines[1:], strict=True):
            drawn = [Text(str(row + 1))]
            for column, gap in with_left_out:
                drawn += [Text("…")] * bool(gap) + ([cells[column]] if column is not None else [])
            grid.add_row(*drawn)
        if self.full or self.markdown:
            self.console.width = index_width + sum(widths) + 3 * len(widths) + 20
        self._draw(grid, [*with_gaps(rows, table.num_rows)], {row for row, _ in marked}, is_whole)
        if not is_whole:
            return
        sizes = ((rows, table.num_rows, "row"), (columns, table.num_columns, "column"))
        hidden = [
            f"{total - len(shown):,} of {count(total, noun)}"
            for shown, total, noun in sizes
            if len(shown) < total
        ]
        if hidden:
            self.say([Text(f"left out: {' and '.join(hidden)}; {self.more} shows all", _FAINT)])

    def _cells(self, table: Table, row: int, marked: set[tuple[int, int]]) -> list[Text]:
        """The cells of a row, or for -1 of the header."""
        has_colour = self.console.color_system is not None and not self.console.no_color
        around = ("**", "**") if self.markdown else ("", "") if has_colour else ("[", "]")
        cells = []
        for column, text in enumerate(table.header if row < 0 else table.rows[row]):
            shown = self._quoted(text if self.full else cut(text, _MOST_CHARACTERS))
            is_chosen = (row, column) in marked
            cells.append(Text(shown.join(around), _CHOSEN) if is_chosen else Text(shown))
        return cells

    def _fitting_columns(
        self, widths: Sequence[int], index_width: int, chosen: Iterable[int]
    ) -> tuple[list[int], int]:
        """The columns that fit beside each other, and the most characters of a cell."""
        room = self.width - index_width

        def fit(columns: Sequence[int], most: int) -> bool:
            gaps = sum(bool(gap) for _, gap in with_gaps(columns, len(widths)))
            taken = [min(most, widths[column]) for column in columns] + [_GAP_WIDTH] * gaps
            return sum(taken) + _BETWEEN * len(taken) <= room

        for most in _CELL_WIDTHS:
            if fit(range(len(widths)), most):
                return list(range(len(widths))), most
        columns: list[int] = []
        first = list(dict.fromkeys(chosen))
        for column in dict.fromkeys([*first, *range(len(widths))]):
            more = sorted([*columns, column])
            if not columns or fit(more, most):
                columns = more
            elif column not in first:
                break
        return columns, most

    def _draw(
        self,
        grid: Grid,
        rows: Sequence[tuple[int | None, range]],
        chosen: set[int],
        with_others: bool,
    ) -> None:
        """Prints a grid, with a line where rows are left out."""
        with self.console.capture() as captured:
            self.console.print(grid)
        header, rule, *lines = filter(str.strip, captured.get().splitlines())
        drawn, following = [header, rule], iter(lines)
        for row, gap in rows:
            hidden = len(chosen & {*gap})
            if gap and (with_others or hidden):
                also = f", {hidden:,} of them chosen" if hidden else ""
                text = f"{count(len(gap), 'row')}{also}"
                drawn.append(f"| … | {text} |" if self.markdown else f"  … {text}")
            if row is not None:
                drawn.append(next(following))
        self.console.file.write("".join(f"{line.rstrip()}\n" for line in drawn))


def _fitting_rows(num_rows: int, ranked: Sequence[int], lines: int) -> list[int]:
    """The rows that take at most so many lines, together with lines where some are left out."""
    for most in range(max(lines, 1), 1, -1):
        rows = rows_shown(num_rows, sorted({*ranked}), most)
        gaps = sum(bool(gap) for _, gap in with_gaps(rows, num_rows))
        if len(rows) + gaps <= lines:
            return rows
    return rows_shown(num_rows, ranked, 1)
