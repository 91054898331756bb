"""The benchmarks, on what is made up and in seconds."""

import functools
import json

import pytest
import tensorflow as tf

from experiments.benchmarks.runners import matrix_flops
from tests.small import succeeded, write_lines, write_vocabulary


def run(folder, *options: str) -> str:
    small = "--num_layers=1", "--rounds=2", "--dtypes=float32", "--peers=", "--lengths=64"
    done = succeeded("experiments.benchmarks.benchmark", f"--output_dir={folder}", *small, *options)
    return done.stdout


def measured(folder) -> list[dict]:
    return [json.loads(line) for line in (folder / "measurements.jsonl").read_text().splitlines()]


def test_measures_each_length_and_goes_on_where_it_stopped(tmp_path):
    first = run(tmp_path, "--architectures=tapas")
    lines = measured(tmp_path)
    names = [(line["of"], line["name"]) for line in lines]
    assert names == [("time", "limit"), ("time", "tapas"), ("memory", "tapas")]
    assert all(len(line["seconds"]) == 2 for line in lines if line["of"] == "time")
    hidden, inner, length = 768, 3072, 64
    products = length * hidden * (4 * hidden + 2 * inner) + 2 * length * length * hidden
    means = 3 * 2 * length * hidden  # of the normalisations, two each
    pooler = hidden * hidden  # of one token
    assert lines[1]["flops"] == 2 * (products + means + pooler)
    assert lines[2]["megabytes"] > 0
    assert "| 64 | tapas |" in first
    for name in ("time", "flops", "memory"):
        assert (tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    again = run(tmp_path, "--architectures=tapas")
    assert again == first
    assert (tmp_path / "table.md").read_text() == first


def test_training_steps_are_measured_too(tmp_path):
    names = "tapas", "mate+recompute"
    options = "--mode=training", "--rounds=1", "--steps=1", f"--architectures={','.join(names)}"
    text = run(tmp_path, *options)
    lines = measured(tmp_path)
    assert [(line["of"], line["name"]) for line in lines] == [
        ("time", "limit"),
        *((of, name) for name in names for of in ("time", "memory")),
    ]
    assert all(line["cpu_seconds"][0] > 0 for line in lines if line["of"] == "time")
    assert "| 64 | mate+recompute |" in text


def test_counts_the_products_of_a_graph():
    rows, kernel = tf.TensorSpec([5, 7]), tf.TensorSpec([7, 3])

    def products(rows, kernel):
        product = tf.matmul(rows, kernel)  # [5, 3]
        twice = tf.einsum("...ab,cb->...ac", product[None], product)  # [1, 5, 5]
        squared = functools.partial(tf.matmul, twice, twice, transpose_a=True)
        return tf.cond(tf.reduce_sum(rows) > 0, squared, lambda: twice)

    graph = tf.function(products).get_concrete_function(rows, kernel).graph
    assert matrix_flops(graph) == 2 * (5 * 7 * 3 + 5 * 5 * 3 + 5 * 5 * 5)


@pytest.mark.parametrize("shape", [[None, 7], None])
def test_of_shapes_that_are_not_known_it_says_nothing(shape):
    graph = tf.function(lambda rows: tf.matmul(rows, rows, transpose_b=True))
    concrete = graph.get_concrete_function(tf.TensorSpec(shape))
    assert matrix_flops(concrete.graph) is None


@pytest.fixture(scope="module")
def questions(tmp_path_factory):
    """Questions about tables of 2 to 700 rows, two each."""
    folder = tmp_path_factory.mktemp("tables")
    write_vocabulary(folder / "vocab.txt")
    tables = (
        {"id": f"t{rows}", "header": ["a", "b"], "rows": [["c", "d"]] * rows}
        for rows in (2, 30, 300, 700)
    )
    lines = (
        {"id": f"{table['id']}-{number}", "question": "a c", "table": table}
        for table in tables
        for number in range(2)
    )
    return write_lines(folder / "dev.jsonl", *lines)


def test_batches_the_pipeline_and_full_coverage_of_long_tables(questions):
    def run_on_tables(option: str) -> list[str]:
        flags = f"--data={questions}", "--task=JSONL", "--rounds=1", option
        return succeeded("experiments.benchmarks.long_tables", *flags).stdout.splitlines()

    batches, pipeline = run_on_tables("--num_tables=3")
    # [CLS] a c [SEP] a b, and a row's c d
    assert batches.startswith("batches: 3 tables of 10 to 606 tokens, mean 227: ")
    assert "padded to 512 or 2048, ratio " in batches
    assert pipeline.startswith("pipeline: a table of 66 tokens: ")
    assert float(pipeline.rsplit(" ", 1)[1]) > 0
    summary, _, head, _, *rows = run_on_tables("--measure=coverage")
    assert summary.startswith("coverage: 1 tables; all pairs take ")
    assert head.startswith("| table | tokens |")
    assert [row.split(" | ")[:3] for row in rows] == [["| t700", "1,406", "2"]]
