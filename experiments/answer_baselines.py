"""Scores the best constant answer, the least that a model must beat.

    python -m experiments.constant_baseline --train=out/wtq/train.jsonl --data=out/wtq/dev.jsonl

Tries the most frequent answers of the training questions on the other questions, and prints the
one that is right most often there with its denotation accuracy: more than any constant chosen
without looking could score.
"""

import collections

from absl import flags

from experiments import terminal

_TRAIN = flags.DEFINE_string("train", None, "JSON Lines file of training questions", required=True)
_DATA = flags.DEFINE_string("data", None, "JSON Lines file of questions to score", required=True)
_CANDIDATES = 20


def main(_) -> None:
    from mate_tf.evaluation.wtq import denotation_correct
    from mate_tf.tables.datasets.json_lines import read_json_lines

    frequent = collections.Counter(
        question.answers for _, question in read_json_lines(_TRAIN.value)
    ).most_common(_CANDIDATES)
    golds = [question.answers for _, question in read_json_lines(_DATA.value)]
    if not golds:
        raise ValueError(f"expected questions in {_DATA.value}, found none")
    right = {
        answer: sum(denotation_correct(answer, gold) for gold in golds) for answer, _ in frequent
    }
    best = max(right, key=lambda answer: right[answer])
    print(f"best constant answer: {', '.join(best)}")
    print(f"questions: {len(golds)}")
    print(f"denotation accuracy: {right[best] / len(golds):.4f}")


if __name__ == "__main__":
    terminal.run(main)
