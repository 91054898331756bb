"""Times the programs of `gpu_programs` on JAX's first device, beside its limit and PyTorch.

    python -m experiments.benchmarks.gpu_run out/gpu --results=out/gpu/results.json --seconds=140

It runs where JAX is, and no TensorFlow. If PyTorch and transformers are there too, so are the times
of Hugging Face's TAPAS and of scaled_dot_product_attention. Measured are

  XLA        each program alone, after all of its group were compiled side by side
  the limit  the bare products of the projections and feed-forward layers of as many layers
  PyTorch    in a process of its own, with the same width, layers and token features

float32 is multiplied as TensorFloat-32, as XLA and PyTorch ("high") do on such cards. A time is the
median of calls that each wait for the result. `queued_ms` is the time of a call among ten that are
given to the device at once. Memory is all that a program needs at once: arguments, results and what
is in between. Without autotuning, as by default, XLA's products are cuBLAS's first choice.
"""

import argparse
import collections
import concurrent.futures
import functools
import gc
import importlib.util
import json
import lzma
import math
import os
import pathlib
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

SPEC = "spec.json"
_XLA_FLAGS = "--xla_gpu_enable_triton_gemm=false --xla_gpu_autotune_level=0"
_GROUP = 15  # programs that are compiled side by side
_TORCH_SECONDS = 35.0  # at most for PyTorch
_TYPE_IDS = 256  # of TAPAS
_LONGEST_EAGER = {"float32": 8192, "bfloat16": 16384}
Row = dict[str, Any]
_CLOCK = time.perf_counter


def drawn(arguments: Sequence[Row], features: Mapping[str, np.ndarray]) -> list[np.ndarray]:
    """The values of a program's arguments, always the same; bfloat16 as float32.

    Of each the shape, dtype and filling are given: a number, "normal" or the name of a feature, int
    [B, S].
    """
    return [_value(argument, number, features) for number, argument in _numbered(arguments)]


def _numbered(arguments: Sequence[Row]) -> Iterator[tuple[int, Row]]:
    """Each argument with the number of those like it before it."""
    counts: collections.Counter = collections.Counter()
    for argument in arguments:
        kind = str(argument)
        yield counts[kind], argument
        counts[kind] += 1


def _value(argument: Row, number: int, features: Mapping[str, np.ndarray]) -> np.ndarray:
    shape, filling = argument["shape"], argument["filling"]
    if filling == "normal":
        random = np.random.default_rng([number, *shape])
        return np.multiply(random.standard_normal(shape, np.float32), np.float32(0.02))
    if isinstance(filling, str):
        return features[filling].astype(argument["dtype"])
    dtype = "float32" if argument["dtype"] == "bfloat16" else argument["dtype"]
    return np.full(shape, filling, dtype)


def measured(run: Callable[[], Any], wait: Callable[[Any], Any]) -> Row:
    """The median milliseconds of up to 30 calls or a second of them, after up to three others."""
    start = _CLOCK()
    for _ in range(3):
        wait(run())
        if _CLOCK() - start > 1.0:
            break
    seconds: list[float] = []
    while len(seconds) < 30 and (sum(seconds) < 1.0 or len(seconds) < 3):
        start = _CLOCK()
        wait(run())
        seconds.append(_CLOCK() - start)
    row = {"ms": 1e3 * statistics.median(seconds), "runs": len(seconds)}
    if row["ms"] < 50.0:
        start = _CLOCK()
        wait([run() for _ in range(10)])
        row["queued_ms"] = 1e3 * (_CLOCK() - start) / 10
    return row


def _wait_for_last(results: Any) -> None:
    """Of several calls or results, waits for the last: the device keeps their order."""
    while isinstance(results, list | tuple):
        results = results[-1]
    results.block_until_ready()


def tried(row: Row, measure: Callable[[], Row], deadline: float) -> Row:
    """A row with what is measured, or with the error why it is not; nothing when it is late."""
    if _CLOCK() > deadline:
        return row | {"error": "left out: no time"}
    try:
        return row | measure()
    except Exception as error:
        return row | {"error": " ".join(f"{type(error).__name__}: {error}".split())[:300]}


