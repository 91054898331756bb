"""Training on several devices: the strategies, and how batches and sums are shared.

A replica is a device. A worker is a process with one or more replicas; one worker is the chief,
which writes a run's files.

Shapes: B examples of a global batch, R replicas, N numbers.
"""

import contextlib
import functools
import itertools
import json
import os
import pathlib
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal

import numpy as np
import tensorflow as tf

from mate_tf.tables.drawing import up_to

StrategyName = Literal["auto", "one_device", "mirrored", "multi_worker_mirrored", "tpu"]
# Which options each strategy reads.
_OPTIONS = {
    "one_device": ("num_gpus",),
    "mirrored": ("num_gpus", "num_virtual_cpus"),
    "multi_worker_mirrored": ("worker_hosts", "task_index"),
    "tpu": ("tpu",),
}
_GET_GPU = (
    "; pip install 'mate_tf[train,gpu]' brings TensorFlow's build with CUDA for Linux, which needs "
    "NVIDIA's driver: nvidia-smi lists the GPUs (docs/accelerators.md)"
)
Batch = Mapping[str, tf.Tensor]


def make_strategy(
    name: StrategyName = "auto",
    *,
    num_gpus: int | None = None,
    num_virtual_cpus: int | None = None,
    tpu: str | None = None,
    worker_hosts: str | None = None,
    task_index: int | None = None,
) -> tf.distribute.Strategy:
    """One of tf.distribute's strategies; call it before TensorFlow does anything else.

    Args:
        name: "one_device", "mirrored" (the devices of this machine), "multi_worker_mirrored" (those
            of several machines), "tpu"; or "auto": what the other options or TF_CONFIG ask for,
            else all GPUs of this machine.
        num_gpus: how many GPUs; None for one with "one_device", else for all; 0 for the CPU.
        num_virtual_cpus: divides the CPU into so many devices, to try several without GPUs.
        tpu: name or address of the TPU; "local" on its own host.
        worker_hosts: all workers, "host:port,host:port", in the same order on each; None if
            TF_CONFIG says it.
        task_index: this worker's place among them, from 0.

    ValueError if the strategy does not read an option, or the devices are not there.
    """
    options = dict(num_gpus=num_gpus, num_virtual_cpus=num_virtual_cpus, tpu=tpu)
    options |= dict(worker_hosts=worker_hosts, task_index=task_index)
    given = {key for key, value in options.items() if value is not None}
    if name == "auto":
        name = _fitting(given, num_gpus)
    _check_options(name, given)
    if name == "multi_worker_mirrored":
        _configure_workers(worker_hosts, task_index)
        return tf.distribute.MultiWorkerMirroredStrategy()
    if name == "tpu":
        return _tpu_strategy(tpu)
    if name == "mirrored" and num_virtual_cpus is not None:
        return _mirrored_cpus(num_virtual_cpus, num_gpus)
    if name == "one_device" and num_gpus is None:
        return tf.distribute.get_strategy()  # the default one, on a GPU if there is one
    num_visible = len(tf.config.list_physical_devices("GPU"))
    most = min(num_visible, 1) if name == "one_device" else num_visible
    how = _GET_GPU if num_gpus is None or num_gpus > num_visible else ""
    num_gpus = most if num_gpus is None else num_gpus
    if not 0 <= num_gpus <= most:
        raise ValueError(
            f"expected {up_to(most)} as num_gpus with {name} here, got {num_gpus}{how}"
        )
    if name == "one_device":
        return tf.distribute.OneDeviceStrategy("GPU:0" if num_gpus else "CPU:0")
    if not num_gpus:
        raise ValueError(
            "expected at least one GPU to mirror over, got none; num_virtual_cpus divides the CPU "
            f"into devices{how}"
        )
    return tf.distribute.MirroredStrategy([f"GPU:{index}" for index in range(num_gpus)])


def _fitting(given: set[str], num_gpus: int | None) -> StrategyName:
    """The strategy that reads the given options, or that makes use of all GPUs."""
    if given & {"worker_hosts", "task_index"} or len(workers_of_environment()) > 1:
        return "multi_worker_mirrored"
    if "tpu" in given:
        return "tpu"
    if num_gpus is None:
        num_gpus = len(tf.config.list_physical_devices("GPU"))
    return "mirrored" if "num_virtual_cpus" in given or num_gpus > 1 else "one_device"


def _tpu_strategy(tpu: str | None) -> tf.distribute.Strategy:
    if tpu is None:
        raise ValueError("expected the TPU's name or address, or local on its own host, in tpu")
    try:
        resolver = tf.distribute.cluster_resolver.TPUClusterResolver.connect(tpu)
        return tf.distribute.TPUStrategy(resolver)
    except (tf.errors.OpError, RuntimeError, ValueError, OSError) as error:
        reason = str(error).strip().split("\n")[0]
        raise ValueError(
            f"expected the TPU {tpu}, got an error: {reason}; on a TPU VM scripts/install_build.sh "
            "installs TensorFlow's build for TPUs, and no other process may hold the TPU "
            "(docs/accelerators.md)"
        ) from None


