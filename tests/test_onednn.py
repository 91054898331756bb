"""What the tests, which run without oneDNN, would not see: its kernels, on by default on x86."""

import os
import pathlib
import platform
import subprocess
import sys

import pytest

pytestmark = pytest.mark.medium

HERE = pathlib.Path(__file__).parent
# With AVX-512 that of TensorFlow 2.20 cannot execute a primitive on tensors of a few numbers, or
# damages memory, so that tiles are not compared for any tokens, and not all tests run with it.
TESTS = (
    "answers/test_inference.py layers/attention/test_multi_view.py "
    "layers/attention/test_evaluators.py::test_outputs_equal_those_of_all_pairs[windows] "
    "layers/attention/test_evaluators.py::test_gradients_equal_those_of_all_pairs[windows] "
    "layers/attention/test_softmax.py layers/attention/test_tiles.py "
    "layers/test_basic.py layers/test_encoder.py::test_sums_rows_and_has_sparse_gradients"
).split()


@pytest.mark.skipif(platform.machine() != "x86_64", reason="oneDNN is for x86")
def test_computes_the_same_with_onednn():
    options = ["-q", "-rs", "-m", "not slow", "-p", "no:xdist", "-p", "no:cacheprovider"]
    options += ["-k", "not any_number_of_rounds or neighbours"]  # of the relations one kind
    command = [sys.executable, "-m", "pytest", *options]
    result = subprocess.run(
        [*command, *(str(HERE / name) for name in TESTS)],
        env=os.environ | {"TF_ENABLE_ONEDNN_OPTS": "1"},
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stdout[-3000:]
    assert " passed" in result.stdout
    skipped = [line for line in result.stdout.splitlines() if line.startswith("SKIPPED")]
    assert [line for line in skipped if "this machine" not in line] == []
