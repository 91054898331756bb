"""The weights that the package had before a stage are read as those that it has."""

import subprocess

import pytest

from mate_tf.serving.stored import find_model
from tests.forked import ROOT
from tests.small import cases


@cases("stage, number", ("operators", 4), ("absent", 13), ("wordings", 14), ("conversations", 23))
def test_earlier_weights_are_a_model_of_so_many_operators(stage, number, tmp_path):
    script = [ROOT / "scripts" / "model_before.sh", tmp_path / "model", stage]
    result = subprocess.run(script, capture_output=True, text=True)
    if "invalid object name" in result.stderr:
        pytest.skip("needs the history of the repository")
    assert result.returncode == 0, result.stderr
    model = find_model(tmp_path / "model")
    assert len(model.task_config.operators) == number
    assert (number,) in model.shapes()  # of the operators' biases
