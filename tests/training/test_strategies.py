"""Strategies by name: which there are on a machine without accelerators, and what is refused."""

import json
import re

import pytest
import tensorflow as tf

from mate_tf.training.distribution import describe_devices, make_strategy
from tests.small import cases, stored_cases, two_cpus

HOSTS = "127.0.0.1:1,127.0.0.1:2"
WORKERS = {"name": "multi_worker_mirrored", "worker_hosts": HOSTS}

HAS_GPU = bool(tf.config.list_physical_devices("GPU"))


@pytest.fixture(autouse=True)
def no_cluster(monkeypatch):
    monkeypatch.delenv("TF_CONFIG", raising=False)


def test_the_cpu_is_taken_whole_or_divided_and_the_first_line_names_it(monkeypatch):
    assert make_strategy() is tf.distribute.get_strategy()
    strategy = make_strategy(num_gpus=0)
    assert strategy.extended.worker_devices == ("/job:localhost/replica:0/task:0/device:CPU:0",)
    assert len(two_cpus()) == 2
    for name in ("mirrored", "auto"):
        assert make_strategy(name, num_virtual_cpus=2).num_replicas_in_sync == 2
    one = describe_devices("float32")
    assert re.match(r"training on 1 x CPU \(one device, 1 replicas in all; \d+ cores, \d+ GB", one)
    assert one.endswith("), float32, XLA off")
    monkeypatch.setenv("TF_XLA_FLAGS", "--tf_xla_auto_jit=2")
    with make_strategy(num_virtual_cpus=2).scope():
        two = describe_devices("mixed_bfloat16")
    assert two.startswith("training on 2 x CPU (MirroredStrategy, 2 replicas in all; ")
    assert two.endswith("), mixed_bfloat16, XLA on")


@stored_cases("num_there, options, chosen")
def test_auto_takes_all_that_is_there_or_what_is_asked_for(monkeypatch, num_there, options, chosen):
    there = {"GPU": [None] * num_there, "CPU": [None]}
    monkeypatch.setattr(tf.config, "list_physical_devices", there.__getitem__)
    monkeypatch.setattr(tf.distribute, "get_strategy", lambda: "_Default")
    made = {
        "MirroredStrategy": lambda devices: f"Mirrored {len(devices)}",
        "OneDeviceStrategy": lambda device: f"OneDevice {device}",
        "MultiWorkerMirroredStrategy": lambda: "MultiWorker",
        "TPUStrategy": lambda resolver: "TPU",
    }
    for name, make in made.items():
        monkeypatch.setattr(tf.distribute, name, make)
    resolver = tf.distribute.cluster_resolver.TPUClusterResolver
    monkeypatch.setattr(resolver, "connect", lambda tpu: tpu)
    monkeypatch.setenv("TF_CONFIG", "")  # which several workers write
    assert make_strategy(**options) == chosen


@cases(
    "options, message",
    ({"name": "parameter_server"}, "expected a strategy of one_device, mirrored, .*, got 'p"),
    ({"name": "one_device", "task_index": 0}, "one_device, no options but num_gpus, got task_ind"),
    ({"name": "mirrored", "tpu": "local"}, "no options but num_gpus, .*, got tpu"),
    ({"name": "tpu"}, "expected the TPU's name or address, or local"),
    ({"name": "multi_worker_mirrored"}, "expected worker_hosts and task_index, or TF_CONFIG"),
    (WORKERS, "expected from 0 to 1 as task_index, a place in worker_hosts, got None"),
    (WORKERS | {"task_index": 2}, "from 0 to 1 as task_index, a place in worker_hosts, got 2"),
    ({"name": "mirrored", "num_virtual_cpus": 2, "num_gpus": 1}, "expected either num_gpus or"),
)
def test_options_that_cannot_be_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        make_strategy(**options)


@pytest.mark.skipif(HAS_GPU, reason="needs a machine without a GPU")
@cases(
    "options, message",
    ({"name": "mirrored"}, "expected at least one GPU to mirror over, got none; num"),
    ({"num_gpus": 2}, "0 alone as num_gpus with mirrored here, got 2; pip install .*train,gpu"),
    ({"num_gpus": 1}, "0 alone as num_gpus with one_device here, got 1; pip install .*train,gpu"),
    ({"tpu": "local"}, "expected the TPU local, got an error: .*install_build.sh ins"),
)
def test_devices_that_are_not_there_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        make_strategy(**options)


@cases(
    "options, message",
    ({"name": "one_device"}, "multi_worker_mirrored for the 2 workers of TF_CONFIG, got one_dev"),
    (WORKERS | {"task_index": 0}, "expected either worker_hosts or TF_CONFIG, got both"),
    ({"name": WORKERS["name"], "task_index": 0}, "expected worker_hosts and task_index, or T"),
)
def test_a_cluster_of_the_environment_is_not_passed_over(monkeypatch, options, message):
    config = {"cluster": {"worker": HOSTS.split(",")}, "task": {"type": "worker", "index": 0}}
    monkeypatch.setenv("TF_CONFIG", json.dumps(config))
    with pytest.raises(ValueError, match=message):
        make_strategy(**options)
