"""Scores answers to statements (experiments/create_statements.py) by operation.

    python -m experiments.predict --model=out/model --data=out/statements_128/test.jsonl \\
        --output=out/test_predictions.jsonl
    python -m experiments.paper.statement_accuracy --predictions=out/test_predictions.jsonl \\
        --data=out/statements_128/test.jsonl

Prints for each operation, for each way in which the two excerpts of a statement differ (/elsewhere,
/replaced and /swapped, as create_statements has them), and for all, how many statements there are,
the accuracy, and that of the true and of the false ones alone. A statement that the model did not
accept counts as wrong.
"""

import collections

from absl import flags

from experiments import program
from mate_tf.command_line import arguments

_QUESTIONS = program.define_flags(arguments.add_questions)
_PREDICTIONS = flags.DEFINE_string(
    "predictions", None, "JSON Lines file of answers (experiments/predict.py)", required=True
)


def main(_) -> None:
    from mate_tf.evaluation.predictions import match_predictions, read_predictions
    from mate_tf.evaluation.scoring import is_correct
    from mate_tf.synthesis.statements import ENTAILED, REFUTED, kind_of_id

    predictions = read_predictions(_PREDICTIONS.value)
    task, _, pairs = arguments.read_asked(_QUESTIONS())
    match_predictions(predictions, pairs, _PREDICTIONS.value)
    verdicts = collections.defaultdict(list)
    for _, question in pairs:
        operation, way = kind_of_id(question.question_id)
        if not operation or question.class_index not in (ENTAILED, REFUTED):
            raise ValueError(
                f"expected statements of create_statements, got '{question.question_id}'"
            )
        is_right = is_correct(task, predictions[question.question_id], question)
        for name in (operation, *([f"/{way}"] if way else []), "all"):
            verdicts[name].append((question.class_index, is_right))
    for name in sorted(verdicts, key=lambda name: (name == "all", name[0] == "/", name)):
        of_name = verdicts[name]
        shares = [
            _share(right for label, right in of_name if label in labels)
            for labels in ((REFUTED, ENTAILED), (ENTAILED,), (REFUTED,))
        ]
        told = "  ".join(map("{} {:6.1%}".format, ("accuracy", "true", "false"), shares))
        print(f"{name:<16} {len(of_name):6}  {told}")


def _share(verdicts) -> float:
    verdicts = list(verdicts)
    return sum(verdicts) / len(verdicts) if verdicts else float("nan")


if __name__ == "__main__":
    program.run(main)
