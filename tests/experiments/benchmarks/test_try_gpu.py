"""The trial of a GPU, in miniature: its steps, its report, and what it does where one fails."""

import json
import pathlib
import re

import pytest

from experiments.benchmarks import try_gpu
from experiments.benchmarks.try_gpu import STEPS, Trial, try_steps
from mate_tf.private_apis import profiled_seconds
from tests.small import ROOT, run_binary, run_python


def test_a_step_that_fails_is_reported_and_the_rest_goes_on(tmp_path, monkeypatch):
    def fails(trial: Trial) -> dict:
        return {"printed": trial.run("no_such_module")}

    steps = {"fails": fails, "works": lambda trial: {"losses": [2.0, 1.5, 1.25], "gpus": []}}
    monkeypatch.setattr(try_gpu, "STEPS", steps)
    results = dict(try_steps(Trial(tmp_path, is_small=True), [*steps]))
    message = "RuntimeError: no_such_module ended with 1: .* No module named no_such_module"
    with pytest.raises(RuntimeError, match=message):
        raise RuntimeError(results["fails"]["error"])
    assert results["works"]["losses"] == [2.0, 1.5, 1.25] and "error" not in results["works"]
    line = try_gpu._line(results["works"] | {"seconds": 0.5, "mate": {"ms": 12.3456}})
    assert line == "losses 2 ... 1.25, gpus , seconds 0.5, mate (ms 12.35)"


@pytest.mark.parametrize(
    ("there", "is_alike"), [(1.0005, True), (1.01, False), (float("nan"), False)]
)
def test_losses_are_alike_to_a_thousandth(there, is_alike):
    if is_alike:
        assert try_gpu._compared([2.0, 1.0], [2.0, there])["largest_difference"] > 4e-4
    else:
        with pytest.raises(ValueError, match=r"losses alike to 0\.001, got \[2\.0, 1\.0\] and"):
            try_gpu._compared([2.0, 1.0], [2.0, there])


def test_one_of_several_that_fails_does_not_keep_the_others_from_being_made(capsys):
    results = try_gpu._each(["1", "0", "2"], lambda name: {"share": 1 / int(name)})
    assert results["each"]["2"] == {"share": 0.5} and results["error"] == "1 of 3 failed: 0"
    assert capsys.readouterr().out.splitlines()[0] == "   1: share 1"
    assert "error" not in try_gpu._each(["1"], lambda name: {})


def test_the_document_and_the_help_name_the_steps():
    named = [line.split()[0] for line in (try_gpu.__doc__ or "").splitlines() if line[:4] == "    "]
    assert [name for name in named if name in STEPS] == [*STEPS] and len(STEPS) == 10
    document = (ROOT / "docs/accelerators.md").read_text(encoding="utf-8")
    for only in re.findall(r"try_gpu\.sh --only=([\w,]+)", document):
        assert set(only.split(",")) <= STEPS.keys()


@pytest.mark.medium
def test_a_profile_of_a_step_has_operations(tmp_path):
    import tensorflow as tf

    product = tf.function(lambda matrix: tf.matmul(matrix, matrix), autograph=False)
    product(tf.ones([64, 64]))
    tf.profiler.experimental.start(str(tmp_path))
    product(tf.ones([64, 64]))
    tf.profiler.experimental.stop()
    seconds = profiled_seconds(tmp_path)
    assert 0 < seconds["MatMul"] <= sum(seconds.values())
    assert try_gpu._measure_limit(32, repeats=2)["float32_tflops"] > 0


@pytest.mark.medium
def test_without_a_gpu_it_says_how_to_get_one(tmp_path):
    done = run_binary("experiments.benchmarks.try_gpu", f"--output_dir={tmp_path}/out")
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    if report["devices"]["gpus"]:
        pytest.skip("this machine has a GPU")
    assert done.returncode == 1 and done.stdout.startswith(" 1 devices: ok, python 3.")
    assert "expected a GPU, got none: nvidia-smi has to list one" in done.stderr


@pytest.mark.slow
def test_all_ten_steps_run_in_miniature(tmp_path):
    done = run_python(
        "-m", "experiments.benchmarks.try_gpu", "--small", f"--output_dir={tmp_path}/out"
    )
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads((pathlib.Path(tmp_path) / "out" / "report.json").read_text())
    assert [*report] == [*STEPS]
    assert len(report["losses"]["each"]["mate"]["losses"]) == 2
    assert len(report["speed"]["each"]) == 5
    assert report["answers"]["differ_from_cpu"] == 0
    assert len(report["profile"]) == 7  # five, all together, and the seconds
