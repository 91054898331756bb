"""Trains by the programs of `prepare` on JAX's first device; needs no TensorFlow.

    python -m experiments.exported.train out/programs --output=out/one.npz --num_steps=10000
    python -m experiments.exported.train out/programs --output=out/two.npz --num_steps=2000 \\
        --init=out/one.npz --learning_rate=5e-5 --seed=2
    python -m experiments.exported.train out/programs --output=out/mean.npz \\
        --average=out/two.npz,out/three.npz

Each batch has examples of similar length. At the end the examples of the dev splits are judged. A
file of weights is in half precision; those that --init lacks are as `prepare` found them. The rate
rises and falls as in the training loop (mate_tf/training/optimizer.py).
"""

import argparse
import collections
import concurrent.futures
import json
import lzma
import math
import pathlib
import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from experiments.exported.arrays import Arrays, Chosen, Examples, batch_of, batches

SPEC, START = "spec.json", "start.npz"
STEP = "step"  # beside the weights of a file: how many steps they were trained
_LOG_EVERY = 500  # steps
_AHEAD = 24  # batches that are made while others are trained on
_THREADS = 8
Spec = Mapping[str, Any]


def rate(step: int, peak: float, num_steps: int, warmup_steps: int) -> float:
    """Of the update after so many others, as `WarmupLinearDecay`."""
    count = step + 1
    return peak * (count / warmup_steps if count < warmup_steps else 1.0 - count / num_steps)


def counter(step_rate: float, largest: float, long: int) -> int:
    """The number of updates at which the programs' schedule has a rate (`prepare.LONG`)."""
    return round((1.0 - step_rate / largest) * long) - 1


class Program:
    """A program on a device."""

    def __init__(self, spec: Spec, folder: pathlib.Path, device: Any) -> None:
        from experiments.benchmarks.private_jax import compile_for_device

        self.spec = spec
        self._device = device
        hlo = lzma.decompress((folder / spec["file"]).read_bytes())
        self._program = compile_for_device(hlo, device)

    def batch(self, chosen: Chosen) -> dict[str, Any]:
        """A batch of examples on the device."""
        import jax

        return jax.device_put(batch_of(self.spec["inputs"], chosen), self._device)

    def run(self, batch: Mapping[str, Any], state: dict[str, Any]) -> dict[str, Any]:
        """The outputs by name; variables of the state are replaced by what they become."""
        inputs = [batch[name] for name, _, _ in self.spec["inputs"]]
        variables = self.spec["variables"]
        results = self._program.execute(inputs + [state[name] for name in variables])
        for result, argument in self.spec["updates"]:
            state[variables[argument - len(inputs)]] = results[result]
        return dict(zip(self.spec["outputs"], results, strict=False))


