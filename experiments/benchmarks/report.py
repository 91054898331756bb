"""What experiments/benchmarks/benchmark.py has measured, as a table and as the paper's figures."""

import pathlib
import statistics
from typing import Any

from absl import logging

from experiments.paper.comparison_results import median_and_spread

# What the others are set beside.
LIMIT, DENSE = "limit", "tapas"


def last_lines(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Of what was timed again, with more beside, the last time alone."""
    last = {_options(line): line["names"] for line in lines if line["of"] == "time"}
    kept = {}
    for line in lines:
        if line["of"] != "time" or line["names"] == last[_options(line)]:
            kept[*_options(line), line["of"], line["name"]] = line
    return list(kept.values())


def _options(line: dict[str, Any], *without: str) -> tuple:
    """What the lines of one process share."""
    of_the_line = {"of", "name", "names", "seconds", "flops", "megabytes", *without}
    return tuple(sorted((key, value) for key, value in line.items() if key not in of_the_line))


def table(lines: list[dict[str, Any]]) -> str:
    """For all options but the length a table, with a row for each length and architecture."""
    kinds: dict[tuple, list[dict[str, Any]]] = {}
    for line in lines:
        kinds.setdefault(_options(line, "length"), []).append(line)
    parts = []
    for kind, group in kinds.items():
        parts.append(", ".join(f"{name} {value}" for name, value in kind) + ":\n")
        parts.append("| tokens | | ms | spread | x limit | x dense | GFLOP | MB |")
        parts.append("|---:|---|---:|---:|---:|---:|---:|---:|")
        memory = {(x["length"], x["name"]): x["megabytes"] for x in group if x["of"] == "memory"}
        times = {(x["length"], x["name"]): x for x in group if x["of"] == "time"}
        spreads = {key: median_and_spread(x["seconds"]) for key, x in times.items()}
        for (length, name), line in times.items():
            median, half_range = spreads[length, name]
            cells = [
                f"{length:,}",
                name,
                f"{1000 * median:,.0f}",
                f"{1000 * half_range:,.0f}",
                f"{median / spreads[length, LIMIT][0]:.2f}",
                f"{median / spreads[length, DENSE][0]:.2f}" if (length, DENSE) in spreads else "",
                f"{line['flops'] / 1e9:,.0f}" if line["flops"] else "",
                f"{memory[length, name]:,.0f}" if (length, name) in memory else "",
            ]
            parts.append(f"| {' | '.join(cells)} |")
        parts.append("")
    return "\n".join(parts)


def draw(lines: list[dict[str, Any]], folder: pathlib.Path) -> None:
    """The paper's figures, of the first options that were measured."""
    try:
        import matplotlib.figure
    except ModuleNotFoundError:
        logging.warning("no figures: matplotlib is not installed (pip install mate_tf[plots])")
        return
    first = _options(lines[0], "length")
    lines = [line for line in lines if _options(line, "length") == first]
    values = {
        "time": ("seconds", lambda line: statistics.median(line["seconds"])),
        "flops": ("GFLOP of matrix products", lambda line: line["flops"] / 1e9),
        "memory": ("MB above the loaded model", lambda line: line["megabytes"]),
    }
    for name, (label, value) in values.items():
        figure = matplotlib.figure.Figure(figsize=(6, 4), layout="constrained")
        axes = figure.add_subplot(xlabel="tokens", ylabel=label)
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        chosen = [
            line for line in lines if line["of"] == ("memory" if name == "memory" else "time")
        ]
        for architecture in dict.fromkeys(line["name"] for line in chosen):
            points = sorted(
                (line["length"], value(line))
                for line in chosen
                if line["name"] == architecture and (name != "flops" or line["flops"])
            )
            if points:
                axes.plot(*zip(*points, strict=True), marker="o", label=architecture)
        axes.legend()
        axes.grid(alpha=0.3)
        figure.savefig(folder / f"{name}.png", dpi=120)