def describe_devices(dtype: str) -> str:
    """Says in a line what this worker trains on; call it in the strategy's scope."""
    gpus = tf.config.list_physical_devices("GPU")
    strategy, name = tf.distribute.get_strategy(), "one device"
    names = ["/device:GPU:0" if gpus else "/device:CPU:0"]
    if tf.distribute.has_strategy():
        names, name = list(strategy.extended.worker_devices), type(strategy).__name__
    kinds = {tf.DeviceSpec.from_string(device).device_type for device in names}
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")  # bytes
    what = [f"{os.cpu_count()} cores", f"{memory / 1e9:.0f} GB of memory"]
    if "GPU" in kinds:
        # A session alone tells, by public names, how much memory TensorFlow takes of a GPU.
        with tf.compat.v1.Session(graph=tf.Graph()) as session:
            devices = [device for device in session.list_devices() if device.device_type == "GPU"]
        details = map(tf.config.experimental.get_device_details, gpus)
        what = [
            f"{gpu.get('device_name', 'unknown')} with {device.memory_limit_bytes / 1e9:.0f} GB"
            for gpu, device in zip(details, devices, strict=False)
        ]
    jit = tf.config.optimizer.get_jit() or "auto_jit" in os.environ.get("TF_XLA_FLAGS", "")
    return (
        f"training on {len(names)} x {', '.join(sorted(kinds))} ({name}, "
        f"{strategy.num_replicas_in_sync} replicas in all; {', '.join(dict.fromkeys(what))}), "
        f"{dtype}, XLA {'on' if jit or 'TPU' in kinds else 'off'}"
    )


def _check_options(name: str, given: set[str]) -> None:
    if name not in _OPTIONS:
        raise ValueError(f"expected a strategy of {', '.join(_OPTIONS)}, got {name!r}")
    if others := sorted(given - set(_OPTIONS[name])):
        raise ValueError(
            f"expected, with the strategy {name}, no options but {', '.join(_OPTIONS[name])}, got "
            f"{', '.join(others)}"
        )
    cluster = workers_of_environment()
    if name != "multi_worker_mirrored" and len(cluster) > 1:
        raise ValueError(
            f"expected the strategy multi_worker_mirrored for the {len(cluster)} workers of "
            f"TF_CONFIG, got {name}, with which each would train alone"
        )


def workers_of_environment() -> list[str]:
    """The hosts and ports of all workers in TF_CONFIG; none without it."""
    config: dict[str, Any] = json.loads(os.environ.get("TF_CONFIG") or "{}")
    cluster = config.get("cluster", {})
    return [*cluster.get("chief", []), *cluster.get("worker", [])]


def _configure_workers(worker_hosts: str | None, task_index: int | None) -> None:
    if worker_hosts is None:
        if task_index is None and workers_of_environment():
            return
        raise ValueError(
            "expected worker_hosts and task_index, or TF_CONFIG, with the strategy "
            "multi_worker_mirrored"
        )
    hosts = worker_hosts.split(",")
    if task_index is None or not 0 <= task_index < len(hosts):
        raise ValueError(
            f"expected {up_to(len(hosts) - 1)} as task_index, a place in worker_hosts, got "
            f"{task_index}"
        )
    if workers_of_environment():
        raise ValueError("expected either worker_hosts or TF_CONFIG, got both")
    task = {"type": "worker", "index": task_index}
    os.environ["TF_CONFIG"] = json.dumps({"cluster": {"worker": hosts}, "task": task})


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


def is_chief() -> bool:
    """Whether this worker writes a run's files; a single worker does."""
    return tf.distribute.get_strategy().extended.should_checkpoint


def has_several_workers() -> bool:
    """Whether the present strategy has workers on several machines."""
    return isinstance(tf.distribute.get_strategy(), tf.distribute.MultiWorkerMirroredStrategy)


@contextlib.contextmanager
def folder_to_write(model_dir: pathlib.Path) -> Iterator[pathlib.Path]:
    """The run's folder for the chief, a temporary one for the others, which must save as well."""
    if is_chief():
        model_dir.mkdir(parents=True, exist_ok=True)
        yield model_dir
        return
    with tempfile.TemporaryDirectory() as directory:
        yield pathlib.Path(directory)


def chief_values(values: Sequence[float]) -> list[float]:
    """The chief's numbers on every worker; all must call it, with equally many numbers."""
    return sum_over_workers(values if is_chief() else np.zeros(len(values))).tolist()


