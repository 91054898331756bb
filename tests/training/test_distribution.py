"""Training on several replicas against one: the same losses and weights, and what is refused."""

import contextlib
import dataclasses
import re
import socket
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf

from mate_tf.training.distribution import check_batch_size, distribute_batches
from mate_tf.training.loop import train
from mate_tf.weights.run import run_weights
from tests.small import ROOT, best_evaluation, two_cpus
from tests.training import distributed_runs
from tests.training.distributed_runs import CONFIG, NUM_STEPS, TASKS, losses

# Sums in another order differ by some float32 roundings of 6e-8, which 20 steps may carry on.
LOSS_TOLERANCE = 1e-5
# Of weights of about 1 after 20 updates of 0.003, where gradients near 0 may differ in sign.
WEIGHT_TOLERANCE = 1e-3
SECONDS = 300
pytestmark = pytest.mark.medium


@pytest.fixture(scope="module", autouse=True)
def workers(tmp_path_factory):
    """The folder and the processes of two workers, which start while other tests run."""
    folder = tmp_path_factory.mktemp("workers")
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(2)]
        hosts = ",".join(f"127.0.0.1:{listening.getsockname()[1]}" for listening in sockets)
    program = [sys.executable, "-m", "tests.training.distributed_runs"]
    with contextlib.ExitStack() as stack:
        processes = []
        for index in range(2):
            log = stack.enter_context((folder / f"{index}.log").open("w"))
            process = subprocess.Popen(
                [*program, str(index), hosts, str(folder)], cwd=ROOT, stdout=log, stderr=log
            )
            stack.callback(process.wait)
            stack.callback(process.kill)  # before it is waited for
            processes.append(process)
        yield folder, processes


@pytest.fixture(scope="module")
def two_devices():
    return tf.distribute.MirroredStrategy(two_cpus())


@pytest.fixture(scope="module")
def one_device(tmp_path_factory):
    folder = tmp_path_factory.mktemp("one_device")
    distributed_runs.run(folder)
    return folder


def best_weights(folder):
    return {name: weight.read() for name, weight in run_weights(folder).weights.items()}


def assert_same_training(folder, expected):
    for name in TASKS:
        found, wanted = losses(folder / name), losses(expected / name)
        assert len(wanted) == NUM_STEPS and wanted[-1] < wanted[0]
        np.testing.assert_allclose(found, wanted, rtol=LOSS_TOLERANCE)
        scores = [best_evaluation(path / name, "score")["score"] for path in (folder, expected)]
        assert scores[0] == pytest.approx(scores[1], rel=LOSS_TOLERANCE)
        averages, wanted_averages = best_weights(folder / name), best_weights(expected / name)
        assert averages.keys() == wanted_averages.keys() != set()
        for key, average in averages.items():
            np.testing.assert_allclose(
                average, wanted_averages[key], rtol=0, atol=WEIGHT_TOLERANCE, err_msg=key
            )


def test_two_devices_have_the_losses_of_one(two_devices, one_device, tmp_path):
    with two_devices.scope():
        distributed_runs.run(tmp_path)
    assert_same_training(tmp_path, one_device)


def test_two_workers_have_the_losses_of_one(workers, one_device):
    folder, processes = workers
    codes = [process.wait(SECONDS) for process in processes]
    outputs = [(folder / f"{index}.log").read_text() for index in range(2)]
    assert codes == [0, 0], "\n".join(outputs)
    assert_same_training(folder, one_device)
    for output in outputs:
        # What differs between workers is refused by each.
        (refusal,) = re.findall("^refused: .*", output, re.MULTILINE)
        assert "expected step 0 on every worker, as on the chief, got another on 1" in refusal
    # The chief's second evaluation, which was no better, ended the run for both.
    assert len(list((folder / "table" / "train").glob("events.*"))) == 1
    names = {path.name for path in (folder / "stops_early").iterdir()}
    assert names >= {"ckpt-4.index", "best", "train", "dev", "evaluations.jsonl"}
    assert not any("worker" in name or "tmp" in name for name in names)


def test_batches_are_dealt_out_in_their_order(two_devices):
    def dataset():
        return tf.data.Dataset.range(12).map(lambda number: {"number": number}).batch(4, True)

    with two_devices.scope():
        batches = list(distribute_batches(dataset))
    shares = [[share.numpy().tolist() for share in batch["number"].values] for batch in batches]
    assert shares == [[[0, 1], [2, 3]], [[4, 5], [6, 7]], [[8, 9], [10, 11]]]


@pytest.mark.parametrize(("batch_size", "num_parts", "multiple"), [(7, 1, 2), (6, 2, 4)])
def test_a_batch_that_cannot_be_divided_is_refused(two_devices, batch_size, num_parts, multiple):
    check_batch_size(batch_size, num_parts)
    message = (
        rf"batch_size to be a multiple of {multiple} \(2 replicas, "
        rf"gradient_accumulation_steps {num_parts}\), got {batch_size}"
    )
    with two_devices.scope():
        check_batch_size(multiple, num_parts)
        with pytest.raises(ValueError, match=message):
            check_batch_size(batch_size, num_parts)


def test_a_batch_that_cannot_be_divided_is_refused_before_the_first_step(two_devices, tmp_path):
    with two_devices.scope():
        task = TASKS["masked"]()
        task.model.compute_task_loss = lambda batch, outputs: pytest.fail("makes a step")
        short = dataclasses.replace(
            task, train_dataset=lambda step: task.train_dataset(step).unbatch().batch(6, True)
        )
        with pytest.raises(ValueError, match=r"multiple of 4 \(2 replicas"):
            train(short, CONFIG, tmp_path)
