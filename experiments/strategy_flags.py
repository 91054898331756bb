"""The flags that say on which devices to train, in the names that Google's programs give them."""

from absl import flags

_STRATEGY = flags.DEFINE_enum(
    "distribution_strategy",
    "one_device",
    ["one_device", "mirrored", "multi_worker_mirrored", "tpu"],
    "one device; the GPUs of this machine; those of several machines, each of which starts this "
    "program with the same arguments but for --task_index; a TPU",
)
_NUM_GPUS = flags.DEFINE_integer(
    "num_gpus", None, "GPUs to mirror over; by default all; 0 for the CPU", lower_bound=0
)
_NUM_VIRTUAL_CPUS = flags.DEFINE_integer(
    "num_virtual_cpus",
    None,
    "with mirrored: divides the CPU into as many devices, to try what several do",
    lower_bound=1,
)
_TPU = flags.DEFINE_string("tpu", None, "with tpu: its name or address, local on its own host")
_WORKER_HOSTS = flags.DEFINE_string(
    "worker_hosts",
    None,
    "with multi_worker_mirrored: host:port of all workers, with commas, in the same order on each; "
    "the first is the chief, which writes the run's files. TF_CONFIG may say it instead",
)
_TASK_INDEX = flags.DEFINE_integer(
    "task_index", None, "which of --worker_hosts this one is, from 0", lower_bound=0
)
_ALL_REDUCE_ALG = flags.DEFINE_enum(
    "all_reduce_alg",
    None,
    ["nccl", "hierarchical_copy", "ring"],
    "how gradients are summed: nccl or hierarchical_copy with mirrored, ring or nccl with "
    "multi_worker_mirrored; by default TensorFlow chooses",
)


def make_strategy():
    """The strategy that the flags say; to be made before TensorFlow does anything else."""
    from mate_tf.training import distribution as strategies

    return strategies.make_strategy(
        _STRATEGY.value,
        num_gpus=_NUM_GPUS.value,
        num_virtual_cpus=_NUM_VIRTUAL_CPUS.value,
        tpu=_TPU.value,
        worker_hosts=_WORKER_HOSTS.value,
        task_index=_TASK_INDEX.value,
        all_reduce_alg=_ALL_REDUCE_ALG.value,
    )
