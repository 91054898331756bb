"""Scores two ways to answer without a model, the least that one must beat.

    python -m experiments.paper.answer_baselines --train=out/wtq/train.jsonl
    --data=out/wtq/dev.jsonl

The best constant answer: of the most frequent answers of the training questions the one that is
right most often for the other questions, more than any constant chosen without looking could score.
A random cell of the best column: of the columns whose headers share the most words with the
question, or of all where none shares any; the score is what that is expected to be right in.
"""

import collections
import re

from absl import flags

from experiments import terminal

_TRAIN = flags.DEFINE_string("train", None, "JSON Lines file of training questions", required=True)
_DATA = flags.DEFINE_string("data", None, "JSON Lines file of questions to score", required=True)
_CANDIDATES = 20
_WORD = re.compile(r"\w+")


def best_constant(answers, golds) -> tuple[tuple[str, ...], float]:
    """Of the most frequent answers the best for the gold ones, and its denotation accuracy."""
    from mate_tf.evaluation.wtq import denotation_correct

    frequent = collections.Counter(answers).most_common(_CANDIDATES)
    right = {
        answer: sum(denotation_correct(answer, gold) for gold in golds) for answer, _ in frequent
    }
    best = max(right, key=lambda answer: right[answer])
    return best, right[best] / len(golds)


def random_cell_of_best_column(pairs) -> float:
    """The share of the questions that a random cell of the best column is expected to answer."""
    from mate_tf.evaluation.wtq import denotation_correct

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
    from mate_tf.datasets.json_lines import read_json_lines

    pairs = list(read_json_lines(_DATA.value))
    if not pairs:
        raise ValueError(f"expected questions in {_DATA.value}, found none")
    answers = (question.answers for _, question in read_json_lines(_TRAIN.value))
    best, share = best_constant(answers, [question.answers for _, question in pairs])
    print(f"questions: {len(pairs)}")
    print(f"best constant answer: {', '.join(best)}")
    print(f"  denotation accuracy: {share:.4f}")
    print("a random cell of the column whose header is most like the question")
    print(f"  denotation accuracy: {random_cell_of_best_column(pairs):.4f}")


if __name__ == "__main__":
    terminal.run(main)
