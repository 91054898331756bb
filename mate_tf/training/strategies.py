"""The ways to train on several devices: tf.distribute's strategies under Google's usual names."""

import json
import os
from typing import Any, Literal

import tensorflow as tf

StrategyName = Literal["one_device", "mirrored", "multi_worker_mirrored", "tpu"]
# Which options each strategy reads.
_OPTIONS = {
    "one_device": ("num_gpus",),
    "mirrored": ("num_gpus", "num_virtual_cpus", "all_reduce_alg"),
    "multi_worker_mirrored": ("worker_hosts", "task_index", "all_reduce_alg"),
    "tpu": ("tpu",),
}


def make_strategy(
    name: StrategyName = "one_device",
    *,
    num_gpus: int | None = None,
    num_virtual_cpus: int | None = None,
    tpu: str | None = None,
    worker_hosts: str | None = None,
    task_index: int | None = None,
    all_reduce_alg: str | None = None,
) -> tf.distribute.Strategy:
    """A strategy, whose scope a model is made and trained in; before TensorFlow does anything else.

    Args:
        name: "one_device", "mirrored" (the devices of this machine), "multi_worker_mirrored"
            (those of several machines) or "tpu".
        num_gpus: how many GPUs; None for one, or to mirror over all that there are; 0 for the CPU.
        num_virtual_cpus: divides the CPU into as many devices to mirror over, to try on a machine
            without GPUs what happens on several.
        tpu: name or address of the TPU, "local" on its own host.
        worker_hosts: of all workers, "host:port,host:port", in the same order on each; None if
            TF_CONFIG says it.
        task_index: which of them this one is, from 0.
        all_reduce_alg: how gradients are summed; mirrored: "nccl" or "hierarchical_copy", several
            workers: "ring" or "nccl"; None for TensorFlow's choice.

    Raises:
        ValueError: if an option is not one of the strategy, or asks for devices that there are not.
    """
    options = {
        "num_gpus": num_gpus,
        "num_virtual_cpus": num_virtual_cpus,
        "tpu": tpu,
        "worker_hosts": worker_hosts,
        "task_index": task_index,
        "all_reduce_alg": all_reduce_alg,
    }
    _check_options(name, {key for key, value in options.items() if value is not None})
    if name == "multi_worker_mirrored":
        _configure_workers(worker_hosts, task_index)
        return _several_workers(all_reduce_alg)
    if name == "tpu" and tpu is None:
        raise ValueError("expected the TPU's name or address, or local on its own host, in tpu")
    if name == "mirrored" and num_virtual_cpus is not None:
        return _mirrored_cpus(num_virtual_cpus, num_gpus)
    if name == "one_device" and num_gpus is None:
        return tf.distribute.get_strategy()  # the default one, on a GPU if there is one
    from official.common.distribute_utils import get_distribution_strategy

    if name == "tpu":
        return get_distribution_strategy(name, tpu_address=tpu)
    num_visible = len(tf.config.list_physical_devices("GPU"))
    most = min(num_visible, 1) if name == "one_device" else num_visible
    if num_gpus is not None and not 0 <= num_gpus <= most:
        raise ValueError(f"expected num_gpus from 0 to {most} with {name} here, got {num_gpus}")
    num_gpus = most if num_gpus is None else num_gpus
    if name == "mirrored" and not num_gpus:
        raise ValueError(
            "expected at least one GPU to mirror over, got none; num_virtual_cpus divides the CPU "
            "into devices"
        )
    return get_distribution_strategy(name, num_gpus=num_gpus, all_reduce_alg=all_reduce_alg)


def _check_options(name: str, given: set[str]) -> None:
    if name not in _OPTIONS:
        raise ValueError(f"expected a strategy of {', '.join(_OPTIONS)}, got {name!r}")
    if others := sorted(given - set(_OPTIONS[name])):
        raise ValueError(
            f"expected, with the strategy {name}, no options but {', '.join(_OPTIONS[name])}, got "
            f"{', '.join(others)}"
        )
    cluster = _workers_of_environment()
    if name != "multi_worker_mirrored" and len(cluster) > 1:
        raise ValueError(
            f"expected the strategy multi_worker_mirrored for the {len(cluster)} workers of "
            f"TF_CONFIG, got {name}, with which each would train alone"
        )


def _workers_of_environment() -> list[str]:
    config: dict[str, Any] = json.loads(os.environ.get("TF_CONFIG") or "{}")
    cluster = config.get("cluster", {})
    return [*cluster.get("chief", []), *cluster.get("worker", [])]


def _configure_workers(worker_hosts: str | None, task_index: int | None) -> None:
    if worker_hosts is None:
        if task_index is not None or not _workers_of_environment():
            raise ValueError(
                "expected worker_hosts and task_index, or TF_CONFIG, with the strategy "
                "multi_worker_mirrored"
            )
        return
    hosts = worker_hosts.split(",")
    if task_index is None or not 0 <= task_index < len(hosts):
        raise ValueError(
            f"expected task_index from 0 to {len(hosts) - 1}, a place in worker_hosts, got "
            f"{task_index}"
        )
    if _workers_of_environment():
        raise ValueError("expected either worker_hosts or TF_CONFIG, got both")
    task = {"type": "worker", "index": task_index}
    os.environ["TF_CONFIG"] = json.dumps({"cluster": {"worker": hosts}, "task": task})


def _several_workers(all_reduce_alg: str | None) -> tf.distribute.Strategy:
    if all_reduce_alg not in (None, "ring", "nccl"):
        raise ValueError(
            "expected all_reduce_alg ring or nccl with the strategy multi_worker_mirrored, got "
            f"{all_reduce_alg}"
        )
    kinds = tf.distribute.experimental.CommunicationImplementation
    return tf.distribute.MultiWorkerMirroredStrategy(
        communication_options=tf.distribute.experimental.CommunicationOptions(
            implementation=kinds[(all_reduce_alg or "auto").upper()]
        )
    )


def _mirrored_cpus(num_virtual_cpus: int, num_gpus: int | None) -> tf.distribute.Strategy:
    if num_gpus:
        raise ValueError(f"expected either num_gpus or num_virtual_cpus, got {num_gpus} GPUs too")
    if num_virtual_cpus < 1:
        raise ValueError(f"expected at least one of num_virtual_cpus, got {num_virtual_cpus}")
    (cpu,) = tf.config.list_physical_devices("CPU")
    tf.config.set_logical_device_configuration(
        cpu, [tf.config.LogicalDeviceConfiguration()] * num_virtual_cpus
    )
    devices = [device.name for device in tf.config.list_logical_devices("CPU")]
    return tf.distribute.MirroredStrategy(devices)
