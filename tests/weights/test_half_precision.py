"""Weights alone, in half precision, in place of a run."""

import dataclasses
import shutil

import numpy as np
import pytest
from safetensors.numpy import save_file

import mate_tf
from mate_tf.answers.calibration import Calibration
from mate_tf.serving.export import export_stored
from mate_tf.serving.stored import find_model
from mate_tf.tables.table import Table
from mate_tf.weights import run as weights_of_runs
from mate_tf.weights.folder import read_calibration, write_calibration
from mate_tf.weights.run import export_weights, run_weights, weights_by_path
from tests.small import without_tables, write_run

TABLE = Table.from_rows([["a", "b"], ["c d", "e"], ["f", "g h"], ["c", "e e"]])
QUESTIONS = ["c e", "a g", "h h h"]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return write_run(tmp_path_factory.mktemp("run"))


@pytest.fixture
def weights(run, tmp_path):
    export_weights(run, tmp_path / "weights")
    return tmp_path / "weights"


def test_weights_are_those_of_the_run_to_half_precision(run, weights):
    assert len({path.stat().st_mode for path in weights.iterdir()}) == 1  # all can be read
    names = sorted(path.name for path in weights.iterdir())
    assert names == ["config.json", "conversion.json", "model.safetensors", "vocab.txt"]
    assert run_weights(weights).step == run_weights(run).step == 1
    of_run, here = (weights_by_path(find_model(path).model()) for path in (run, weights))
    assert of_run.keys() == here.keys()
    for name, variable in of_run.items():
        np.testing.assert_array_equal(
            here[name].numpy(), variable.numpy().astype(np.float16).astype(np.float32)
        )


@pytest.mark.medium
def test_they_answer_like_the_run_and_take_their_calibration_along(run, weights, tmp_path):
    calibration = Calibration(2.0, -1.0)
    write_calibration(weights, calibration)
    assert read_calibration(weights) == calibration
    of_run = mate_tf.from_pretrained(run).answer(TABLE, QUESTIONS)
    here = mate_tf.from_pretrained(weights).answer(TABLE, QUESTIONS)
    assert [answer.text for answer in here] == [answer.text for answer in of_run]
    # Half precision has 11 bits; scores are of sums of a few hundred products.
    expected = calibration.apply([answer.score for answer in of_run])
    assert [answer.score for answer in here] == pytest.approx(expected, abs=1e-2)
    with without_tables():
        export_stored(find_model(weights), tmp_path / "exported")
    assert read_calibration(tmp_path / "exported") == calibration
    export_weights(run, weights)  # others in their place have no calibration of these
    assert read_calibration(weights) is None


@pytest.mark.parametrize("value", [1e5, float("nan"), float("-inf")])
def test_a_weight_beyond_half_precision_is_refused(tmp_path, value):
    tensors = {"fine": np.ones(2, np.float32), "wide": np.array([0.0, value], np.float32)}
    with pytest.raises(ValueError, match="weights up to 65504, got a larger one in 'wide'"):
        weights_of_runs.packed(tensors, 1)


def test_what_breaks_off_leaves_the_folder_as_it_was_or_no_weights(run, weights, monkeypatch):
    before = {path.name: path.read_bytes() for path in weights.iterdir()}

    def refuse(*_):
        raise ValueError("too large")

    with monkeypatch.context() as patch:
        patch.setattr(weights_of_runs, "packed", refuse)
        with pytest.raises(ValueError, match="too large"):
            export_weights(run, weights)
    assert {path.name: path.read_bytes() for path in weights.iterdir()} == before
    monkeypatch.setattr(weights_of_runs, "complete_file", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError, match="division by zero"):
        export_weights(run, weights)
    assert not (weights / weights_of_runs.FILE).exists()  # beside another config


def test_what_is_no_run_is_refused(run, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"which has no config\.json"):
        export_weights(tmp_path, tmp_path / "out")
    with pytest.raises(ValueError, match="another folder than the run's"):
        export_weights(run, run)
    shutil.copytree(run, tmp_path / "copy")
    with pytest.raises(ValueError, match=r"without checkpoints, got that of a run, .*copy"):
        export_weights(run, tmp_path / "copy")
    shutil.copytree(run, tmp_path / "run", ignore=shutil.ignore_patterns("ckpt*", "checkpoint"))
    with pytest.raises(FileNotFoundError, match="expected a checkpoint in"):
        export_weights(tmp_path / "run", tmp_path / "out")


def test_damaged_files_are_named(weights):
    path = weights / weights_of_runs.FILE
    save_file({"a": np.ones(2, np.float16)}, path)
    with pytest.raises(ValueError, match="weights of a run with their step in"):
        _ = run_weights(weights).step
    save_file({"a": np.ones(2, np.int16)}, path)
    with pytest.raises(ValueError, match=r"expected weights of .*, got I16 for 'a' in .*model"):
        run_weights(weights)
    path.write_bytes(b"no tensors")
    with pytest.raises(ValueError, match=r"expected safetensors in .*model\.safetensors"):
        find_model(weights)


def test_weights_of_another_model_are_refused(weights):
    stored = find_model(weights)
    other = dataclasses.replace(stored.encoder_config, num_layers=2)
    with pytest.raises(ValueError, match=r"the configuration's size in .* in 2 layers, got"):
        stored._replace(encoder_config=other).model()
