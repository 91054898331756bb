"""Times the architectures next to what the hardware allows, and draws the MATE paper's figures.

    python -m experiments.benchmarks.benchmark --output_dir=out/benchmark
    python -m experiments.benchmarks.benchmark --lengths=512,2048 --dtypes=float32
    python -m experiments.benchmarks.benchmark --mode=training --threads=2 --lengths=2048 \\
        --architectures=tapas,tapas+recompute,mate,mate+recompute

An encoder of BERT base's or MiniLM's size reads made-up tables of each length. Measured are, for
each length and dtype,

  inference  forward passes, in rounds of one pass each in one process: the architectures; "limit",
             the bare matrix products of the projections and feed-forward layers; the default
             model in ONNX Runtime, in float32; and, of all pairs, Hugging Face's TAPAS and an
             encoder in OpenVINO; each if it is installed and of that size. Memory is the peak of a
             pass above the loaded model, in a process of its own.
  training   the training loop's own steps, with dropout and the update, each measurement in a
             process of its own; "limit" takes the same products three times. Memory is the peak
             above the loaded model and optimizer, tracing included. "+recompute" computes
             activations again for the gradients.

Floating-point operations are those of the graph's matrix products. The folder gets
measurements.jsonl, table.md and the paper's figures 4 to 6 (appendix) as time.png, flops.png and
memory.png. Started again with the same folder the program goes on where it stopped.
"""

import json
import pathlib
import statistics
from typing import Any

from absl import flags, logging

from experiments import program
from experiments.benchmarks.runners import (
    PEERS,
    RECOMPUTE,
    SIZES,
    attentions,
    in_its_own_process,
    measure_memory,
    measure_times,
    measure_training,
    parse_lengths,
    peers,
    processor,
)
from experiments.paper.comparison_results import median_and_spread

