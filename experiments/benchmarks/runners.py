"""Processes, rounds, memory and programs that the benchmarks share.

Shapes: B batch, S sequence, D hidden, I intermediate.
"""

import concurrent.futures
import contextlib
import ctypes
import dataclasses
import functools
import gc
import importlib.util
import math
import multiprocessing
import os
import pathlib
import platform
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, TypeVar

from experiments.exported.programs import run_of
from mate_tf.config import ARCHITECTURES, TYPE_FEATURES, AttentionConfig, EncoderConfig
from mate_tf.private_apis import functions_of

RECOMPUTE = "+recompute"  # behind the name of an architecture: activations computed twice
SIZES: dict[str, dict[str, Any]] = {  # beside the number of layers
    "base": {},
    "large": {"hidden_size": 1024, "num_heads": 16, "intermediate_size": 4096},
    "minilm": {"hidden_size": 384, "intermediate_size": 1536},
    "tiny": {"hidden_size": 16, "num_heads": 2, "intermediate_size": 32},  # for tests
}
_QUESTION_TOKENS = 16
_SHORT = (64, 96)  # tokens of the passes before a measurement
Result = TypeVar("Result")


def in_its_own_process(measure: Callable[..., Result], *args) -> Result:
    """Calls a function in a new process."""
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(1, mp_context=context) as executor:
        return executor.submit(measure, *args).result()


def interleaved(runners: Mapping[str, Callable[[], Any]], rounds: int) -> dict[str, list[float]]:
    """The seconds of each runner, in rounds of one call each, after a first call of each."""
    seconds: dict[str, list[float]] = {name: [] for name in runners}
    for done in range(rounds + 1):
        for name, runner in runners.items():
            start = time.perf_counter()
            runner()
            if done:
                seconds[name].append(time.perf_counter() - start)
    return seconds


@contextlib.contextmanager
def started(*command: str) -> Iterator[tuple[subprocess.Popen, pathlib.Path, str]]:
    """A command of mate-tf that serves: its process, which ends with the block, log and address."""
    with tempfile.TemporaryDirectory() as folder:
        log = pathlib.Path(folder, "log")
        with log.open("w") as written:
            line = [sys.executable, "-m", "mate_tf", *command]
            process = subprocess.Popen(line, stdout=written, stderr=written)
        try:
            yield process, log, wait_for(log, process, r"http://[\d.:]+/")
        finally:
            process.terminate()
            process.wait()


def wait_for(log: pathlib.Path, process: subprocess.Popen, pattern: str) -> str:
    """The first match of a pattern in what a process writes; RuntimeError if it ends before."""
    while not (match := re.search(pattern, log.read_text(encoding="utf-8"), re.MULTILINE)):
        if process.poll() is not None:
            written = log.read_text(encoding="utf-8")
            raise RuntimeError(f"{process.args!r} ended with {process.returncode}: {written}")
        time.sleep(0.01)
    return match[0]


def scalars(folder: pathlib.Path) -> dict[str, dict[int, float]]:
    """The values of each TensorBoard tag of a folder, by step."""
    import tensorflow as tf

    found: dict[str, dict[int, float]] = {}
    for path in sorted(folder.glob("events.*")):
        for record in tf.data.TFRecordDataset(str(path)):
            event = tf.compat.v1.Event.FromString(record.numpy())
            for value in event.summary.value:
                if value.tensor.dtype == tf.float32.as_datatype_enum:
                    number = float(tf.make_ndarray(value.tensor))
                    found.setdefault(value.tag, {})[event.step] = number
    return found


def processor() -> str:
    """The model's name and the cores that this process may use, on Linux."""
    with open("/proc/cpuinfo", encoding="utf-8") as lines:
        model = re.search(r"^model name\s*: (.*)$", lines.read(), re.MULTILINE)
    name = model[1] if model else platform.machine()
    return f"{name}, {len(os.sched_getaffinity(0))} cores"