def check_like_chief(values: Mapping[str, float], hint: str) -> None:
    """Refuses, on every worker, one with other numbers than the chief; `hint` says what to do."""
    chief = chief_values([*values.values()])
    num_different = sum_over_workers(np.not_equal([*values.values()], chief))  # [N]
    for (name, here), number, expected in zip(values.items(), num_different, chief, strict=True):
        if number:
            raise ValueError(
                f"expected {name} {expected:g} on every worker, as on the chief, got another on "
                f"{number:g} of them ({here:g} here); {hint}"
            )


def on_workers(batches: tf.data.Dataset, measure: Callable[[Batch], Any]) -> list[Any]:
    """The results of `measure` for all batches, in order, as JSON keeps them; each worker shares.

    No result may be None. All workers must call it, with the same batches.
    """
    num_workers, index = 1, 0
    if has_several_workers():
        config, num_workers = json.loads(os.environ["TF_CONFIG"]), len(workers_of_environment())
        is_after_chief = config["task"]["type"] == "worker" and "chief" in config["cluster"]
        index = is_after_chief + int(config["task"]["index"])
    here = json.dumps([measure(batch) for batch in batches.shard(num_workers, index)])
    text = np.frombuffer(here.encode(), np.uint8)
    lengths = sum_over_workers(np.eye(num_workers)[index] * len(text))
    results = []
    for worker, length in enumerate(lengths):
        encoded = sum_over_workers(text if worker == index else np.zeros(int(length)))
        results.append(json.loads(encoded.astype(np.uint8).tobytes()))
    in_turn = itertools.chain(*itertools.zip_longest(*results))
    return [one for one in in_turn if one is not None]


def sum_over_workers(values: Sequence[float] | np.ndarray) -> np.ndarray:
    """The sums of the workers' numbers [N]; all must call it, with equally many."""
    values = np.asarray(values, np.float64)
    if not has_several_workers():
        return values
    strategy = tf.distribute.get_strategy()
    sums = _sum_function(strategy)(values)
    return strategy.experimental_local_results(sums)[0].numpy()


@functools.lru_cache(maxsize=1)
def _sum_function(strategy: tf.distribute.Strategy) -> Callable:
    num_here = len(strategy.extended.worker_devices)

    def in_replica(values: tf.Tensor) -> tf.Tensor:
        context = tf.distribute.get_replica_context()
        is_first = context.replica_id_in_sync_group % num_here == 0
        share = tf.where(is_first, values, tf.zeros_like(values))  # once from each worker
        return context.all_reduce(tf.distribute.ReduceOp.SUM, share)

    return tf.function(
        lambda values: strategy.run(in_replica, args=(values,)),
        input_signature=[tf.TensorSpec([None], tf.float64)],
        autograph=False,
    )


def check_batch_size(batch_size: int, num_parts: int = 1) -> None:
    """Refuses a global batch that cannot be divided among the replicas, and into so many parts."""
    num_replicas = tf.distribute.get_strategy().num_replicas_in_sync
    if batch_size % (number := num_replicas * num_parts):
        raise ValueError(
            f"expected batch_size to be a multiple of {number} ({num_replicas} replicas, "
            f"gradient_accumulation_steps {num_parts}), got {batch_size}"
        )


def distribute_batches(
    dataset: Callable[[], tf.data.Dataset], num_parts: int = 1
) -> tf.distribute.DistributedDataset:
    """Shares the examples of each global batch, tensors [B, ...], among the replicas: [B / R, ...].

    Every worker reads all batches in the same order and takes the examples of its own replicas. So
    a batch has one padded length, and training does not depend on the number of replicas.
    """

    def shares(context: tf.distribute.InputContext) -> tf.data.Dataset:
        num_replicas = context.num_replicas_in_sync
        num_here = num_replicas // context.num_input_pipelines
        first = context.input_pipeline_id * num_here

        def divide(batch: Batch) -> tf.data.Dataset:
            parts = {name: tf.split(values, num_replicas) for name, values in batch.items()}
            here = {name: tf.stack(of[first : first + num_here]) for name, of in parts.items()}
            return tf.data.Dataset.from_tensor_slices(here)

        batches = dataset()
        batch_size = tf.nest.flatten(batches.element_spec)[0].shape[0]
        if batch_size is not None:
            check_batch_size(batch_size, num_parts)
        if num_replicas > 1:
            batches = batches.flat_map(divide)
        return batches.prefetch(num_here)

    return tf.distribute.get_strategy().distribute_datasets_from_function(shares)


def mean_share(total: tf.Tensor, num_parts: int) -> tf.Tensor:
    """The mean, over all parts of all replicas, of a sum that each replica has a share of.

    A loss that is a sum over this mean, averaged, is the sum over the batch divided by its total.
    """
    context = tf.distribute.get_replica_context()
    num_replicas = context.num_replicas_in_sync
    if num_replicas > 1:
        total = context.all_reduce(tf.distribute.ReduceOp.SUM, total)
    return total / (num_replicas * num_parts)
