"""Times the architectures beside what the hardware allows, and draws the paper's figures.

    python -m experiments.benchmarks.benchmark --output_dir=out/benchmark
    python -m experiments.benchmarks.benchmark --lengths=512,2048 --dtypes=float32 --mode=training

An encoder of BERT base's size reads made-up tables of each length, one CPU thread unless --threads
says otherwise. For each length and dtype one process measures, in rounds of one measurement each,
so that a busy machine slows all alike:

  limit      the bare matrix products of query, key, value, output and both feed-forward layers, of
             the same shapes and dtype
  tapas      our dense encoder, and the other architectures asked for
  hf_tapas   Hugging Face's TAPAS, where transformers and torch are installed

Floating-point operations are those of the graph's matrix products. Memory is the most that is
resident in a pass, above the loaded model after a short one, in a process of its own.

The folder gets measurements.jsonl, a line for each, table.md, and the paper's figures 4, 5 and 6 as
time.png, flops.png and memory.png (MATE paper, appendix; extra: plots). Started again with the same
folder it goes on where it stopped.
"""

import importlib.util
import json
import pathlib
from typing import Any

from absl import flags, logging

from experiments import program
from experiments.benchmarks.inputs import attentions, parse_lengths
from experiments.benchmarks.process import in_its_own_process
from experiments.benchmarks.report import LIMIT, draw, last_lines, table

_ARCHITECTURES = flags.DEFINE_list(
    "architectures",
    ["tapas", "sat", "mate", "mate_64_128", "linformer", "table_etc"],
    "those of AttentionConfig (mate has buckets of 42 and a global part of 116 tokens), and "
    "mate_64_128, of others, mate_exact, without a window, and mate_views and mate_dense, mate by "
    "views or by all pairs at every length",
)
_LENGTHS = flags.DEFINE_list(
    "lengths",
    ["128", "256", "512", "1024", "2048", "4096", "8192", "16384"],
    "tokens in an example",
)
_LONGEST_DENSE = flags.DEFINE_integer(
    "longest_dense", 8192, "length up to which all pairs are computed; at 8,192 they take 9 GB"
)
_DTYPES = flags.DEFINE_list("dtypes", ["float32", "mixed_bfloat16"], "of the model")
_THREADS = flags.DEFINE_list("threads", ["1"], "that TensorFlow computes with")
_MODE = flags.DEFINE_enum(
    "mode", "inference", ["inference", "training"], "a forward pass, or with its gradients"
)
_ROUNDS = flags.DEFINE_integer("rounds", 5, "measurements of each", lower_bound=1)
_BATCH = flags.DEFINE_integer("batch_size", 1, "examples, all alike", lower_bound=1)
_LAYERS = flags.DEFINE_integer("num_layers", 12, "layers of the encoder", lower_bound=1)
_COLUMNS = flags.DEFINE_integer("columns", 8, "columns of the tables", lower_bound=1)
_PEERS = flags.DEFINE_bool(
    "peers", None, "also time hf_tapas; by default in inference where its packages are installed"
)
_OUTPUT = flags.DEFINE_string("output_dir", "out/benchmark", "folder for the results")

_PEER = "hf_tapas"


def main(_) -> None:
    lengths = parse_lengths(_LENGTHS.value)
    known = attentions(lengths[0])
    if unknown := sorted(set(_ARCHITECTURES.value) - set(known)):
        raise ValueError(f"expected --architectures among {', '.join(known)}, got {unknown}")
    folder = pathlib.Path(_OUTPUT.value)
    folder.mkdir(parents=True, exist_ok=True)
    results = Results(folder / "measurements.jsonl")
    for threads in map(int, _THREADS.value):
        for dtype in _DTYPES.value:
            for length in lengths:
                measure_length(results, length, dtype, threads)
    lines = last_lines(results.lines)
    text = table(lines)
    (folder / "table.md").write_text(text + "\n", encoding="utf-8")
    print(text)
    draw(lines, folder)


class Results:
    """The measurements of a folder, found again by what they are of."""

    def __init__(self, file: pathlib.Path) -> None:
        self.file = file
        self.lines: list[dict[str, Any]] = []
        if file.exists():
            self.lines = [
                json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()
            ]

    def holds(self, options: dict[str, Any]) -> bool:
        return any(options.items() <= line.items() for line in self.lines)

    def timed_together(self, options: dict[str, Any]) -> set[str]:
        """What the last process that timed these options has timed."""
        lines = [line for line in self.lines if (options | {"of": "time"}).items() <= line.items()]
        return set(lines[-1]["names"]) if lines else set()

    def add(self, line: dict[str, Any]) -> None:
        self.lines.append(line)
        with self.file.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")


def measure_length(results: Results, length: int, dtype: str, threads: int) -> None:
    """Adds what is not there yet of one length."""
    from experiments.benchmarks.runners import measure_memory, measure_times

    options = {
        "length": length,
        "dtype": dtype,
        "threads": threads,
        "mode": _MODE.value,
        "batch_size": _BATCH.value,
        "num_layers": _LAYERS.value,
        "columns": _COLUMNS.value,
    }
    known = attentions(length)
    names = [
        name
        for name in _ARCHITECTURES.value
        if known[name].is_linear or length <= _LONGEST_DENSE.value
    ]
    peers = [_PEER] if _has_peer() and length <= _LONGEST_DENSE.value else []
    timed = [LIMIT, *names, *peers]
    if not results.timed_together(options) >= set(timed):
        logging.info("%d tokens, %s: timing %s", length, dtype, ", ".join(timed))
        for line in in_its_own_process(measure_times, timed, options, _ROUNDS.value):
            results.add(options | {"of": "time", "names": timed} | line)
    for name in names:
        if not results.holds(options | {"name": name, "of": "memory"}):
            peak = in_its_own_process(measure_memory, name, options)
            results.add(options | {"of": "memory", "name": name, "megabytes": peak})
            logging.info("%d tokens, %s: %s takes %.0f MB", length, dtype, name, peak)


def _has_peer() -> bool:
    if _PEERS.value is not None:
        return _PEERS.value
    packages = ("torch", "transformers")
    return _MODE.value == "inference" and all(map(importlib.util.find_spec, packages))


if __name__ == "__main__":
    program.run(main)
