"""The benchmarks of the encoders, at a size of seconds."""

import json

import pytest
import tensorflow as tf

from experiments.benchmarks.runners import matrix_flops
from tests.small import run_binary


def run(folder, *options: str) -> str:
    small = "--num_layers=1", "--rounds=2", "--dtypes=float32", "--peers=False", "--lengths=64"
    result = run_binary(
        "experiments.benchmarks.benchmark", f"--output_dir={folder}", *small, *options
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


def measured(folder) -> list[dict]:
    return [json.loads(line) for line in (folder / "measurements.jsonl").read_text().splitlines()]


def test_measures_each_length_and_goes_on_where_it_stopped(tmp_path):
    first = run(tmp_path, "--architectures=tapas")
    lines = measured(tmp_path)
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
    again = run(tmp_path, "--architectures=tapas")
    assert again == first
    assert (tmp_path / "table.md").read_text() == first


def test_training_steps_are_measured_too(tmp_path):
    names = "tapas", "mate+recompute"
    options = "--mode=training", "--rounds=1", "--steps=1", f"--architectures={','.join(names)}"
    text = run(tmp_path, *options)
    lines = measured(tmp_path)
    assert [(line["of"], line["name"]) for line in lines] == [
        (of, name) for name in names for of in ("time", "memory")
    ]
    assert all(line["cpu_seconds"][0] > 0 for line in lines if line["of"] == "time")
    assert "| 64 | mate+recompute |" in text


def test_ratios_are_of_one_process_and_of_the_same_options(tmp_path):
    def timed(layers, names, **seconds):
        options = {"length": 64, "dtype": "float32", "threads": 1, "mode": "inference"}
        options |= {"batch_size": 1, "num_layers": layers, "columns": 8}
        for name, one in seconds.items():
            yield options | {"of": "memory", "name": name, "megabytes": 5.0}
            line = {"of": "time", "name": name, "names": names, "seconds": [one], "flops": None}
            yield options | line

    lines = [
        *timed(1, ["limit", "tapas"], limit=1.0, tapas=9.0),
        *timed(12, ["limit", "tapas"], limit=10.0, tapas=20.0),
        *timed(1, ["limit", "tapas", "mate"], limit=2.0, tapas=6.0, mate=4.0),
    ]
    (tmp_path / "measurements.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    text = run(tmp_path, "--architectures=tapas,mate")
    assert len(measured(tmp_path)) == len(lines)
    assert "num_layers 1, threads 1:" in text and "num_layers 12, threads 1:" in text
    assert "| 64 | tapas | 6,000 | 0 |  | 3.00 | 1.00 |  | 5 |" in text
    assert "| 64 | mate | 4,000 | 0 |  | 2.00 | 0.67 |  | 5 |" in text
    assert "| 64 | tapas | 20,000 | 0 |  | 2.00 | 1.00 |  | 5 |" in text
    assert "9,000" not in text


@pytest.mark.parametrize(
    ("flag", "message"),
    [
        ("--architectures=mate+recompute", "expected --architectures among tapas"),
        ("--lengths=16", "expected whole numbers above 16 as --lengths"),
    ],
)
def test_wrong_flags_are_refused(flag, message):
    result = run_binary("experiments.benchmarks.benchmark", flag)
    assert result.returncode == 1
    assert message in result.stderr


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


TINY = ("--config.encoder.hidden_size=12", "--config.encoder.intermediate_size=12")


@pytest.mark.parametrize("mode", ["inference", "training"])
def test_the_break_even_length_is_printed_as_a_setting(mode):
    flags = "--longest=128", "--rounds=1", f"--mode={mode}", *TINY
    result = run_binary("experiments.benchmarks.break_even", *flags)
    assert result.returncode == 0, result.stderr
    setting, length = result.stdout.strip().split("=")
    assert setting == "--config.encoder.attention.dense_up_to"
    assert int(length) in (0, 64, 128)
    assert "tokens: dense" in result.stderr


def test_a_preset_without_a_linear_evaluator_has_no_break_even_length():
    result = run_binary("experiments.benchmarks.break_even", "--config=wtq_minilm")
    assert result.returncode == 1
    assert "expected a config whose encoder has a linear evaluator" in result.stderr