# --- XLA ---


class Bench:
    """Programs of a folder with its spec, on one of JAX's devices; their weights are drawn once."""

    def __init__(self, folder: pathlib.Path, spec: Row, device: Any) -> None:
        self._folder, self._spec, self._device = folder, spec, device
        self._kept: dict[tuple[int, str], Any] = {}

    def rows(self, programs: Sequence[Row], deadline: float) -> Iterator[Row]:
        """Compiles programs side by side, then times each; those that are late are left out."""
        pool = concurrent.futures.ThreadPoolExecutor(len(programs))
        futures = [pool.submit(self._compiled, program) for program in programs]
        concurrent.futures.wait(futures, timeout=max(0.0, deadline - _CLOCK()))
        pool.shutdown(wait=False, cancel_futures=True)
        while futures:
            program, future = programs[-len(futures)], futures.pop(0)
            names = ("kind", "architecture", "length", "dtype", "batch_size")
            row = {name: program[name] for name in names}
            # One that is not compiled yet is late.
            measure = functools.partial(self._timed, program, future)
            yield tried(row, measure, deadline if future.done() else -math.inf)
            del future, measure  # and with them the program

    def _compiled(self, program: Row) -> tuple[Any, float]:
        from mate_tf.private_apis import compile_for_device

        start = _CLOCK()
        hlo = lzma.decompress((self._folder / f"{program['name']}.hlo.xz").read_bytes())
        return compile_for_device(hlo, self._device), _CLOCK() - start

    def _timed(self, program: Row, future: concurrent.futures.Future) -> Row:
        import jax

        executable, compile_seconds = future.result()
        arguments = self._arguments(program)
        sizes = executable.get_compiled_memory_stats()
        needed = sizes.argument_size_in_bytes + sizes.output_size_in_bytes
        needed += sizes.temp_size_in_bytes - sizes.alias_size_in_bytes
        row = {"compile_seconds": compile_seconds, "gb": needed / 1e9}
        updates = program["updates"]
        for _, index in updates:  # what was given is gone
            arguments[index] = arguments[index].copy()

        def run() -> Any:
            results = executable.execute(arguments)
            for result, index in updates:
                arguments[index] = results[result]
            return results

        results = jax.block_until_ready(run())
        # Of the weights that a step updates, biases tell as much as kernels.
        large = {result for result, index in updates if arguments[index].size > 2**16}
        row["finite"] = all(
            bool(np.isfinite(np.asarray(result)).all())
            for index, result in enumerate(results)
            if index not in large
        )
        if "expected" in program:
            expected = np.load(self._folder / program["expected"])
            found = np.asarray(results[0])[:, :: program["every"]]
            row["difference"] = float(np.abs(found - expected).max())
        del results
        return row | measured(run, _wait_for_last)

    def _arguments(self, program: Row) -> list[Any]:
        import jax

        features = self.features(program["inputs"])
        arrays = []
        for number, argument in _numbered(program["arguments"]):
            key = (number, str(argument))
            array = self._kept.get(key)
            if array is None:
                value = _value(argument, number, features)
                value = value.astype(jax.numpy.dtype(argument["dtype"]))
                array = jax.device_put(value, self._device)
                if argument["filling"] not in features:
                    self._kept[key] = array
            arrays.append(array)
        return arrays

    def features(self, name: str) -> dict[str, np.ndarray]:
        """Token features int32 [B, S]."""
        with np.load(self._folder / name) as features:
            return dict(features)

    def limits(self, deadline: float) -> Iterator[Row]:
        """The bare products of each layer's matrices, one layer after the other."""
        programs = self._spec["programs"]
        tokens = {(one["length"] * one["batch_size"], one["dtype"]) for one in programs}
        for length, dtype in sorted(tokens):
            row = {"kind": "limit", "architecture": "limit", "length": length, "dtype": dtype}
            yield tried(row, functools.partial(self._limit, length, dtype), deadline)

    def _limit(self, length: int, dtype: str) -> Row:
        import jax

        width, inner = self._spec["hidden_size"], self._spec["intermediate_size"]
        shapes = [*[(width, width)] * 4, (width, inner), (inner, width)]
        shapes = [(length, width), *shapes * self._spec["num_layers"]]
        arguments = [{"shape": shape, "dtype": dtype, "filling": "normal"} for shape in shapes]
        rows, *kernels = [jax.numpy.asarray(value, dtype) for value in drawn(arguments, {})]

        @jax.jit
        def products(rows: Any, kernels: Sequence[Any]) -> Any:
            for first in range(0, len(kernels), 6):
                *projections, intermediate, output = kernels[first : first + 6]
                projected = [rows @ kernel for kernel in projections]
                rows = projected[0] @ intermediate @ output
                # One number of each, or they would not be computed. The whole of each is written.
                rows += sum(jax.lax.optimization_barrier(one)[:1, :1] for one in projected[1:])
            return rows

        compiled = products.lower(rows, kernels).compile()
        found = measured(lambda: compiled(rows, kernels), _wait_for_last)
        count = 2 * length * self._spec["num_layers"] * (4 * width**2 + 2 * width * inner)
        best = found.get("queued_ms", found["ms"])
        return found | {"tflops_a_second": count / best / 1e9}