class Trained:
    """The programs of a folder that `prepare` wrote, with the values of their variables.

    They start from a file of weights, or from those of the folder.
    """

    def __init__(self, folder: pathlib.Path, init: pathlib.Path | None = None) -> None:
        import jax

        jax.config.update("jax_enable_x64", True)  # the number of updates is an int64
        self._device = jax.devices()[0]
        self.spec = json.loads((folder / SPEC).read_text(encoding="utf-8"))
        values = read(folder / START) | ({} if init is None else read(init))
        self.state = {
            name: jax.device_put(np.broadcast_to(values.get(name, 0), shape).astype(dtype))
            for name, (shape, dtype) in self.spec["variables"].items()
        }
        self._records = {
            split: [(one, Examples(folder / one["file"])) for one in entries]
            for split, entries in self.spec["records"].items()
        }
        start = time.monotonic()
        with concurrent.futures.ThreadPoolExecutor() as pool:
            pending = {
                kind: [pool.submit(Program, one, folder, self._device) for one in entries]
                for kind, entries in self.spec["programs"].items()
            }
        self._programs = {
            kind: sorted((one.result() for one in programs), key=lambda one: one.spec["length"])
            for kind, programs in pending.items()
        }
        seconds = time.monotonic() - start
        print(f"{self._device.device_kind}: compiled in {seconds:.0f} s", flush=True)

    def train(self, num_steps: int, peak: float, warmup_ratio: float, seed: int) -> None:
        """Trains for so many steps, and prints the loss now and then.

        ValueError if the rate is larger than the programs can have, FloatingPointError if the loss
        is not finite.
        """
        import jax

        largest, long = self.spec["peak"], self.spec["num_steps"]
        if not peak <= largest:
            raise ValueError(f"expected a learning rate of at most {largest}, got {peak}")
        programs = self._programs["train"]
        sources = [(examples, one["times"]) for one, examples in self._records["train"]]
        chosen = batches(sources, _sizes(programs), seed)
        losses, start = [], time.monotonic()
        with concurrent.futures.ThreadPoolExecutor(_THREADS) as pool:
            pending: collections.deque = collections.deque()
            for step in range(num_steps):
                while len(pending) < min(_AHEAD, num_steps - step):
                    kind, examples = next(chosen)
                    pending.append((programs[kind], pool.submit(programs[kind].batch, examples)))
                step_rate = rate(step, peak, num_steps, round(warmup_ratio * num_steps))
                number = np.int64(counter(step_rate, largest, long))
                self.state[self.spec["counter"]] = jax.device_put(number, self._device)
                program, batch = pending.popleft()
                losses.append(program.run(batch.result(), self.state)["loss"])
                if step + 1 == num_steps or not (step + 1) % _LOG_EVERY:
                    loss = float(np.mean([float(one) for one in losses]))
                    speed = len(losses) / (time.monotonic() - start)
                    print(
                        f"step {step + 1}/{num_steps}  loss {loss:.4f}  learning rate "
                        f"{step_rate:.2e}  {speed:.1f} steps/s",
                        flush=True,
                    )
                    if not math.isfinite(loss):
                        raise FloatingPointError(f"expected a finite loss at step {step + 1}")
                    losses, start = [], time.monotonic()

    def judge(self) -> dict[str, tuple[float, float]]:
        """How many answers of each dev split are right, and of how many."""
        programs = self._programs["judge"]
        limits = [length for _, length in _sizes(programs)]
        scores = {}
        for one, examples in self._records["dev"]:
            right = counted = 0.0
            kinds = np.searchsorted(limits, examples.lengths)
            for kind, program in enumerate(programs):
                indices = np.flatnonzero(kinds == kind)
                for first in range(0, len(indices), program.spec["size"]):
                    part = indices[first : first + program.spec["size"]]
                    # Where the batch is not full, padding alone is judged too, and not counted.
                    outputs = program.run(program.batch([(examples, i) for i in part]), self.state)
                    right += float(np.sum(outputs["right"][: len(part)]))
                    counted += float(np.sum(outputs["counted"][: len(part)]))
            scores[one["name"]] = right, counted
        return scores

    def weights(self) -> Arrays:
        """The weights by their path in the model, float32."""
        return {name: np.asarray(self.state[name]) for name in self.spec["weights"]}


def _sizes(programs: Sequence[Program]) -> list[tuple[int, int]]:
    return [(one.spec["size"], one.spec["length"]) for one in programs]


def read(path: pathlib.Path) -> Arrays:
    """The arrays of a file of weights."""
    with np.load(path) as arrays:
        return dict(arrays)


def write(path: pathlib.Path, weights: Mapping[str, np.ndarray], step: int) -> None:
    """Writes weights in half precision; ValueError for one that is not finite there."""
    with np.errstate(over="ignore"):
        half = {name: value.astype(np.float16) for name, value in weights.items()}
    if wrong := [name for name, value in half.items() if not np.isfinite(value).all()]:
        raise ValueError(f"expected finite weights in half precision, got others in {wrong[0]}")
    np.savez(path, allow_pickle=False, **{**half, STEP: np.array(step)})


def average(paths: Sequence[pathlib.Path]) -> tuple[Arrays, int]:
    """The mean of each weight over files of them, and the most steps of one."""
    files = [read(path) for path in paths]
    step = max(int(one.pop(STEP)) for one in files)
    if any(one.keys() != files[0].keys() for one in files):
        raise ValueError(f"expected the same weights in {', '.join(map(str, paths))}")
    means = {n: np.mean([one[n].astype(np.float32) for one in files], axis=0) for n in files[0]}
    return means, step


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("programs", type=pathlib.Path, help="folder that prepare wrote")
    parser.add_argument("--output", type=pathlib.Path, required=True, help="file of weights")
    parser.add_argument("--init", type=pathlib.Path, help="file of weights to start from")
    parser.add_argument("--num_steps", type=int, default=0)
    parser.add_argument("--learning_rate", type=float, help="by default the largest there is")
    parser.add_argument("--warmup_ratio", type=float, default=0.05)
    parser.add_argument("--seed", type=int, default=1, help="of the order of the examples")
    parser.add_argument("--average", help="files of weights, between commas, to start from")
    options = parser.parse_args()
    init = options.init
    step = options.num_steps
    if options.average:
        weights, step = average([pathlib.Path(path) for path in options.average.split(",")])
        init = options.output
        write(init, weights, step)
    trained = Trained(options.programs, init)
    if options.num_steps:
        peak = options.learning_rate or trained.spec["peak"]
        trained.train(options.num_steps, peak, options.warmup_ratio, options.seed)
        write(options.output, trained.weights(), step)
    for name, (right, counted) in trained.judge().items():
        print(f"{name}: {right:.0f} of {counted:.0f} right, {right / max(counted, 1.0):.1%}")


if __name__ == "__main__":
    main()
