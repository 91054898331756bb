"""Training that is killed, terminated, or that the disk, a worker or its numbers fail."""

import functools
import random
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


def terminated(model_dir, count=7, times=1, point="step"):
    """The exit code of a run that is asked to end."""
    process = forked.start(fault_runs.run_terminated, model_dir, count, times, point)
    process.join()
    return process.exitcode


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
        process = forked.start(fault_runs.run_killed, tmp_path, point, count, delay)
        process.join()
        assert process.exitcode == -signal.SIGKILL
    (tmp_path / "checkpoint.tmp0").touch()  # of a list that was being written
    forked.finish(forked.start(fault_runs.run, tmp_path))
    assert_same_end(tmp_path, whole)


@pytest.mark.parametrize("point", ["step", "evaluation"])
def test_sigterm_saves_the_step_and_the_run_goes_on_from_it(whole, tmp_path, point):
    """While the end is evaluated, it ends what comes after the run."""
    last = len((whole / "evaluations.jsonl").read_text().splitlines())
    count = 7 if point == "step" else last
    assert terminated(tmp_path, count, point=point) == 128 + signal.SIGTERM
    assert (tmp_path / f"ckpt-{7 if point == 'step' else CONFIG.num_steps}.index").exists()
    assert not (tmp_path / "end.npz").exists()
    forked.finish(forked.start(fault_runs.run, tmp_path))
    assert_same_end(tmp_path, whole)


def test_a_second_sigterm_ends_at_once(tmp_path):
    assert terminated(tmp_path, times=2) == -signal.SIGTERM
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


def finished_workers(model_dir, *happenings):
    """Two workers that have ended, to each of which something happened."""
    hosts = [f"localhost:{forked.free_port()}" for _ in happenings]
    workers = [
        forked.start(fault_runs.run_worker, model_dir, hosts, index, happening)
        for index, happening in enumerate(happenings)
    ]
    for worker in workers:
        worker.join()
    return workers


@pytest.fixture(scope="module")
def whole_of_two(tmp_path_factory):
    """A run of two workers that nothing happens to."""
    model_dir = tmp_path_factory.mktemp("whole_of_two")
    workers = finished_workers(model_dir, *[fault_runs.nothing] * 2)
    assert [worker.exitcode for worker in workers] == [0, 0]
    return model_dir


def assert_goes_on(model_dir, whole_of_two):
    """The two workers, started again, end with the weights of those that nothing happens to."""
    workers = finished_workers(model_dir, *[fault_runs.nothing] * 2)
    assert [worker.exitcode for worker in workers] == [0, 0]
    assert_same_end(model_dir, whole_of_two)


@pytest.mark.medium
@pytest.mark.parametrize("lost", [0, 1])
def test_a_lost_worker_ends_the_other_and_both_go_on(whole_of_two, tmp_path, lost):
    happenings = [fault_runs.nothing] * 2
    happenings[lost] = functools.partial(fault_runs.kill_at_step, 8)
    workers = finished_workers(tmp_path, *happenings)
    assert workers[lost].exitcode == -signal.SIGKILL
    assert workers[1 - lost].exitcode == 3
    message = (tmp_path / "message").read_text()
    (tmp_path / "message").unlink()
    assert "expected all workers to answer" in message
    assert "the checkpoint of step 6" in message
    assert_goes_on(tmp_path, whole_of_two)


@pytest.mark.medium
def test_sigterm_to_one_worker_ends_all_at_the_same_step(whole_of_two, tmp_path):
    asked = functools.partial(fault_runs.terminate_at_step, 7)
    workers = finished_workers(tmp_path, fault_runs.nothing, asked)
    assert [worker.exitcode for worker in workers] == [128 + signal.SIGTERM] * 2
    assert (tmp_path / "ckpt-7.index").exists()
    assert_goes_on(tmp_path, whole_of_two)


def test_a_checkpoint_of_another_model_is_refused(tmp_path):
    task = fault_runs.make_task()
    other = tf.train.Checkpoint(weights={"kernel": tf.Variable([1.0])})
    tf.train.CheckpointManager(other, str(tmp_path), max_to_keep=1).save(checkpoint_number=3)
    with pytest.raises(ValueError, match=r"a checkpoint of this model .* in .*ckpt-3, got another"):
        train(task, CONFIG, tmp_path)


def test_without_a_list_or_with_one_of_lost_files_the_newest_whole_checkpoint_goes_on(
    whole, tmp_path
):
    terminated(tmp_path)
    for damage in ("text", "no list", "lost files"):
        if damage == "text":
            (tmp_path / "checkpoint").write_text("model_check")
        elif damage == "no list":
            (tmp_path / "checkpoint").unlink()
        else:
            for file in tmp_path.glob("ckpt-7.*"):
                file.unlink()
        expected = 6 if damage == "lost files" else 7
        assert latest_checkpoint(tmp_path) == str(tmp_path / f"ckpt-{expected}")
    forked.finish(forked.start(fault_runs.run, tmp_path))
    assert_same_end(tmp_path, whole)


@pytest.mark.parametrize("kind", ["index", "data-00000-of-00001"])
def test_a_damaged_checkpoint_is_named_with_what_to_do(tmp_path, kind):
    terminated(tmp_path)
    file = tmp_path / f"ckpt-7.{kind}"
    file.write_bytes(file.read_bytes()[:-20])
    with pytest.raises(ValueError, match=r"a whole checkpoint in .*ckpt-7, .*remove its files"):
        train(fault_runs.make_task(), CONFIG, tmp_path)


def test_a_point_in_tensorboard_is_that_of_a_run_that_sigterm_did_not_end(whole, tmp_path):
    terminated(tmp_path)
    forked.finish(forked.start(fault_runs.run, tmp_path))
    actual, expected = (scalars(folder / "train") for folder in (tmp_path, whole))
    assert {"loss", "learning_rate", "gradient_norm"} < expected.keys()
    for tag in ("loss", "learning_rate", "gradient_norm"):
        assert actual[tag] == pytest.approx(expected[tag], rel=1e-6), tag