# --- PyTorch, in a process of its own ---


def torch_rows(spec: Row, folder: pathlib.Path, seconds: float, device: str) -> Iterator[Row]:
    """Hugging Face's TAPAS, then attention alone; those that are late are left out."""
    deadline = _CLOCK() + seconds
    lengths = sorted({one["length"] for one in spec["programs"] if one["kind"] == "forward"})
    inputs = {one["length"]: one["inputs"] for one in spec["programs"] if one["batch_size"] == 1}
    work: list[tuple[Row, Callable[[], Row]]] = []
    for dtype in ("bfloat16", "float32"):
        for length in lengths:
            common = {"length": length, "dtype": dtype, "batch_size": 1}
            if length <= _LONGEST_EAGER[dtype]:
                row = common | {"kind": "forward", "architecture": "hf_tapas"}
                inputs_file = folder / inputs[length]
                run = functools.partial(_hugging_face, spec, inputs_file, dtype, device)
                work.append((row, run))
            if dtype == "bfloat16":
                for name in ("sdpa", "sdpa_masked"):
                    row = common | {"kind": "attention", "architecture": name}
                    work.append((row, functools.partial(_sdpa, spec, length, dtype, name, device)))
    for row, measure in work:
        yield tried(row, measure, deadline)


def _torch_measured(run: Callable[[], Any], device: str) -> Row:
    import torch

    on_gpu = device == "cuda"
    if on_gpu:
        gc.collect()
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    torch.set_float32_matmul_precision("high")

    def wait(_: Any) -> None:
        if on_gpu:
            torch.cuda.synchronize()

    with torch.inference_mode():
        finite = bool(torch.isfinite(run()).all())
        row: Row = {"finite": finite} | measured(run, wait)
    if on_gpu:
        row["gb"] = torch.cuda.max_memory_allocated() / 1e9
    return row


def _hugging_face(spec: Row, inputs: pathlib.Path, dtype: str, device: str) -> Row:
    import torch
    import transformers

    config = transformers.TapasConfig(
        num_hidden_layers=spec["num_layers"],
        hidden_size=spec["hidden_size"],
        intermediate_size=spec["intermediate_size"],
        num_attention_heads=spec["num_heads"],
        reset_position_index_per_cell=True,
    )
    model = transformers.TapasModel(config).eval().to(device, getattr(torch, dtype))
    with np.load(inputs) as arrays:
        features = {name: torch.from_numpy(ids).long().to(device) for name, ids in arrays.items()}
    types = torch.stack([features[name] for name in spec["type_features"]], dim=-1)
    types = types.clamp(max=_TYPE_IDS - 1)

    def run() -> Any:
        return model(features["input_ids"], features["input_mask"], types).last_hidden_state

    return _torch_measured(run, device)


