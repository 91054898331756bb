"""Trains by the programs of `prepare` on JAX's first device; needs NumPy and no TensorFlow.

    python -m experiments.exported.train out/programs --output=out/one.npz --num_steps=10000
    python -m experiments.exported.train out/programs --output=out/two.npz --num_steps=2000 \\
        --init=out/one.npz --learning_rate=5e-5 --seed=2

Each batch has examples of similar length. The rate rises and falls as in the training loop.

Shapes: N examples, B of a batch, S sequence, W numbers of an example's other feature.
"""

import argparse
import concurrent.futures
import io
import itertools
import json
import lzma
import math
import pathlib
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

RECORDS, SPEC, START = "train.npz.xz", "spec.json", "start.npz"
STEP = "step"  # beside the weights of a file: how many steps they were trained
LENGTHS, TIMES, MASK = "lengths", "times", "input_mask"
# Padding of tokens; other features have zeros.
_FILLING = {"numeric_values": math.nan, "numeric_values_scale": 1.0}
_LOG_EVERY = 500  # steps
Arrays = dict[str, np.ndarray]


class Examples:
    """The examples of a file of `prepare.pack`; `times` is how often an epoch has each."""

    def __init__(self, path: pathlib.Path) -> None:
        with np.load(io.BytesIO(lzma.decompress(path.read_bytes()))) as arrays:
            self._features = dict(arrays)
        self.lengths, self.times = self._features.pop(LENGTHS), self._features.pop(TIMES)
        self._ends = np.cumsum(self.lengths)

    def batch(self, inputs: Sequence[Sequence[Any]], indices: Iterable[int]) -> Arrays:
        """Features of examples, [B, S] and [B, W]; inputs are their names, shapes and dtypes."""
        arrays = {
            name: np.full(shape, _FILLING.get(name, 0), dtype) for name, shape, dtype in inputs
        }
        for row, index in enumerate(indices):
            length, end = self.lengths[index], self._ends[index]
            arrays[MASK][row, :length] = 1
            for name, values in self._features.items():
                if values.ndim == 1:
                    arrays[name][row, :length] = values[end - length : end]
                else:
                    arrays[name][row] = values[index]
        return arrays


def batches(
    examples: Examples, sizes: Sequence[Sequence[int]], seed: int
) -> Iterator[tuple[int, np.ndarray]]:
    """Yields full batches without end, in random order: the number of a size, and indices [B].

    The sizes are examples and tokens, in ascending order of tokens. What is left of an epoch comes
    in the next.
    """
    random = np.random.default_rng(seed)
    left = [np.zeros(0, np.int64) for _ in sizes]
    while True:
        counts = (examples.times + random.random(len(examples.times))).astype(np.int64)
        epoch = random.permutation(np.repeat(np.arange(len(counts)), counts))
        kinds = np.searchsorted([length for _, length in sizes], examples.lengths[epoch])
        full: list[tuple[int, np.ndarray]] = []
        for kind, (size, _) in enumerate(sizes):
            waiting = np.concatenate([left[kind], epoch[kinds == kind]])
            number = len(waiting) // size
            full += [(kind, indices) for indices in waiting[: number * size].reshape(-1, size)]
            left[kind] = waiting[number * size :]
        for place in random.permutation(len(full)):
            yield full[place]


def rate(step: int, peak: float, num_steps: int, warmup_steps: int) -> float:
    """Of the update after so many others, as `WarmupLinearDecay`."""
    count = step + 1
    return peak * (count / warmup_steps if count < warmup_steps else 1.0 - count / num_steps)


def train(
    programs: pathlib.Path,
    num_steps: int,
    learning_rate: float | None = None,
    warmup_ratio: float = 0.05,
    seed: int = 1,
    init: pathlib.Path | None = None,
) -> Arrays:
    """Trains, and prints the loss now and then; FloatingPointError if it is not finite.

    It returns the weights by their path in the model, float32.
    """
    import jax

    from experiments.benchmarks.private_jax import compile_for_device

    jax.config.update("jax_enable_x64", True)  # the number of updates is an int64
    device = jax.devices()[0]
    spec = json.loads((programs / SPEC).read_text(encoding="utf-8"))
    peak = learning_rate or spec["learning_rate"]
    values = read(programs / START) | ({} if init is None else read(init))
    state = {
        name: jax.device_put(np.broadcast_to(values.get(name, 0), shape).astype(dtype))
        for name, (shape, dtype) in spec["variables"].items()
    }
    examples, start = Examples(programs / RECORDS), time.monotonic()
    hlo = [lzma.decompress((programs / one["file"]).read_bytes()) for one in spec["programs"]]
    with concurrent.futures.ThreadPoolExecutor() as pool:
        compiled = [*pool.map(lambda each: compile_for_device(each, device), hlo)]
    print(f"{device.device_kind}: compiled in {time.monotonic() - start:.0f} s", flush=True)
    sizes = [one["size"] for one in spec["programs"]]
    losses, start = [], time.monotonic()
    # A batch is made while the device computes: what it returns is read only for a line.
    chosen = itertools.islice(batches(examples, sizes, seed), num_steps)
    for step, (kind, indices) in enumerate(chosen):
        program, variables = spec["programs"][kind], spec["programs"][kind]["variables"]
        batch = examples.batch(program["inputs"], indices)
        step_rate = rate(step, peak, num_steps, round(warmup_ratio * num_steps))
        state[spec["rate"]] = np.float32(step_rate)
        arguments = [batch[name] for name, _, _ in program["inputs"]]
        arguments += [state[name] for name in variables]
        results = compiled[kind].execute(jax.device_put(arguments, device))
        for result, argument in program["updates"]:
            state[variables[argument - len(batch)]] = results[result]
        losses.append(results[program["outputs"].index("loss")])
        if step + 1 == num_steps or not (step + 1) % _LOG_EVERY:
            loss = np.mean([float(one) for one in losses])
            speed = len(losses) / (time.monotonic() - start)
            line = f"step {step + 1}/{num_steps}  loss {loss:.4f}  learning rate {step_rate:.2e}"
            print(f"{line}  {speed:.1f} steps/s", flush=True)
            if not math.isfinite(loss):
                raise FloatingPointError(f"expected a finite loss at step {step + 1}")
            losses, start = [], time.monotonic()
    return {name: np.asarray(state[name]) for name in spec["weights"]}


def read(path: pathlib.Path) -> Arrays:
    """The arrays of a file of weights."""
    with np.load(path) as arrays:
        return dict(arrays)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("programs", type=pathlib.Path, help="folder that prepare wrote")
    parser.add_argument("--output", type=pathlib.Path, required=True, help="file of weights")
    parser.add_argument("--init", type=pathlib.Path, help="file of weights to start from")
    parser.add_argument("--num_steps", type=int, required=True)
    parser.add_argument("--learning_rate", type=float, help="the peak; by default the config's")
    parser.add_argument("--warmup_ratio", type=float, default=0.05)
    parser.add_argument("--seed", type=int, default=1, help="of the order of the examples")
    given = vars(parser.parse_args())
    output = given.pop("output")
    weights = {name: value.astype(np.float16) for name, value in train(**given).items()}
    np.savez(output, allow_pickle=False, **weights, **{STEP: np.array(given["num_steps"])})


if __name__ == "__main__":
    main()