def set_up(threads: int, dtype: str) -> None:
    """Sets the threads (0: all) and the dtype; only before TensorFlow has done anything."""
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, cores[: threads or None])  # for other libraries
    import keras
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(threads)
    tf.config.threading.set_inter_op_parallelism_threads(threads)
    keras.config.set_dtype_policy(dtype)
    keras.utils.set_random_seed(1)


def process_megabytes(what: str, process: int | str = "self") -> float:
    """The memory of a process on Linux: VmRSS now, VmHWM at most."""
    lines = pathlib.Path(f"/proc/{process}/status").read_text(encoding="utf-8").splitlines()
    return int(dict(line.split(":", 1) for line in lines)[what].split()[0]) / 1024


def peak_megabytes() -> float:
    """The most memory since `_reset_peak`: of the GPU if there is one, else of this process."""
    import tensorflow as tf

    if tf.config.list_physical_devices("GPU"):
        return tf.config.experimental.get_memory_info("GPU:0")["peak"] / 2**20
    return process_megabytes("VmHWM")


def _reset_peak() -> float:
    """Makes the present memory the peak (Linux, proc(5), clear_refs), and returns it."""
    import tensorflow as tf

    gc.collect()
    if tf.config.list_physical_devices("GPU"):
        tf.config.experimental.reset_memory_stats("GPU:0")
    else:
        ctypes.CDLL(None).malloc_trim(0)  # what glibc's allocator keeps of freed memory
        pathlib.Path("/proc/self/clear_refs").write_text("5", encoding="utf-8")
    return peak_megabytes()


def attentions(length: int) -> dict[str, AttentionConfig]:
    """The attention kinds that can be timed, for examples of a length."""
    options: dict[str, dict[str, Any]] = {
        "linformer": dict(sequence_length=length),
        # Long examples have more rows than TableETC has global tokens for.
        "table_etc": dict(share_global_tokens=True),
    }
    return {
        **{name: AttentionConfig(name, **options.get(name, {})) for name in ARCHITECTURES},
        "mate_64_128": AttentionConfig("mate", bucket_size=64, global_size=128),
        "mate_views": AttentionConfig("mate", "multi_view"),
        "mate_dense": AttentionConfig("mate", "dense"),
        "mate_exact": AttentionConfig("mate", bucket_size=64, coverage=1.0),
    }


def parse_lengths(texts: list[str]) -> list[int]:
    """The --lengths of a benchmark; ValueError if one does not hold more than the question."""
    if not all(text.isdecimal() and int(text) > _QUESTION_TOKENS for text in texts):
        raise ValueError(f"expected whole numbers above {_QUESTION_TOKENS} as --lengths: {texts}")
    return [int(text) for text in texts]


