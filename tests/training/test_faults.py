"""Training that is killed, terminated, or that the disk, a worker or its numbers fail."""

import functools
import os
import random
import shutil
import signal

import numpy as np
import pytest
import tensorflow as tf

from experiments.benchmarks.runners import scalars
from mate_tf.training.loop import train
from mate_tf.weights.run import latest_checkpoint
from tests import forked
from tests.small import assert_same_features, cases
from tests.training import fault_runs
from tests.training.fault_runs import CONFIG


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A run that nothing happens to."""
    model_dir = tmp_path_factory.mktemp("whole")
    forked.finish(forked.start(fault_runs.run, model_dir))
    return model_dir


def until(model_dir, point, count, happens):
    """The exit code of a run to which something happens."""
    process = forked.start(fault_runs.run_until, model_dir, point, count, happens)
    process.join()
    return process.exitcode


@pytest.fixture
def ended(tmp_path, ended_at_step_7):
    """The folder of a run that SIGTERM ended at step 7."""
    return shutil.copytree(ended_at_step_7, tmp_path / "run")


@pytest.fixture(scope="module")
def ended_at_step_7(tmp_path_factory):
    model_dir = tmp_path_factory.mktemp("ended")
    assert until(model_dir, "step", 7, fault_runs.terminate) == 128 + signal.SIGTERM
    return model_dir


def assert_goes_on(model_dir, whole):
    """The run, started again, ends like one that nothing happens to."""
    forked.finish(forked.start(fault_runs.run, model_dir))
    assert_same_end(model_dir, whole)


def assert_same_end(model_dir, whole):
    actual, expected = (np.load(folder / "end.npz") for folder in (model_dir, whole))
    assert_same_features(dict(actual), dict(expected))
    of_runs = [(folder / "evaluations.jsonl").read_text() for folder in (model_dir, whole)]
    assert of_runs[0] == of_runs[1]
    names = [
        {str(path.relative_to(folder)) for path in folder.rglob("*") if "events." not in path.name}
        for folder in (model_dir, whole)
    ]
    assert names[0] == names[1]


@pytest.mark.medium
@pytest.mark.parametrize("seed", [0, *(pytest.param(n, marks=pytest.mark.slow) for n in (1, 2, 3))])
def test_killed_at_random_moments_a_run_ends_with_the_weights_of_a_whole_one(whole, tmp_path, seed):
    choice = random.Random(seed)
    for point in ("save", "step", "name", "sweep", "evaluation"):
        # In the middle of a step or of writing; or at the point itself.
        delay = choice.uniform(0.0, 0.03) if point in ("step", "save") else 0.0
        count = choice.randint(1, 4)
        kill = functools.partial(fault_runs.kill, delay)
        assert until(tmp_path, point, count, kill) == -signal.SIGKILL
    (tmp_path / "checkpoint.tmp0").touch()  # of a list that was being written
    assert_goes_on(tmp_path, whole)


def test_sigterm_saves_the_step_and_the_run_goes_on_from_it(whole, ended):
    assert (ended / "ckpt-7.index").exists() and not (ended / "end.npz").exists()
    assert_goes_on(ended, whole)
    actual, expected = (scalars(folder / "train") for folder in (ended, whole))
    assert {"loss", "learning_rate", "gradient_norm"} < expected.keys()
    for tag in ("loss", "learning_rate", "gradient_norm"):
        assert actual[tag] == pytest.approx(expected[tag], rel=1e-6), tag


def test_a_clock_that_goes_back_loses_nothing(whole, ended):
    for path in ended.rglob("*"):  # all that is there was written a day later than what follows
        os.utime(path, (path.stat().st_mtime + 86_400,) * 2)
    assert_goes_on(ended, whole)
    actual, expected = (scalars(folder / "train") for folder in (ended, whole))
    assert actual["loss"] == pytest.approx(expected["loss"], rel=1e-6)


def test_sigterm_while_the_end_is_evaluated_ends_what_comes_after_the_run(whole, tmp_path):
    last = len((whole / "evaluations.jsonl").read_text().splitlines())
    asked = until(tmp_path, "evaluation", last, fault_runs.terminate)
    assert asked == 128 + signal.SIGTERM
    assert (tmp_path / f"ckpt-{CONFIG.num_steps}.index").exists()
    assert not (tmp_path / "end.npz").exists()
    assert_goes_on(tmp_path, whole)


def test_a_second_sigterm_ends_at_once(tmp_path):
    twice = functools.partial(fault_runs.terminate, 2)
    assert until(tmp_path, "step", 7, twice) == -signal.SIGTERM
    assert not (tmp_path / "ckpt-7.index").exists()


@cases(
    "of_loss, step, message",
    (True, 1, "expected a finite loss, got nan at step 1; there is no checkpoint"),
    (True, 9, "a finite loss, got nan at step 9; the checkpoint of step 8 in .* is as it"),
    (False, 9, "finite weights, got NaN or infinity at step 9; the checkpoint of step 8"),
)
def test_numbers_that_are_none_end_a_run_before_its_checkpoint(tmp_path, of_loss, step, message):
    with pytest.raises(FloatingPointError, match=message):
        fault_runs.run_to_nan(tmp_path, of_loss, step)
    last = tf.train.latest_checkpoint(str(tmp_path))
    assert last == (str(tmp_path / "ckpt-8") if step == 9 else None)


@pytest.mark.parametrize("point", ["save", "step", "evaluation"])
def test_a_full_disk_leaves_the_last_checkpoint_from_which_the_run_goes_on(whole, tmp_path, point):
    copy = tmp_path / "copy"
    copy.mkdir()
    process = forked.start(fault_runs.run_on_full_disk, tmp_path / "disk", copy, point, 3)
    process.join()
    if process.exitcode == fault_runs.NOT_PERMITTED:
        pytest.skip("may not mount a small disk")
    assert process.exitcode == 0
    message = (copy / "message").read_text()
    assert "make room and start again in the same way" in message
    (copy / "message").unlink()
    assert_same_end(copy, whole)


def finished_workers(model_dir, steps=(0, 0), happens=fault_runs.kill):
    """The exit codes of two workers, to each of which something happened at its step, if any."""
    hosts = [f"localhost:{forked.free_port()}" for _ in steps]
    workers = [
        forked.start(fault_runs.run_worker, model_dir, hosts, index, step, happens)
        for index, step in enumerate(steps)
    ]
    for worker in workers:
        worker.join()
    return [worker.exitcode for worker in workers]


@pytest.fixture(scope="module")
def whole_of_two(tmp_path_factory):
    """A run of two workers that nothing happens to."""
    model_dir = tmp_path_factory.mktemp("whole_of_two")
    assert finished_workers(model_dir) == [0, 0]
    return model_dir


@pytest.mark.medium
@cases("steps, codes", ((8, 0), [-signal.SIGKILL, 3]), ((0, 8), [3, -signal.SIGKILL]))
def test_a_lost_worker_ends_the_other_and_both_go_on(whole_of_two, tmp_path, steps, codes):
    assert finished_workers(tmp_path, steps) == codes
    message = (tmp_path / "message").read_text()
    (tmp_path / "message").unlink()
    assert "expected all workers to answer" in message
    assert "the checkpoint of step 6" in message
    assert finished_workers(tmp_path) == [0, 0]
    assert_same_end(tmp_path, whole_of_two)


@pytest.mark.medium
def test_sigterm_to_one_worker_ends_all_at_the_same_step(whole_of_two, tmp_path):
    codes = finished_workers(tmp_path, (0, 7), fault_runs.terminate)
    assert codes == [128 + signal.SIGTERM] * 2
    assert (tmp_path / "ckpt-7.index").exists()
    assert finished_workers(tmp_path) == [0, 0]
    assert_same_end(tmp_path, whole_of_two)


def test_a_checkpoint_of_another_model_is_refused(tmp_path):
    task = fault_runs.make_task()
    other = tf.train.Checkpoint(weights={"kernel": tf.Variable([1.0])})
    tf.train.CheckpointManager(other, str(tmp_path), max_to_keep=1).save(checkpoint_number=3)
    with pytest.raises(ValueError, match=r"a checkpoint of this model .* in .*ckpt-3, got another"):
        train(task, CONFIG, tmp_path)


def test_without_a_list_or_with_one_of_lost_files_the_newest_whole_checkpoint_goes_on(whole, ended):
    (ended / "checkpoint").write_text("model_check")
    assert latest_checkpoint(ended) == str(ended / "ckpt-7")
    (ended / "checkpoint").unlink()
    assert latest_checkpoint(ended) == str(ended / "ckpt-7")
    for file in ended.glob("ckpt-7.*"):
        file.unlink()
    assert latest_checkpoint(ended) == str(ended / "ckpt-6")
    assert_goes_on(ended, whole)


@pytest.mark.parametrize("kind", ["index", "data-00000-of-00001"])
def test_a_damaged_checkpoint_is_named_with_what_to_do(ended, kind):
    file = ended / f"ckpt-7.{kind}"
    file.write_bytes(file.read_bytes()[:-20])
    with pytest.raises(ValueError, match=r"a whole checkpoint in .*ckpt-7, .*remove its files"):
        train(fault_runs.make_task(), CONFIG, ended)
