"""Scores two ways to answer questions without a model.

    python -m experiments.paper.answer_baselines --train=out/wtq/train.jsonl \\
        --data=out/wtq/dev.jsonl

The best constant answer is, of the most frequent training answers, the one that is right most often
here: more than a constant chosen without looking could score. The other takes a random cell from
the column whose header shares the most words with the question, or from all columns if none does;
its score is the expected share of right answers.
"""

import collections
import re

from absl import flags

from experiments import program
from mate_tf.datasets.json_lines import read_json_lines
from mate_tf.evaluation.official import denotation_correct

_TRAIN = flags.DEFINE_string("train", None, "JSON Lines file of training questions", required=True)
_DATA = flags.DEFINE_string("data", None, "JSON Lines file of questions to score", required=True)
_CANDIDATES = 20
_WORD = re.compile(r"\w+")


def best_constant(answers, golds) -> tuple[tuple[str, ...], float]:
    """The best of the most frequent answers, and its denotation accuracy for the gold ones."""
    frequent = collections.Counter(answers).most_common(_CANDIDATES)
    right = {
        answer: sum(denotation_correct(answer, gold) for gold in golds) for answer, _ in frequent
    }
    best = max(right, key=lambda answer: right[answer])
    return best, right[best] / len(golds)


def random_cell_of_best_column(pairs) -> float:
    """The expected share of the questions that a random cell of the best column answers."""
    expected = 0.0
    for table, question in pairs:
        asked = _words(question.text)
        shared = [len(asked & _words(name)) for name in table.header]
        best = [column for column, count in enumerate(shared) if count == max(shared)]
        cells = [row[column] for row in table.rows for column in best]
        times = collections.Counter(cells)
        right = sum(
            count for cell, count in times.items() if denotation_correct((cell,), question.answers)
        )
        expected += right / len(cells)
    return expected / len(pairs)


def _words(text: str) -> set[str]:
    return set(_WORD.findall(text.lower()))


def main(_) -> None:
    pairs = list(read_json_lines(_DATA.value))
    if not pairs:
        raise ValueError(f"expected questions in {_DATA.value}, found none")
    answers = (question.answers for _, question in read_json_lines(_TRAIN.value))
    best, share = best_constant(answers, [question.answers for _, question in pairs])
    random = random_cell_of_best_column(pairs)
    print(f"questions: {len(pairs)}")
    print(f"best constant answer: {share:.2%}, {', '.join(best)}")
    print(f"random cell of the column whose header is most like the question: {random:.2%}")


if __name__ == "__main__":
    program.run(main)
