"""The benchmark of real tables, on made-up ones and in seconds."""

import json

import pytest

from tests.small import run_binary, write_vocabulary


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Questions about tables of 2 to 700 rows, two each."""
    folder = tmp_path_factory.mktemp("tables")
    write_vocabulary(folder / "vocab.txt")
    with (folder / "dev.jsonl").open("w", encoding="utf-8") as file:
        for rows in (2, 30, 300, 700):
            table = {"id": f"t{rows}", "header": ["a", "b"], "rows": [["c", "d"]] * rows}
            for number in range(2):
                line = {"id": f"{rows}-{number}", "question": "a c", "table": table}
                file.write(json.dumps(line) + "\n")
    return folder / "dev.jsonl"


def run(data, *options: str) -> str:
    found = run_binary(
        "experiments.benchmarks.long_tables",
        f"--data={data}",
        "--task=JSONL",
        "--rounds=1",
        *options,
    )
    assert found.returncode == 0, found.stderr
    return found.stdout


def test_batches_and_the_pipeline(data):
    batches, pipeline = run(data, "--num_tables=3").splitlines()
    # [CLS] a c [SEP] a b, and a row's c d
    assert batches.startswith("batches: 3 tables of 10 to 606 tokens, mean 227: ")
    assert "padded to 512 or 2048, ratio " in batches
    assert pipeline.startswith("pipeline: a table of 66 tokens: ")
    assert float(pipeline.rsplit(" ", 1)[1]) > 0


def test_full_coverage_beside_all_pairs(data):
    summary, _, head, _, *rows = run(data, "--measure=coverage").splitlines()
    assert summary.startswith("coverage: 1 tables; all pairs take ")
    assert head.startswith("| table | tokens |")
    assert [row.split(" | ")[:3] for row in rows] == [["| t700", "1,406", "2"]]
