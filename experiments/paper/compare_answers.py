"""Compares what several models answer right, with a paired bootstrap of the difference.

    python -m experiments.paper.compare_answers --data=out/both/point_data/dev.jsonl \\
        --predictions=both=out/both/answers/dev.jsonl,table=out/table/answers/dev.jsonl

Prints how many questions each file answers right by the task's main score, and how many points the
first file is above each other one. The interval holds 95 % of the differences in 10,000 samples:
each draws as many questions as there are, with replacement, and asks them of both models.

Shapes: N questions, R samples.
"""

from collections.abc import Sequence

from absl import flags

from experiments import program
from mate_tf.command_line import arguments

QUESTIONS = program.define_flags(arguments.add_questions)
_PREDICTIONS = flags.DEFINE_list(
    "predictions", None, "NAME=FILE of experiments/predict.py, one or more", required=True
)
_SAMPLES = 10_000


def read_files(pairs) -> dict[str, dict]:
    """The predictions of each file, by its name."""
    from mate_tf.evaluation.predictions import match_predictions, read_predictions

    files = {}
    for text in _PREDICTIONS.value:
        name, equals, path = text.partition("=")
        if not (name and equals and path) or name in files:
            raise ValueError(
                f"expected different names as NAME=FILE in --predictions, got {text!r}"
            )
        files[name] = read_predictions(path)
        match_predictions(files[name], pairs, path)
    return files


def paired_interval(
    first: Sequence[bool], second: Sequence[bool], seed: int = 0
) -> tuple[float, float]:
    """The interval of 95 % of the difference of two shares of right answers, from -1 to 1.

    Both [N] are of the same questions (Efron and Tibshirani, 1993, the percentile interval).
    """
    import numpy as np

    gains = np.asarray(first, float) - np.asarray(second, float)  # [N] of -1, 0, 1
    kinds, counts = np.unique(gains, return_counts=True)
    drawn = np.random.default_rng(seed).multinomial(len(gains), counts / len(gains), _SAMPLES)
    low, high = np.percentile(drawn @ kinds / len(gains), [2.5, 97.5])  # of [R]
    return float(low), float(high)


def main(_) -> None:
    from mate_tf.evaluation.scoring import is_correct

    asked = arguments.read_asked(QUESTIONS())
    pairs = [pair for pair in asked.pairs if pair[1].answers]
    right = {
        name: [
            is_correct(asked.task, of_file[question.question_id], question) for _, question in pairs
        ]
        for name, of_file in read_files(asked.pairs).items()
    }
    first, *others = right
    print(f"| answers of | questions | right | {first} is above it by | 95 % interval |")
    print("|---" * 5 + "|")
    for name, verdicts in right.items():
        cells = ["", ""]
        if name in others:
            points = 100 * (sum(right[first]) - sum(verdicts)) / len(pairs)
            low, high = paired_interval(right[first], verdicts)
            cells = [f"{points:.1f}", f"{100 * low:.1f} to {100 * high:.1f}"]
        share = f"{sum(verdicts) / len(pairs):.1%}"
        print(f"| {name} | {len(pairs)} | {share} | {' | '.join(cells)} |")


if __name__ == "__main__":
    program.run(main)
