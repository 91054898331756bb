"""Training on several replicas against one: the same losses and weights, and what is refused."""

import numpy as np
import pytest
import tensorflow as tf

from tests.training import distributed_runs
from tests.training.distributed_runs import NUM_STEPS, TASKS, losses


@pytest.fixture(scope="module")
def two_devices():
    cpus = tf.config.list_logical_devices("CPU")
    if len(cpus) < 2:
        pytest.skip("needs two logical CPU devices")
    # Collectives of several strategies in one process would collide on CPUs.
    return tf.distribute.MirroredStrategy(cpus[:2], tf.distribute.ReductionToOneDevice())


@pytest.fixture(scope="module")
def one_device(tmp_path_factory):
    folder = tmp_path_factory.mktemp("one_device")
    distributed_runs.run(folder)
    return folder


def assert_same(folder, expected):
    for name in TASKS:
        assert len(losses(expected / name)) == NUM_STEPS
        np.testing.assert_allclose(losses(folder / name), losses(expected / name), rtol=1e-5)


def test_two_devices_have_the_losses_of_one(two_devices, one_device, tmp_path):
    with two_devices.scope():
        distributed_runs.run(tmp_path)
    assert_same(tmp_path, one_device)