def made_up_features(options: Mapping[str, Any]):
    """`TokenFeatures` of batch_size equal examples of a length.

    Each is a question and a table of so many columns with cells of so many cell_tokens.
    """
    import numpy as np
    import tensorflow as tf

    from mate_tf.features.token_features import TokenFeatures

    length, columns = options["length"], options["columns"]
    cell = np.maximum(np.arange(length) - _QUESTION_TOKENS, 0)  # [S]
    cell //= options["cell_tokens"]
    in_table = np.arange(length) >= _QUESTION_TOKENS
    zeros = np.zeros(length, np.int32)
    fields = {
        "input_ids": np.random.default_rng(0).integers(1000, 30000, length),
        "input_mask": np.ones(length),
        "segment_ids": in_table,
        "column_ids": np.where(in_table, cell % columns + 1, 0),
        "row_ids": np.where(in_table, cell // columns, 0),
    }
    arrays = (np.asarray(fields.get(name, zeros), np.int32) for name in TokenFeatures._fields)
    return TokenFeatures(*(tf.constant([array] * options["batch_size"]) for array in arrays))


def encoder_config(name: str, options: Mapping[str, Any]) -> EncoderConfig:
    """A model of a size of `SIZES` with num_layers and an attention of `attentions`."""
    attention = attentions(options["length"])[name.removesuffix(RECOMPUTE)]
    sizes = SIZES[options["size"]] | {"num_layers": options["num_layers"]}
    return EncoderConfig(position="per_cell", attention=attention, **sizes)


def built_encoder(config: EncoderConfig, dtype: str | None = None):
    """A `TableEncoder` with random weights, by default in the dtype that is measured."""
    from mate_tf.layers.encoder import TableEncoder

    encoder = TableEncoder(config, dtype=dtype)
    encoder.build()
    return encoder


def forward_pass(encoder, pack_kernels: bool | None = None) -> Callable[[Any], Any]:
    """A forward pass of an encoder over token features."""
    from mate_tf.answers.inference import inference_function

    run = inference_function(encoder, pack_kernels)
    return lambda features: run(features).pooled_output.numpy()


def training_step(
    encoder: EncoderConfig, options: Mapping[str, Any], recompute: bool = False
) -> Callable[[], Any]:
    """A step of the training loop: a classifier, whose head costs next to nothing, with dropout.

    Options are those of `measure_times`. With `recompute` activations are computed again for the
    gradients.
    """
    import tensorflow as tf

    from mate_tf.training.config import ClassificationTrainingConfig

    config = ClassificationTrainingConfig(
        num_steps=100,
        learning_rate=1e-5,
        dtype=options["dtype"],
        recompute=recompute,
        encoder=encoder,
        max_seq_length=options["length"],
    )
    features = made_up_features(options)._asdict()
    batch = {name: ids for name, ids in features.items() if ids is not None}
    batch["classification_class_index"] = tf.zeros([options["batch_size"], 1], tf.int32)
    _, _, trainer = run_of(config, at_zero=False, batch=batch)
    return lambda: trainer.train(tf.constant(1))


def measure_times(names: list[str], options: dict[str, Any], rounds: int) -> list[dict[str, Any]]:
    """Times forward passes in turn; for a process of its own.

    Names are "limit", those of PEERS or architectures of `attentions`; options are length, dtype,
    threads, batch_size, size, num_layers, columns and cell_tokens. It gives each name, the seconds
    of each round and the flops, None if they are not known.
    """
    set_up(options["threads"], options["dtype"])
    runners, flops = {}, dict.fromkeys(names)
    for name in names:
        if name in PEERS:
            runners[name] = PEERS[name].runner(options)
        elif name == "limit":
            runners[name] = _limit(options)
        else:
            encoder = built_encoder(encoder_config(name, options))
            runners[name] = functools.partial(forward_pass(encoder), made_up_features(options))
            flops[name] = _encoder_flops(encoder, options)
    seconds = interleaved(runners, rounds)
    return [{"name": name, "seconds": seconds[name], "flops": flops[name]} for name in names]


def measure_memory(name: str, options: dict[str, Any]) -> float:
    """The peak of the first pass of a length, in MB above the loaded model.

    Short passes of two lengths come before, so that the program's code, its graphs and what it
    keeps of the weights count as loaded: TensorFlow's allocator keeps what a pass has used.
    """
    set_up(options["threads"], options["dtype"])
    encoder = built_encoder(encoder_config(name, options))
    # A Linformer takes one length. Packed kernels would count for it alone.
    takes_one_length = encoder.config.fixed_length is not None
    run = forward_pass(encoder, pack_kernels=False)
    for length in _SHORT:
        short = options | {"length": length}
        other = built_encoder(encoder_config(name, short)) if takes_one_length else None
        one = forward_pass(other, pack_kernels=False) if other else run
        one(made_up_features(short))
    features = made_up_features(options)
    loaded = _reset_peak()
    run(features)
    return peak_megabytes() - loaded


def measure_training(name: str, options: dict[str, Any], steps: int) -> dict[str, Any]:
    """Times training steps after a first one; for a process of its own.

    It gives the seconds and the processor seconds of each, and the peak of all, with tracing, in MB
    above the loaded model and optimizer. A step of "limit" is the bare products of the forward pass
    three times, since the gradients take two of the same size for each.
    """
    set_up(options["threads"], options["dtype"])
    if name == "limit":
        products = _limit(options)

        def step() -> None:
            for _ in range(3):
                products()
    else:
        step = training_step(encoder_config(name, options), options, name.endswith(RECOMPUTE))
    loaded = _reset_peak()
    step()
    seconds, cpu_seconds = [], []
    for _ in range(steps):
        start, cpu_start = time.perf_counter(), time.process_time()
        step()
        seconds.append(time.perf_counter() - start)
        cpu_seconds.append(time.process_time() - cpu_start)
    megabytes = peak_megabytes() - loaded
    return {"seconds": seconds, "cpu_seconds": cpu_seconds, "megabytes": megabytes}


def _limit(options: dict[str, Any]) -> Callable[[], Any]:
    """The bare products of each layer's matrices, one layer after the other."""
    import tensorflow as tf

    config = encoder_config("tapas", options)
    size, inner = config.hidden_size, config.intermediate_size
    dtype = tf.bfloat16 if options["dtype"].endswith("bfloat16") else tf.float32

    def random(*shape: int) -> tf.Variable:
        return tf.Variable(tf.cast(tf.random.normal(shape, stddev=size**-0.5), dtype))

    layers = [
        [*(random(size, size) for _ in range(4)), random(size, inner), random(inner, size)]
        for _ in range(options["num_layers"])
    ]
    inputs = random(options["batch_size"] * options["length"], size)

    @tf.function(autograph=False)
    def products(rows: tf.Tensor) -> tf.Tensor:  # [B * S, D]
        for *projections, intermediate, output in layers:
            projected = [tf.matmul(rows, kernel) for kernel in projections]
            rows = tf.matmul(tf.matmul(projected[0], intermediate), output)
            # One number of each, or they would not be computed.
            rows += tf.add_n([one[:1, :1] for one in projected[1:]])
        return tf.reduce_sum(tf.cast(rows, tf.float32))

    return lambda: products(inputs.value()).numpy()


def _hugging_face(options: dict[str, Any]) -> Callable[[], Any]:
    import torch
    import transformers

    torch.set_num_threads(options["threads"])
    config = transformers.TapasConfig(
        num_hidden_layers=options["num_layers"], reset_position_index_per_cell=True
    )
    dtype = torch.bfloat16 if options["dtype"].endswith("bfloat16") else torch.float32
    model = transformers.TapasModel(config).eval().to(dtype)
    features = made_up_features(options).map(lambda ids: torch.from_numpy(ids.numpy()).long())
    types = torch.stack([getattr(features, name) for name in TYPE_FEATURES], dim=-1)
    types = types.clamp(max=255)

    def run():
        with torch.inference_mode():
            return model(features.input_ids, features.input_mask, types).pooler_output

    return run


def _onnx_runtime(options: dict[str, Any]) -> Callable[[], Any]:
    """The default model, with its heads."""
    from mate_tf.answers.onnx_runtime import OnnxModel
    from mate_tf.serving.stored import find_model
    from mate_tf.task_configs import TableQAConfig
    from mate_tf.weights.folder import DEFAULT_MODEL

    stored = find_model(DEFAULT_MODEL)
    assert stored.folder and isinstance(stored.task_config, TableQAConfig)
    model = OnnxModel(stored.folder, stored.encoder_config, stored.task_config)
    return functools.partial(model, made_up_features(options).map(lambda ids: ids.numpy()))


def _openvino(options: dict[str, Any]) -> Callable[[], Any]:
    """An encoder of all pairs, by OpenVINO's runtime, which converts no positions within cells."""
    import openvino
    import tensorflow as tf

    from mate_tf.layers.compilation import portable_graph

    config = dataclasses.replace(
        encoder_config("tapas", options),
        position="absolute",
        max_position_embeddings=options["length"],
    )
    # It reads no constants in bfloat16; the settings below make it compute so.
    encoder, features = built_encoder(config, "float32"), made_up_features(options)
    with portable_graph():
        run = tf.function(lambda *given: encoder(features.of(given)).pooled_output, autograph=False)
        graph = run.get_concrete_function(*features[:9])
    precision = "bf16" if options["dtype"].endswith("bfloat16") else "f32"
    settings = {"INFERENCE_PRECISION_HINT": precision, "INFERENCE_NUM_THREADS": options["threads"]}
    model = openvino.compile_model(openvino.convert_model(graph), "CPU", settings)
    given = [ids.numpy() for ids in features[:9]]
    return lambda: model(given)


class Peer(NamedTuple):
    """A runtime or model of others, timed beside ours."""

    packages: tuple[str, ...]  # without which it is left out
    size: dict[str, Any]  # the options that it needs
    runner: Callable[[dict[str, Any]], Callable[[], Any]]


PEERS = {
    "hf_tapas": Peer(("torch", "transformers"), {"size": "base"}, _hugging_face),
    "onnx_runtime": Peer(
        ("onnxruntime",),
        {"size": "minilm", "num_layers": 6, "dtype": "float32", "batch_size": 1},
        _onnx_runtime,
    ),
    "openvino": Peer(("openvino",), {}, _openvino),
}


def peers(options: dict[str, Any]) -> list[str]:
    """The names of PEERS that are installed and take these options."""
    return [
        name
        for name, peer in PEERS.items()
        if peer.size.items() <= options.items()
        and all(map(importlib.util.find_spec, peer.packages))
    ]


def _encoder_flops(encoder, options: dict[str, Any]) -> int | None:
    import tensorflow as tf

    from mate_tf.layers.compilation import portable_graph

    function = tf.function(lambda features: encoder(features).sequence_output, autograph=False)
    with portable_graph():  # of plain operations
        return matrix_flops(function.get_concrete_function(made_up_features(options)).graph)


def matrix_flops(graph: Any) -> int | None:
    """The floating-point operations of a tf.Graph's matrix products; None if a shape is unknown.

    Each multiplication with its addition counts as two. All else is of lower order. Of several
    branches the costliest counts.
    """
    functions = dict(functions_of(graph))

    def graph_flops(graph) -> int:
        return sum(operation_flops(operation) for operation in graph.get_operations())

    def operation_flops(operation) -> int:
        if operation.type in ("MatMul", "BatchMatMulV2"):
            flag = "transpose_a" if operation.type == "MatMul" else "adj_x"
            inner = operation.inputs[0].shape[-2 if operation.get_attr(flag) else -1]
            return 2 * math.prod(operation.outputs[0].shape) * inner
        if operation.type == "Einsum":
            return 2 * math.prod(_label_sizes(operation).values())
        attributes = operation.node_def.attr.values()
        names = [one.func.name for one in attributes if one.HasField("func")]
        return max(
            (graph_flops(functions[name].graph) for name in names if name in functions), default=0
        )

    try:
        return graph_flops(graph)
    except (TypeError, ValueError):  # a product with None, or a shape of unknown rank
        return None


def _label_sizes(einsum) -> dict[str, int]:
    inputs = einsum.get_attr("equation").decode().split("->")[0].split(",")
    sizes: dict[str, int] = {}
    for labels, tensor in zip(inputs, einsum.inputs, strict=True):
        more = tensor.shape.rank - len(labels.replace("...", ""))
        each = labels.replace("...", "".join(map(str, range(more))))  # digits: no labels
        sizes |= zip(each, tensor.shape, strict=True)
    return sizes
