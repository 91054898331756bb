"""The README's figures of comparisons, and the stored runs that they are of."""

import json
import pathlib

import pytest

from experiments.paper.compare_attention import spread
from experiments.paper.comparison_results import folder_of

ROOT = pathlib.Path(__file__).resolve().parents[3]
_LINFORMER = "linformer_256 encoder.attention.projected_length=32 length_buckets="
_TABLE_ETC = "table_etc encoder.attention.num_global_tokens=96"
_RATE = "attention_bias_learning_rate_ratio"
_NO_IDS = "encoder.disabled_features=row_ids,column_ids"
_ABSOLUTE = "encoder.position=absolute"
_ACCURACY = "denotation_accuracy"
_ARCHITECTURES = "| attention | synthetic questions, % |"
_AFTER_QUESTIONS = (
    "mate_exact",
    "mate_tableformer",
    "sat",
    _TABLE_ETC,
    f"mate_tableformer {_RATE}=1",
    "tapas",
    _LINFORMER,
    "tableformer_pcp",
    f"tableformer_pcp {_RATE}=1",
)
_STATEMENTS = "| attention | synthetic statements, % |"
_AFTER_STATEMENTS = (
    "mate_exact",
    "mate_tableformer",
    "tapas",
    "sat",
    _TABLE_ETC,
    _LINFORMER,
    "tableformer_pcp",
)
_ONE_SEED = "questions", "statements"  # of each architecture: where others start
_POINTING = "| attention | Hits@1, % |"
_POINTED = "mate_exact", "sat", "tapas", _TABLE_ETC, _LINFORMER.replace("=32", "=64")
_SENTENCES = "tapas", "grammar_soft", "grammar_hard_extended", "grammar_hard"

# How a table of the README begins, a column of it, the runs in its rows (None where it has none)
# and what of them it has.
COLUMNS = [
    (_ARCHITECTURES, 1, "questions", _ACCURACY, _AFTER_QUESTIONS),
    (_ARCHITECTURES, 2, "wtq_after_questions", _ACCURACY, _AFTER_QUESTIONS),
    (
        _ARCHITECTURES,
        3,
        "wtq",
        _ACCURACY,
        (
            "mate_exact",
            f"mate_tableformer {_RATE}=100",
            "sat",
            _TABLE_ETC,
            "mate_tableformer",
            "tapas",
            _LINFORMER,
            f"tableformer_pcp {_RATE}=100",
            "tableformer_pcp",
            "mate",
            "tableformer_rc_gp",
        ),
    ),
    (
        "| heads |",
        1,
        "heads",
        _ACCURACY,
        (
            "mate_exact",
            "mate",
            "mate_exact encoder.attention.row_heads_ratio=1.0",
            "mate_exact encoder.attention.row_heads_ratio=0.0",
        ),
    ),
    (
        "| attention | WTQ dev, % | TableFormer paper, table 5, % |",
        1,
        "tableformer_variants",
        _ACCURACY,
        (
            f"tapas {_ABSOLUTE}",
            f"tapas {_ABSOLUTE} encoder.disabled_features=row_ids",
            f"tapas {_ABSOLUTE} {_NO_IDS}",
            f"tapas {_NO_IDS}",
            f"sat {_ABSOLUTE}",
            f"tableformer_rc_gp {_ABSOLUTE}",
            f"tableformer_c_gp {_ABSOLUTE}",
            f"tableformer_gp {_ABSOLUTE}",
            "tableformer_pcp",
        ),
    ),
    (
        "| left out |",
        1,
        "relations",
        _ACCURACY,
        (
            "tableformer_pcp",
            *(
                f"tableformer_pcp encoder.attention.disabled_relations={numbers}"
                for numbers in (*range(1, 13), "2,4,6")
            ),
        ),
    ),
    (
        "| copies in other orders |",
        1,
        "perturbed_copies",
        _ACCURACY,
        tuple(f"tapas perturbed_copies={copies}" for copies in (0, 1, 2, 4, 8, 16)),
    ),
    (_STATEMENTS, 1, "statements", "accuracy", _AFTER_STATEMENTS),
    (_STATEMENTS, 2, "tabfact_after_statements", "accuracy", _AFTER_STATEMENTS),
    (
        _STATEMENTS,
        3,
        "tabfact",
        "accuracy",
        (
            *_AFTER_STATEMENTS,
            "mate",
            "tableformer_rc_gp",
        ),
    ),
    (_POINTING, 1, "pointing", "hits_at_1", _POINTED),
    *(
        ("| attention | accuracy, % | precision, % |", column, "grammar", metric, _SENTENCES)
        for column, metric in enumerate(("accuracy", "precision", "f1"), start=1)
    ),
]


def rows_of_table(beginning: str) -> list[list[str]]:
    """The cells below the heading of the README's only table that begins so."""
    _, table = (ROOT / "README.md").read_text(encoding="utf-8").split(f"\n{beginning}")
    lines = table.partition("\n\n")[0].splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def metrics_of(results: str) -> dict[str, dict]:
    """The metrics of the stored runs of a comparison."""
    stored = ROOT / "experiments" / "paper" / "results" / f"{results}.json"
    text = stored.read_text(encoding="utf-8")
    return {run: result["metrics"] for run, result in json.loads(text)["runs"].items()}


@pytest.mark.parametrize(
    ("beginning", "column", "results", "metric", "names"),
    COLUMNS,
    ids=[f"{results}-{metric}" for _, _, results, metric, _ in COLUMNS],
)
def test_a_column_of_the_readme_is_what_the_runs_give(beginning, column, results, metric, names):
    runs = metrics_of(results)
    rows = rows_of_table(beginning)
    # Below them what has not been run, and the best constant answer.
    assert {row[column] for row in rows[len(names) :]} <= {"", "5.1"}
    for name, row in zip(names, rows, strict=False):
        if name is None:
            assert row[column] == ""
            continue
        values = [runs[run][metric] for seed in (1, 2, 3) if (run := folder_of(name, seed)) in runs]
        assert values, name
        if len(values) == 1:  # of one seed there is no spread
            note = "" if results in _ONE_SEED else ", one seed"
            assert row[column] == f"{100 * values[0]:.1f}{note}"
        else:
            note = ", two seeds" if len(values) == 2 else ""
            assert row[column] == spread(values, 100) + note


def test_the_seeds_of_cells_to_point_to_are_as_their_runs():
    runs = metrics_of("pointing")
    for name, row in zip(_POINTED, rows_of_table(_POINTING), strict=True):
        hits = [100 * runs[folder_of(name, seed)]["hits_at_1"] for seed in (1, 2, 3)]
        assert row[2] == ", ".join(f"{value:.1f}" for value in hits)


def test_the_readme_leaves_no_stored_run_out():
    stored = {file.stem for file in (ROOT / "experiments" / "paper" / "results").glob("*.json")}
    assert stored == {results for _, _, results, _, _ in COLUMNS}
    for results in stored:
        shown = {
            folder_of(name, seed)
            for _, _, of, _, names in COLUMNS
            if of == results
            for name in names
            if name is not None
            for seed in (1, 2, 3)
        }
        assert metrics_of(results).keys() <= shown
