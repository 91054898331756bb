"""Answers all questions of a file on their tables and on tables in random orders, and compares.

    python -m experiments.robustness --model=out/wtq/saved_model --data=out/wtq_data/dev.jsonl \\
        --num_perturbations=5

Rows and columns of each table are put into random orders, the same for all of its questions, and
the cells of gold answers go along (TableFormer paper, section 4.1). Prints the accuracy before and
after, by the main score of the task (mate-tf evaluate), and the variation percentage: the
share of the answers that turned from right to wrong or from wrong to right, over all perturbations.
It also says how much of that are answers beside which another is as good, to 1e-5 of their scores.
A question that the model does not accept is answered wrongly. Questions in sequences (SQA) have the
model's own previous answers.

A table that is too long for the model loses rows with --drop_rows_to_fit, and in another order it
loses others.
"""

import itertools
import json

from absl import flags

from experiments import program
from mate_tf.command_line import arguments

_OPTIONS = program.define_flags(arguments.add_model, arguments.add_questions, arguments.add_devices)
_PERTURBATIONS = flags.DEFINE_integer(
    "num_perturbations", 1, "how many orders of each table are tried", lower_bound=1
)
_JSON = flags.DEFINE_bool("json", False, "print one JSON object, its metrics from 0 to 1")
_SEED = flags.DEFINE_integer("seed", 0, "of the orders: the first has this, the next one more")


def main(_) -> None:
    from mate_tf.answers.answer import Answer
    from mate_tf.evaluation.report import measure_robustness
    from mate_tf.evaluation.scoring import is_correct

    options = _OPTIONS()
    asked = arguments.read_asked(options)
    predictor = arguments.load_model(options, num_alternatives=1)
    rounds = itertools.count()

    def answer_all(pairs):
        number = next(rounds)
        name = f"perturbation {number}" if number else "as they are"
        return arguments.answers(predictor, asked, pairs=pairs, name=name)

    def is_right(answer, question):
        return is_correct(asked.task, Answer.of(answer), question)

    metrics = measure_robustness(
        answer_all, asked.pairs, is_right, _PERTURBATIONS.value, _SEED.value
    )
    if _JSON.value:
        print(json.dumps({"task": asked.task, "questions": len(asked.pairs), **metrics}))
        return
    print(f"questions: {len(asked.pairs)}")
    print(f"perturbations: {_PERTURBATIONS.value}")
    print(f"accuracy before: {metrics['accuracy']:.2%}")
    print(f"accuracy after: {metrics['perturbed_accuracy']:.2%}")
    print(f"variation percentage: {metrics['variation_percentage']:.2%}")
    print(f"  of it where two scores tie: {metrics['tied_variation_percentage']:.2%}")


if __name__ == "__main__":
    program.run(main)
