"""Writes docs/results.md: the text of document.md with the figures of the stored results.

    python -m experiments.paper.results
    make results

The results are NAME.json in experiments/paper/results, each of the step NAME of `make reproduce`.
To replace them, copy those files of a run with SIZE=full here. Of older steps only the printed
lines that the document shows are stored. In document.md

    {wtq: mate_exact}         is the main metric of a comparison, median and half the interquartile
                              range over the seeds
    {grammar: tapas: f1}      is another metric; "seeds" lists the main metric of each run, "curve"
                              its median at each evaluation
    {converged: sat - tapas}  is the first less the second, seed by seed
    {default_wtq: auroc}      is the value in a line or a table that the step has printed
    {default_by_length}       is the whole table

Shares are given in percent.
"""

import pathlib
import re
import statistics
from typing import Any

from experiments import program
from experiments.paper.comparison_results import folder_of, spread
from mate_tf.reading.text_files import complete_text_file, read_json, read_text

STORED = pathlib.Path(__file__).with_name("results")
DOCUMENT = pathlib.Path(__file__).parents[2] / "docs" / "results.md"
_TEXT = pathlib.Path(__file__).with_name("document.md")
_PLACE = re.compile(r"\{(\w+)(?:: ([^{}:]+))?(?:: ([^{}:]+))?\}")
_MAIN_METRICS = ("denotation_accuracy", "accuracy", "hits_at_1", "masked_lm_accuracy")
_ABSENT = "–"
_HEADING = "<!-- Written by `make results` from experiments/paper. Do not edit it here. -->\n\n"
_PARTIAL = (
    "The figures on this page are those of one run; a dash is a figure that it did not make. The "
    "text is about the stored results.\n\n"
)


class Figures:
    """The figures in a folder of results, and the (result, row) that were asked for, `shown`."""

    def __init__(self, folder: pathlib.Path) -> None:
        self._folder = folder
        self._contents: dict[str, dict[str, Any]] = {}
        self.shown: set[tuple[str, str]] = set()

    def find(self, name: str, row: str | None, column: str | None) -> str | None:
        """A figure as text, a whole table without a row; None if it is not there."""
        self.shown.add((name, row or ""))
        if name not in self._contents:
            path = self._folder / f"{name}.json"
            self._contents[name] = read_json(path) if path.is_file() else {}
        content = self._contents[name]
        if row and "runs" in content:
            return _run_value(content, row, column)
        lines = content.get("printed", [])
        if row is None:
            return "\n".join(line for line in lines if line.startswith("|")) or None
        return _line_value(lines, row, column)


def _run_value(content: dict[str, Any], name: str, column: str | None) -> str | None:
    rows = [
        [run for seed in range(1, 10) if (run := content["runs"].get(folder_of(of, seed)))]
        for of in name.split(" - ")
    ]
    if not all(rows):
        return None
    main = next(metric for metric in _MAIN_METRICS if metric in rows[0][0]["metrics"])
    metric = column if column in rows[0][0]["metrics"] else main
    first, *rest = ([run["metrics"][metric] for run in runs] for runs in rows)
    values = [a - b for a, b in zip(first, *rest, strict=True)] if rest else first
    if column == "curve":
        curves = (run["curve"] for run in rows[0])
        values = [statistics.median(at) for at in zip(*curves, strict=True)]
    if column in ("seeds", "curve") or len(values) == 1:
        return ", ".join(f"{100 * value:.1f}" for value in values)
    return spread(values, 100)


def _line_value(lines: list[str], row: str, column: str | None) -> str | None:
    """The value after a label, in a table the cell of a column, or of the first one."""
    header: list[str] = []
    for line in lines:
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("|"):
            header = header or cells
            if cells[0] == row and (column or header[1]) in header:
                return _as_percent(cells[header.index(column) if column else 1])
        elif match := re.match(rf"\s*{re.escape(row)}:?\s+(.*)", line):
            value = re.search(rf"{re.escape(column or '')}\s*(\S+?)(,|\s|$)", match[1])
            return value and _as_percent(value[1])
    return None


def _as_percent(text: str) -> str:
    """ "27.02%" and "0.2702" as "27.0", other texts as they are."""
    if re.fullmatch(r"[01]\.\d{4}", text):
        return f"{100 * float(text):.1f}"
    return f"{float(text[:-1]):.1f}" if re.fullmatch(r"[\d.]+ ?%", text) else text


def document(figures: Figures, is_partial: bool = False) -> str:
    """The document; a figure that is not there is a dash in a partial one, or a ValueError."""

    def replace(place: re.Match) -> str:
        figure = figures.find(*place.groups())
        if figure is None and not is_partial:
            raise ValueError(f"expected a result for {place[0]}, found none; document.md names it")
        return _ABSENT if figure is None else figure

    heading = _PARTIAL if is_partial else _HEADING
    return heading + _PLACE.sub(replace, read_text(_TEXT))


def write_document(folder: pathlib.Path, path: pathlib.Path, is_partial: bool = False) -> None:
    """Writes the document of a folder of results."""
    text = document(Figures(folder), is_partial)
    with complete_text_file(path) as file:
        file.write(text)


def main(_) -> None:
    write_document(STORED, DOCUMENT)
    print(f"written to {DOCUMENT}")


if __name__ == "__main__":
    program.run(main)