def _sdpa(spec: Row, length: int, dtype: str, name: str, device: str) -> Row:
    """As many layers of it as the programs have."""
    import torch

    num_heads = spec["num_heads"]
    shape = 3, 1, num_heads, length, spec["hidden_size"] // num_heads
    heads = torch.randn(shape, device=device).to(getattr(torch, dtype))
    mask = None
    if name == "sdpa_masked":
        mask = torch.ones(1, 1, length, length, dtype=torch.bool, device=device).tril()

    def run() -> Any:
        query, key, value = heads
        for _ in range(spec["num_layers"]):
            query = torch.nn.functional.scaled_dot_product_attention(query, key, value, mask)
        return query

    return _torch_measured(run, device)


def _torch_main(folder: pathlib.Path) -> None:
    """Imports, waits for a line with a number of seconds, and prints a row a line."""
    import torch
    import transformers

    transformers.TapasModel  # noqa: B018  # its import takes seconds, while others compile
    device = "cuda" if torch.cuda.is_available() else "cpu"
    seconds = float(sys.stdin.readline())
    spec = json.loads((folder / SPEC).read_text(encoding="utf-8"))
    versions = {"torch": torch.__version__, "transformers": transformers.__version__}
    print(json.dumps({"kind": "versions", **versions, "device": device}), flush=True)
    for row in torch_rows(spec, folder, seconds, device):
        print(json.dumps(row), flush=True)


