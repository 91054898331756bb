"""Strategies by name: which there are on a machine without accelerators, and what is refused."""

import json

import pytest
import tensorflow as tf

from mate_tf.training.distribution import make_strategy
from tests.small import two_cpus

HOSTS = "127.0.0.1:1,127.0.0.1:2"
WORKERS = {"name": "multi_worker_mirrored", "worker_hosts": HOSTS}

HAS_GPU = bool(tf.config.list_physical_devices("GPU"))


def of_no_gpu(*values):
    skip = pytest.mark.skipif(HAS_GPU, reason="needs a machine without a GPU")
    return pytest.param(*values, marks=skip)


@pytest.fixture(autouse=True)
def no_cluster(monkeypatch):
    monkeypatch.delenv("TF_CONFIG", raising=False)


def test_the_cpu_is_taken_whole_or_divided():
    assert make_strategy() is tf.distribute.get_strategy()
    strategy = make_strategy(num_gpus=0)
    assert strategy.extended.worker_devices == ("/job:localhost/replica:0/task:0/device:CPU:0",)
    assert len(two_cpus()) == 2
    assert make_strategy("mirrored", num_virtual_cpus=2).num_replicas_in_sync == 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"name": "parameter_server"}, "expected a strategy of one_device, mirrored, .*, got 'p"),
        ({"task_index": 0}, "with the strategy one_device, no options but num_gpus, got task_ind"),
        ({"name": "mirrored", "tpu": "local"}, "no options but num_gpus, .*, got tpu"),
        ({"name": "tpu"}, "expected the TPU's name or address, or local"),
        ({"name": "multi_worker_mirrored"}, "expected worker_hosts and task_index, or TF_CONFIG"),
        (WORKERS, "expected task_index from 0 to 1, a place in worker_hosts, got None"),
        (WORKERS | {"task_index": 2}, "task_index from 0 to 1, a place in worker_hosts, got 2"),
        ({"name": "mirrored", "num_virtual_cpus": 2, "num_gpus": 1}, "expected either num_gpus or"),
        of_no_gpu({"name": "mirrored"}, "expected at least one GPU to mirror over, got none; num"),
        of_no_gpu({"name": "mirrored", "num_gpus": 2}, "num_gpus from 0 to 0 with mirrored here"),
        of_no_gpu({"num_gpus": 1}, "expected num_gpus from 0 to 0 with one_device here, got 1"),
    ],
)
def test_options_that_cannot_be_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        make_strategy(**options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "the strategy multi_worker_mirrored for the 2 workers of TF_CONFIG, got o"),
        (WORKERS | {"task_index": 0}, "expected either worker_hosts or TF_CONFIG, got both"),
        ({"name": WORKERS["name"], "task_index": 0}, "expected worker_hosts and task_index, or T"),
    ],
)
def test_a_cluster_of_the_environment_is_not_passed_over(monkeypatch, options, message):
    config = {"cluster": {"worker": HOSTS.split(",")}, "task": {"type": "worker", "index": 0}}
    monkeypatch.setenv("TF_CONFIG", json.dumps(config))
    with pytest.raises(ValueError, match=message):
        make_strategy(**options)
