"""The finished runs of a comparison of architectures, in its folder, and how sure differences are.

Shapes: N questions, R samples.
"""

import json
import pathlib
import re
from collections.abc import Sequence
from typing import Any

from mate_tf.reading.text_files import complete_text_file, read_json
from mate_tf.tables.table import Question

RESULTS_FILE = "results.json"
SHARED_KEYS = ("config", "data", "weights")  # in it, beside the runs: what all are made of
RUN = "RUN"  # in --init_checkpoint: each architecture's own
_SAMPLES = 10_000


def median_and_spread(values: list[float]) -> tuple[float, float]:
    """Their median and half their interquartile range, as the papers give them."""
    import numpy as np

    low, median, high = np.percentile(values, [25, 50, 75])
    return float(median), float(high - low) / 2


def spread(values: list[float], scale: float = 1.0) -> str:
    """Both, as text, of the values times `scale`."""
    median, half_range = median_and_spread([value * scale for value in values])
    return f"{median:.1f} ± {half_range:.1f}"


def folder_of(name: str, seed: int) -> str:
    """The name of a run of an architecture or a variant: its folder, and in the results."""
    return f"{re.sub('[^A-Za-z0-9_.=,-]+', '_', name)}_{seed}"


def read_comparison(folder: pathlib.Path) -> dict | None:
    """The results in a folder where they are a comparison's."""
    if not (folder / RESULTS_FILE).is_file():
        return None
    content = read_json(folder / RESULTS_FILE)
    return content if {"runs", *SHARED_KEYS} <= content.keys() else None


def first_weights(path: str | None, name: str, seed: int) -> str | None:
    """Where a run of an architecture or a variant starts from.

    FileNotFoundError if that is its own run of another comparison, which has not ended.
    """
    if not path or RUN not in path:
        return path
    folder = pathlib.Path(path).parent
    runs = (read_comparison(folder) or {"runs": {}})["runs"]
    has_seeds = any(run.endswith("_2") for run in runs)
    run = folder / folder_of(name, seed if has_seeds else 1)
    if run.name not in runs or not run.is_dir():
        raise FileNotFoundError(
            f"expected a run of {name} that has ended, at {run}, to start from, found none"
        )
    return str(run)


def read_verdicts(
    named: Sequence[str], asked: Any, scored: list[Question]
) -> dict[str, list[bool]]:
    """Which of the scored questions each file of predictions, NAME=FILE, answers right.

    That is by the task's main score, by the files' names. ValueError if a name comes twice.
    """
    from mate_tf.evaluation.predictions import match_predictions, read_predictions
    from mate_tf.evaluation.scoring import is_correct

    verdicts: dict[str, list[bool]] = {}
    for text in named:
        name, equals, path = text.partition("=")
        if not (name and equals and path) or name in verdicts:
            raise ValueError(
                f"expected different names as NAME=FILE in --predictions, got {text!r}"
            )
        answers = read_predictions(path)
        match_predictions(answers, asked.pairs, path)
        verdicts[name] = [is_correct(asked.task, answers[it.question_id], it) for it in scored]
    return verdicts


def paired_interval(first: Sequence[bool], second: Sequence[bool]) -> tuple[float, float]:
    """The interval of 95 % of the difference of two shares of right answers, from -1 to 1.

    Both [N] are of the same questions (Efron and Tibshirani, 1993, the percentile interval).
    """
    import numpy as np

    gains = np.asarray(first, float) - np.asarray(second, float)  # [N] of -1, 0, 1
    kinds, counts = np.unique(gains, return_counts=True)
    drawn = np.random.default_rng(0).multinomial(len(gains), counts / len(gains), _SAMPLES)
    low, high = np.percentile(drawn @ kinds / len(gains), [2.5, 97.5])  # of [R]
    return float(low), float(high)


class Results:
    """The finished runs of a comparison, in its folder.

    ValueError if those there are of another config, data or first weights, or no comparison's.
    """

    def __init__(self, output_dir: pathlib.Path, shared: dict):
        from mate_tf.dataclass_json import differences

        shared = json.loads(json.dumps(shared))  # without tuples, as it is read
        self._path = output_dir / RESULTS_FILE
        self._content: dict = shared | {"runs": {}}
        if not self._path.exists():
            return
        there = read_comparison(output_dir)
        if there is None or any(there[name] != shared[name] for name in SHARED_KEYS):
            different = ", ".join(differences(there or {}, shared)) or "other files"
            raise ValueError(
                f"expected what the runs in {self._path} are made of, got another: {different}; "
                "choose another --output_dir or the same"
            )
        self._content["runs"] = there["runs"]

    def get(self, name: str) -> dict | None:
        """The metrics and seconds of a run, where it has ended."""
        return self._content["runs"].get(name)

    def add(self, name: str, result: dict) -> None:
        """Adds a run that has ended."""
        self._content["runs"][name] = result
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with complete_text_file(self._path) as file:
            file.write(json.dumps(self._content, indent=1) + "\n")