_ARCHITECTURES = flags.DEFINE_list(
    "architectures",
    ["tapas", "sat", "mate", "mate_64_128", "linformer", "table_etc"],
    "architectures of AttentionConfig (mate has buckets of 42 and 116 global tokens); mate_64_128 "
    "with other sizes, mate_exact without a window, mate_views and mate_dense with one evaluator "
    "at every length; in training each also with +recompute",
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
flags.DEFINE_integer("threads", 1, "that TensorFlow computes with", lower_bound=1)
_MODE = flags.DEFINE_enum("mode", "inference", ["inference", "training"], "what is measured")
_ROUNDS = flags.DEFINE_integer("rounds", 5, "measurements of each", lower_bound=1)
_STEPS = flags.DEFINE_integer("steps", 2, "timed steps of a measurement in training", lower_bound=1)
flags.DEFINE_integer("batch_size", 1, "examples, all alike", lower_bound=1)
flags.DEFINE_enum("size", "base", list(SIZES), "BERT base's width or MiniLM's")
flags.DEFINE_integer("num_layers", 12, "layers of the encoder", lower_bound=1)
flags.DEFINE_integer("columns", 8, "columns of the tables", lower_bound=1)
flags.DEFINE_integer("cell_tokens", 2, "tokens of a cell of the tables", lower_bound=1)
_PEERS = flags.DEFINE_list("peers", None, "others' libraries; by default those that are installed")
_OUTPUT = flags.DEFINE_string("output_dir", "out/benchmark", "folder for the results")

_OPTIONS = "threads", "mode", "batch_size", "size", "num_layers", "columns", "cell_tokens"
_LIMIT, _DENSE = "limit", "tapas"
_OF_LINE = {"of", "name", "names", "seconds", "cpu_seconds", "flops", "megabytes"}
Line = dict[str, Any]


def main(_) -> None:
    lengths = parse_lengths(_LENGTHS.value)
    known = attentions(lengths[0])
    suffix = RECOMPUTE if _MODE.value == "training" else ""
    if unknown := [n for n in _ARCHITECTURES.value if n.removesuffix(suffix) not in known]:
        raise ValueError(f"expected --architectures among {', '.join(known)}, got {unknown}")
    if unknown := [name for name in _PEERS.value or () if name not in PEERS]:
        raise ValueError(f"expected --peers among {', '.join(PEERS)}, got {unknown}")
    folder = pathlib.Path(_OUTPUT.value)
    folder.mkdir(parents=True, exist_ok=True)
    results = Results(folder / "measurements.jsonl")
    for dtype in _DTYPES.value:
        for length in lengths:
            options = {"length": length, "dtype": dtype}
            options |= {name: flags.FLAGS[name].value for name in _OPTIONS}
            names = [
                name
                for name in _ARCHITECTURES.value
                if known[name.removesuffix(RECOMPUTE)].is_linear or length <= _LONGEST_DENSE.value
            ]
            (train if _MODE.value == "training" else infer)(results, names, options)
    lines = last_lines(results.lines)
    text = f"{processor()}\n\n{table(lines)}"
    (folder / "table.md").write_text(text + "\n", encoding="utf-8")
    print(text)
    draw(lines, folder)


class Results:
    """The measurements of a folder, found again by their options."""

    def __init__(self, file: pathlib.Path) -> None:
        self._file = file
        text = file.read_text(encoding="utf-8") if file.exists() else ""
        self.lines: list[Line] = [json.loads(line) for line in text.splitlines()]

    def holds(self, options: Line) -> bool:
        return any(options.items() <= line.items() for line in self.lines)

    def were_timed(self, names: list[str], options: Line) -> bool:
        """Whether the last process with these options has timed these, and perhaps others."""
        lines = [line for line in self.lines if (options | {"of": "time"}).items() <= line.items()]
        return bool(lines) and set(names) <= set(lines[-1]["names"])

    def add(self, line: Line) -> None:
        self.lines.append(line)
        with self._file.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")


def infer(results: Results, names: list[str], options: Line) -> None:
    """Adds the forward passes of a length that are not there yet."""
    others = peers(options) if _PEERS.value is None else _PEERS.value
    dense_fits = options["length"] <= _LONGEST_DENSE.value
    timed = [_LIMIT, *names, *(others if dense_fits else [])]
    if not results.were_timed(timed, options):
        logging.info("%s: timing %s", options, ", ".join(timed))
        for line in in_its_own_process(measure_times, timed, options, _ROUNDS.value):
            results.add(options | {"of": "time", "names": timed} | line)
    for name in names:
        if not results.holds(options | {"name": name, "of": "memory"}):
            peak = in_its_own_process(measure_memory, name, options)
            results.add(options | {"of": "memory", "name": name, "megabytes": peak})


def train(results: Results, names: list[str], options: Line) -> None:
    """Adds the training steps of a length, unless they are there."""
    names = [_LIMIT, *names]
    if results.were_timed(names, options):
        return
    lines: dict[str, list[Line]] = {name: [] for name in names}
    for done in range(_ROUNDS.value):
        for name in names:
            logging.info("%s: round %d, %s", options, done + 1, name)
            lines[name].append(in_its_own_process(measure_training, name, options, _STEPS.value))
    for name, rounds in lines.items():
        times: Line = {
            key: [one for each in rounds for one in each[key]] for key in ("seconds", "cpu_seconds")
        }
        results.add(options | {"of": "time", "names": names, "name": name, "flops": None} | times)
        if name != _LIMIT:
            megabytes = statistics.median(each["megabytes"] for each in rounds)
            results.add(options | {"of": "memory", "name": name, "megabytes": megabytes})


def last_lines(lines: list[Line]) -> list[Line]:
    """Without times that were measured again later together with others."""
    last = {_options(line): line["names"] for line in lines if line["of"] == "time"}
    kept = {}
    for line in lines:
        if line["of"] != "time" or line["names"] == last[_options(line)]:
            kept[*_options(line), line["of"], line["name"]] = line
    return list(kept.values())


def _options(line: Line, *without: str) -> tuple:
    """The common data of one process's lines."""
    left_out = {*_OF_LINE, *without}
    return tuple(sorted((key, value) for key, value in line.items() if key not in left_out))


def table(lines: list[Line]) -> str:
    """A table for all options but the length, with a row for each length and architecture."""
    kinds: dict[tuple, list[Line]] = {}
    for line in lines:
        kinds.setdefault(_options(line, "length"), []).append(line)
    parts = []
    for kind, group in kinds.items():
        parts.append(", ".join(f"{name} {value}" for name, value in kind) + ":\n")
        parts.append("| tokens | | ms | spread | processor ms | x limit | x dense | GFLOP | MB |")
        parts.append("|---:|---|---:|---:|---:|---:|---:|---:|---:|")
        memory = {(x["length"], x["name"]): x["megabytes"] for x in group if x["of"] == "memory"}
        times = {(x["length"], x["name"]): x for x in group if x["of"] == "time"}
        spreads = {key: median_and_spread(x["seconds"]) for key, x in times.items()}

        for (length, name), line in times.items():
            median, half_range = spreads[length, name]
            processor = statistics.median(line.get("cpu_seconds") or [0])
            beside = [spreads.get((length, of), (0, 0))[0] for of in (_LIMIT, _DENSE)]
            cells = [
                f"{length:,}",
                name,
                f"{1000 * median:,.0f}",
                f"{1000 * half_range:,.0f}",
                f"{1000 * processor:,.0f}" if processor else "",
                *(f"{median / other:.2f}" if other else "" for other in beside),
                f"{line['flops'] / 1e9:,.0f}" if line["flops"] else "",
                f"{memory[length, name]:,.0f}" if (length, name) in memory else "",
            ]
            parts.append(f"| {' | '.join(cells)} |")
        parts.append("")
    return "\n".join(parts)


def draw(lines: list[Line], folder: pathlib.Path) -> None:
    """The paper's figures, for the options that were measured first."""
    try:
        import matplotlib.figure
    except ModuleNotFoundError:
        logging.warning("no figures: matplotlib is not installed (pip install 'mate_tf[plots]')")
        return
    first = _options(lines[0], "length")
    lines = [line for line in lines if _options(line, "length") == first]
    for name, of, label, value in (
        ("time", "time", "seconds", lambda line: statistics.median(line["seconds"])),
        ("flops", "time", "GFLOP of matrix products", lambda line: (line["flops"] or 0) / 1e9),
        ("memory", "memory", "MB above the loaded model", lambda line: line["megabytes"]),
    ):
        points: dict[str, list[tuple[int, float]]] = {}
        for line in lines:
            if line["of"] == of and value(line):
                points.setdefault(line["name"], []).append((line["length"], value(line)))
        if not points:
            continue
        figure = matplotlib.figure.Figure(figsize=(6, 4), layout="constrained")
        axes = figure.add_subplot(xlabel="tokens", ylabel=label)
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        for architecture, curve in points.items():
            axes.plot(*zip(*sorted(curve), strict=True), marker="o", label=architecture)
        axes.legend()
        axes.grid(alpha=0.3)
        figure.savefig(folder / f"{name}.png", dpi=120)


if __name__ == "__main__":
    program.run(main)
