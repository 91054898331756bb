"""Compares what several models answer right, with a paired bootstrap of the difference.

    python -m experiments.paper.compare_answers --data=out/both/point_data/dev.jsonl \\
        --predictions=both=out/both/answers/dev.jsonl,table=out/table/answers/dev.jsonl

Prints how many questions each file answers right by the task's main score, and how many points the
first file is above each other one. The interval holds 95 % of the differences in 10,000 samples:
each draws as many questions as there are, with replacement, and asks them of both models.
"""

from absl import flags

from experiments import program
from experiments.paper.comparison_results import paired_interval, read_verdicts
from mate_tf.command_line import arguments

_QUESTIONS = program.define_flags(arguments.add_questions)
_PREDICTIONS = flags.DEFINE_list(
    "predictions", None, "NAME=FILE of mate-tf predict, one or more", required=True
)


def main(_) -> None:
    asked = arguments.read_asked(_QUESTIONS())
    scored = [question for _, question in asked.pairs if question.answers]
    right = read_verdicts(_PREDICTIONS.value, asked, scored)
    first, *others = right
    print(f"| answers of | questions | right | {first} is above it by | 95 % interval |")
    print("|---" * 5 + "|")
    for name, verdicts in right.items():
        cells = ["", ""]
        if name in others:
            points = 100 * (sum(right[first]) - sum(verdicts)) / len(scored)
            low, high = paired_interval(right[first], verdicts)
            cells = [f"{points:.1f}", f"{100 * low:.1f} to {100 * high:.1f}"]
        share = f"{sum(verdicts) / len(scored):.1%}"
        print(f"| {name} | {len(scored)} | {share} | {' | '.join(cells)} |")


if __name__ == "__main__":
    program.run(main)
