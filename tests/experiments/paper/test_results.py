"""docs/results.md is what the stored results give."""

import json

import pytest

from experiments.paper.comparison_results import folder_of
from experiments.paper.results import DOCUMENT, STORED, Figures, document
from tests.small import stored_cases


def test_the_document_is_up_to_date_and_leaves_no_stored_run_out():
    figures = Figures(STORED)
    text = document(figures)
    assert DOCUMENT.read_text(encoding="utf-8") == text, "run `make results`"
    assert {name for name, _ in figures.shown} == {path.stem for path in STORED.glob("*.json")}
    shown = {(name, folder_of(row, seed)) for name, row in figures.shown for seed in (1, 2, 3)}
    for path in STORED.glob("*.json"):
        runs = json.loads(path.read_text(encoding="utf-8")).get("runs", {})
        assert {(path.stem, run) for run in runs} <= shown


TABLE = ["| x | first | second |", "|---|---|---|", "| a row | 0.1200 | 3 (4%) |"]


@stored_cases("name, row, column, expected")
def test_figures_are_found_in_runs_and_in_what_was_printed(tmp_path, name, row, column, expected):
    accuracies = {"mate_1": 0.4, "mate_2": 0.5, "mate_3": 0.6, "tapas_size=1_1": 0.3}
    accuracies |= {f"tableformer_{seed}": value for seed, value in enumerate((0.5, 0.5, 0.7), 1)}
    runs = {
        run: {"metrics": {"accuracy": a, "f1": 0.1}, "curve": [a - 0.3, a]}
        for run, a in accuracies.items()
    }
    printed = [
        *("auroc      65.76%", "accuracy before: 7.20%", "/swapped 12  accuracy  50.1%  true 3%"),
        *("best: 5.09%, 2", *TABLE),
    ]
    (tmp_path / "runs.json").write_text(json.dumps({"runs": runs}))
    (tmp_path / "lines.json").write_text(json.dumps({"printed": printed}))
    assert Figures(tmp_path).find(name, row, column) == expected


def test_a_figure_that_is_not_there_is_an_error_or_a_dash(tmp_path):
    with pytest.raises(ValueError, match=r"expected a result for \{.*\}, found none"):
        document(Figures(tmp_path))
    assert "| `tapas` | – | – |" in document(Figures(tmp_path), is_partial=True)