class Torch:
    """PyTorch's process, which imports while others compile."""

    def __init__(self, folder: pathlib.Path) -> None:
        command = [sys.executable, "-m", "experiments.benchmarks.gpu_run", str(folder), "--torch"]
        pipes: Any = dict(stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self._process = subprocess.Popen(command, **pipes, text=True)

    def rows(self, seconds: float) -> list[Row]:
        """What it measures in so many seconds."""
        error = ""
        try:
            written, error = self._process.communicate(f"{seconds}\n", timeout=seconds + 8.0)
        except subprocess.TimeoutExpired:
            self._process.kill()
            written, error = self._process.communicate()
            error = "stopped: no time"
        lines = [line for line in written.splitlines() if line.startswith("{")]
        rows = [json.loads(line) for line in lines if line.endswith("}")]
        if self._process.returncode:
            reason = (error.strip().splitlines() or ["no reason"])[-1]
            rows.append({"kind": "torch", "architecture": "torch", "error": reason[:300]})
        return rows


# --- Tables ---


def tables(rows: Sequence[Row]) -> str:
    """The rows in Markdown: times of forward passes, their memory, training, attention alone."""
    good = [row for row in rows if "ms" in row]
    limits = {(row["length"], row["dtype"]): row["ms"] for row in good if row["kind"] == "limit"}
    parts = []
    for title, kind, dtype, text in (
        ("Forward, bfloat16, ms (times the limit)", "forward", "bfloat16", _time),
        ("Forward, float32, ms (times the limit)", "forward", "float32", _time),
        ("Forward, bfloat16, GB", "forward", "bfloat16", _memory),
        ("Forward, float32, GB", "forward", "float32", _memory),
        ("Training step, bfloat16, ms (times the limit)", "training", "bfloat16", _time),
        ("Training step, float32, ms (times the limit)", "training", "float32", _time),
        ("Training step, bfloat16, GB", "training", "bfloat16", _memory),
        ("Attention alone, all layers, bfloat16, ms", "attention", "bfloat16", _time),
    ):
        chosen = [row for row in good if (row["kind"], row["dtype"]) == (kind, dtype)]
        if not chosen:
            continue
        sizes = {row["length"]: row["batch_size"] for row in chosen}
        lengths, cells = sorted(sizes), {}
        if text is _time and kind != "attention":
            for length in lengths:
                limit = limits.get((sizes[length] * length, dtype))
                cells["the limit", length] = f"{_products(kind) * limit:.2f}" if limit else ""
        cells |= {(row["architecture"], row["length"]): text(row, limits) for row in chosen}
        names = dict.fromkeys(name for name, _ in cells)
        heads = [f"{sizes[n]} x {n:,}" if kind == "training" else f"{n:,}" for n in lengths]
        parts += [f"{title}:", "", f"| | {' | '.join(heads)} |", f"|---|{'---:|' * len(heads)}"]
        for name in names:
            line = " | ".join(cells.get((name, length), "") for length in lengths)
            parts.append(f"| {name} | {line} |")
        parts.append("")
    return "\n".join(parts)


def _products(kind: str) -> int:
    """How often the forward pass's products are computed: twice more for gradients."""
    return 3 if kind == "training" else 1


def _time(row: Row, limits: Mapping[tuple[int, str], float]) -> str:
    limit = limits.get((row["length"] * row["batch_size"], row["dtype"]))
    if limit is None or row["kind"] == "attention":
        return f"{row['ms']:.2f}"
    return f"{row['ms']:.2f} ({row['ms'] / limit / _products(row['kind']):.1f})"


def _memory(row: Row, _: Mapping[tuple[int, str], float]) -> str:
    return f"{row['gb']:.2f}" if "gb" in row else ""


# --- The program ---


def main() -> None:
    start = _CLOCK()
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--tables", type=pathlib.Path, nargs="+", help="results to show, no more")
    parser.add_argument("folder", nargs="?", type=pathlib.Path, help="of gpu_programs")
    parser.add_argument("--results", type=pathlib.Path, help="a JSON file of all rows")
    parser.add_argument("--seconds", type=float, default=140.0, help="nothing starts after them")
    parser.add_argument("--programs", default="", help="regular expression of names")
    parser.add_argument("--xla_flags", default=_XLA_FLAGS, help="of the compiler")
    parser.add_argument("--no_torch", action="store_true", help="time no PyTorch")
    parser.add_argument("--torch", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.tables:
        files = [json.loads(file.read_text(encoding="utf-8")) for file in options.tables]
        print(tables([row for file in files for row in file]))
        return
    if options.folder is None:
        parser.error("expected the folder of the programs")
    if options.torch:
        _torch_main(options.folder)
        return
    deadline = start + options.seconds
    has_torch = all(map(importlib.util.find_spec, ("torch", "transformers")))
    torch = Torch(options.folder) if has_torch and not options.no_torch else None
    os.environ.setdefault("XLA_FLAGS", options.xla_flags)
    # PyTorch needs memory too, between the groups.
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    os.environ.setdefault("XLA_PYTHON_CLIENT_MEM_FRACTION", "0.95")
    import jax

    jax.config.update("jax_enable_x64", True)  # of seeds
    device = jax.devices()[0]
    spec = json.loads((options.folder / SPEC).read_text(encoding="utf-8"))
    rows: list[Row] = []

    def add(found: Iterable[Row]) -> None:
        for row in found:
            rows.append(row | {"at": round(_CLOCK() - start, 1)})
            print(json.dumps(rows[-1]), flush=True)
            if options.results:
                options.results.parent.mkdir(parents=True, exist_ok=True)
                options.results.write_text(json.dumps(rows, indent=1), encoding="utf-8")

    versions = {"jax": jax.__version__, "device": device.device_kind}
    layers = {"num_layers": spec["num_layers"], "xla_flags": os.environ["XLA_FLAGS"]}
    add([{"kind": "versions"} | versions | layers])
    bench = Bench(options.folder, spec, device)
    chosen = [one for one in spec["programs"] if re.search(options.programs, one["name"])]
    for first in range(0, len(chosen), _GROUP):
        add(bench.rows(chosen[first : first + _GROUP], deadline))
        if not first:
            add(bench.limits(deadline))
            if torch is not None:
                add(torch.rows(max(1.0, min(_TORCH_SECONDS, deadline - 8.0 - _CLOCK()))))
    print(tables(rows), flush=True)
    os._exit(0)  # what still compiles is not waited for


if __name__ == "__main__":
    main()
