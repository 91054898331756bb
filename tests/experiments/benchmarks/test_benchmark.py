"""The benchmark of the encoders, at a size of seconds."""

import json

import pytest
import tensorflow as tf

from experiments.benchmarks.flops import matrix_flops
from experiments.benchmarks.report import last_lines, table
from tests.small import run_binary


def run(folder, *options: str) -> str:
    small = ("--num_layers=1", "--rounds=2", "--dtypes=float32", "--peers=False")
    result = run_binary(
        "experiments.benchmarks.benchmark", f"--output_dir={folder}", *small, *options
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_measures_each_length_and_goes_on_where_it_stopped(tmp_path):
    first = run(tmp_path, "--lengths=64", "--architectures=tapas")
    text = (tmp_path / "measurements.jsonl").read_text()
    lines = [json.loads(line) for line in text.splitlines()]
    assert [(line["of"], line["name"]) for line in lines] == [
        ("time", "limit"),
        ("time", "tapas"),
        ("memory", "tapas"),
    ]
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
    again = run(tmp_path, "--lengths=64", "--architectures=tapas")
    assert again == first
    assert (tmp_path / "table.md").read_text() == first
    other = run(tmp_path, "--lengths=64", "--architectures=linformer")
    assert "| 64 | linformer |" in other  # although the limit was there


def test_ratios_are_of_one_process_and_of_the_same_options():
    def timed(layers, names, **seconds):
        options = {"length": 64, "mode": "inference", "num_layers": layers}
        return [
            options | {"of": "time", "name": name, "names": names, "seconds": [one], "flops": None}
            for name, one in seconds.items()
        ]

    lines = [
        *timed(1, ["limit", "tapas"], limit=1.0, tapas=9.0),
        *timed(12, ["limit", "tapas"], limit=10.0, tapas=20.0),
        *timed(1, ["limit", "tapas", "mate"], limit=2.0, tapas=6.0, mate=4.0),
    ]
    text = table(last_lines(lines))
    assert "num_layers 1:" in text and "num_layers 12:" in text
    assert "| 64 | tapas | 6,000 | 0 | 3.00 | 1.00 |" in text
    assert "| 64 | mate | 4,000 | 0 | 2.00 | 0.67 |" in text
    assert "| 64 | tapas | 20,000 | 0 | 2.00 | 1.00 |" in text
    assert "9,000" not in text


def test_an_unknown_architecture_is_refused():
    result = run_binary("experiments.benchmarks.benchmark", "--architectures=reformer")
    assert result.returncode == 1
    assert "expected --architectures among tapas" in result.stderr


def test_counts_the_products_of_a_graph():
    rows, kernel = tf.TensorSpec([5, 7]), tf.TensorSpec([7, 3])

    def products(rows, kernel):
        product = tf.matmul(rows, kernel)  # [5, 3]
        twice = tf.einsum("...ab,cb->...ac", product[None], product)  # [1, 5, 5]
        return tf.cond(
            tf.reduce_sum(rows) > 0,
            lambda: tf.matmul(twice, twice, transpose_a=True),
            lambda: twice,
        )

    graph = tf.function(products).get_concrete_function(rows, kernel).graph
    assert matrix_flops(graph) == 2 * (5 * 7 * 3 + 5 * 5 * 3 + 5 * 5 * 5)


@pytest.mark.parametrize("shape", [[None, 7], None])
def test_of_shapes_that_are_not_known_it_says_nothing(shape):
    graph = tf.function(lambda rows: tf.matmul(rows, rows, transpose_b=True))
    concrete = graph.get_concrete_function(tf.TensorSpec(shape))
    assert matrix_flops(concrete.graph) is None
