"""Programs to be timed on a GPU: their arguments and results as the spec tells them, and tables."""

import dataclasses
import json
import lzma

import numpy as np
import pytest

from experiments.benchmarks import gpu_programs, gpu_run
from experiments.benchmarks.gpu_programs import PROGRAMS, Program, write

# Long enough for MATE's window.
LENGTH = 520
FEATURES = 10


@pytest.fixture
def small_encoders(monkeypatch):
    real = gpu_programs.encoder_config

    def small(name, options):
        sizes = dict(vocab_size=30000, hidden_size=12, num_heads=2, intermediate_size=16)
        return dataclasses.replace(real(name, options), **sizes)

    monkeypatch.setattr(gpu_programs, "encoder_config", small)


def written(folder, *programs, **options):
    write(programs, folder, num_layers=1, **options)
    return json.loads((folder / "spec.json").read_text(encoding="utf-8"))["programs"]


def test_every_program_has_a_name_of_its_own_and_the_first_say_most():
    assert len({one.name for one in PROGRAMS}) == len(PROGRAMS)
    assert {one.length for one in PROGRAMS[:8]} == {2048, 8192}
    assert {one.kind for one in PROGRAMS} == {"forward", "training", "attention"}


@pytest.mark.usefixtures("small_encoders")
def test_a_forward_pass_is_written_with_its_arguments_and_what_it_should_give(tmp_path):
    (entry,) = written(tmp_path, Program("forward", "mate", LENGTH, "float32"), expected="mate")
    hlo = lzma.decompress((tmp_path / f"{entry['name']}.hlo.xz").read_bytes())
    assert b"encoder" in hlo
    with np.load(tmp_path / entry["inputs"]) as features:
        values = gpu_run.drawn(entry["arguments"], dict(features))
        again = gpu_run.drawn(entry["arguments"], dict(features))
    for argument, value, other in zip(entry["arguments"], values, again, strict=True):
        assert value.shape == tuple(argument["shape"])
        assert value.dtype == argument["dtype"]
        np.testing.assert_array_equal(value, other)
    kinds = [argument["filling"] for argument in entry["arguments"]]
    assert len(set(kinds[:FEATURES])) == FEATURES
    assert set(kinds[FEATURES:]) == {"normal", 0.0, 1.0}
    kernels = [value for value in values if value.shape == (12, 12)]
    assert not np.array_equal(kernels[0], kernels[1])
    expected = np.load(tmp_path / entry["expected"])
    assert expected.shape == (1, -(-LENGTH // entry["every"]), 12)
    assert np.isfinite(expected).all()
    assert entry["updates"] == []


@pytest.mark.usefixtures("small_encoders")
def test_a_step_tells_which_results_take_the_place_of_which_arguments(tmp_path):
    (entry,) = written(tmp_path, Program("training", "tableformer", 32, batch_size=2))
    arguments = entry["arguments"]
    results, updated = zip(*entry["updates"], strict=True)
    assert len(set(results)) == len(set(updated)) == len(results)
    assert min(updated) > FEATURES  # the features and the label stay
    kernels = [index for index, one in enumerate(arguments) if one["filling"] == "normal"]
    assert set(kernels) <= set(updated)
    # Adam's two averages of each start at zero.
    zeros = [one for one in arguments if one["filling"] == 0 and one["shape"] == [30000, 12]]
    assert len(zeros) == 2


@pytest.mark.usefixtures("small_encoders")
def test_attention_alone_has_no_weights(tmp_path):
    (entry,) = written(tmp_path, Program("attention", "mate_exact", 900))
    *features, query, key, value = entry["arguments"]
    assert len(features) == FEATURES
    expected = {"shape": [1, 900, 2, 6], "dtype": "bfloat16", "filling": "normal"}
    assert query == key == value == expected


def test_a_table_has_times_beside_the_limit_of_as_many_tokens():
    common = {"dtype": "bfloat16", "length": 512}
    rows = [
        {"kind": "versions", "device": "a card"},
        common | {"kind": "limit", "architecture": "limit", "length": 1024, "ms": 2.0},
        common | {"kind": "training", "architecture": "mate", "batch_size": 2, "ms": 9.0, "gb": 3},
        common | {"kind": "forward", "architecture": "tapas", "batch_size": 1, "error": "no room"},
    ]
    assert gpu_run.tables(rows).splitlines() == [
        "Training step, bfloat16, ms (times the limit):",
        "",
        "| | 2 x 512 |",
        "|---|---:|",
        "| the limit | 6.00 |",
        "| mate | 9.00 (1.5) |",
        "",
        "Training step, bfloat16, GB:",
        "",
        "| | 2 x 512 |",
        "|---|---:|",
        "| mate | 3.00 |",
    ]
