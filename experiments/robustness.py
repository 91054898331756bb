"""Answers all questions of a file on their tables and on tables in random orders, and compares.

    python -m experiments.robustness --model=out/wtq/saved_model --data=out/wtq_data/dev.jsonl \
        --perturbations=5

Rows and columns of each table are put into random orders, the same for all of its questions, and
the cells of gold answers go along (TableFormer paper, section 4.1). Prints the accuracy before and
after, by the main score of the task (experiments/evaluate.py), and the variation percentage: the
share of the answers that turned from right to wrong or from wrong to right, over all perturbations.
A question that the model does not accept is answered wrongly. The file is as for
experiments/predict.py; questions in sequences (SQA) have the model's own previous answers.

A table that is too long for the model, and loses rows with --drop_rows_to_fit, loses others in
another order.
"""

import itertools
import pathlib
from typing import Any

from absl import flags
from tqdm import tqdm

from experiments import terminal

_MODEL = flags.DEFINE_string("model", None, "folder of an exported model", required=True)
_DATA = flags.DEFINE_string("data", None, "JSON Lines file of questions with tables", required=True)
_TASK = flags.DEFINE_string(
    "task",
    None,
    "of the questions, such as SQA; by default what their folder's conversion.json says",
)
_PERTURBATIONS = flags.DEFINE_integer(
    "perturbations", 1, "how many orders of each table are tried", lower_bound=1
)
_SEED = flags.DEFINE_integer("seed", 0, "of the orders: the first has this, the next one more")
_DROP = flags.DEFINE_bool(
    "drop_rows_to_fit",
    False,
    "leave out rows at the end of a table that is too long for the model, where its question would "
    "not be accepted otherwise",
)
_TAGGER = flags.DEFINE_string(
    "tagger",
    None,
    "for a model with grammar-guided attention, the tagger of its training data: textblob, "
    "spacy:MODEL or MODULE:FUNCTION",
)
_LIMIT = flags.DEFINE_integer("limit", None, "ask only so many questions", lower_bound=1)


def main(_) -> None:
    from mate_tf.evaluation.predictions import prediction_of
    from mate_tf.evaluation.robustness import measure_robustness
    from mate_tf.evaluation.scoring import is_correct
    from mate_tf.serving import load_predictor
    from mate_tf.tables.conversion_file import task_of
    from mate_tf.tables.splits import read_questions
    from mate_tf.tables.taggers import load_tagger
    from mate_tf.tasks.sequences import answer_sequences

    file = pathlib.Path(_DATA.value)
    task = _TASK.value or task_of(file.parent)
    pairs = list(itertools.islice(read_questions(file.parent, file.stem), _LIMIT.value))
    if not pairs:
        raise ValueError(f"expected questions in {_DATA.value}, found none")
    overrides: dict[str, Any] = {"drop_rows_to_fit": True} if _DROP.value else {}
    tagger = load_tagger(_TAGGER.value) if _TAGGER.value else None
    predictor = load_predictor(_MODEL.value, tagger, **overrides)
    rounds = itertools.count()

    def answer_all(asked):
        number = next(rounds)
        name = f"perturbation {number}" if number else "as they are"
        answers = predictor.answer_all(asked)
        if task == "SQA":
            answers = answer_sequences(predictor.answer_all, asked)
        return tqdm(answers, desc=name, total=len(asked), unit="question")

    def is_right(answer, question):
        return is_correct(task, prediction_of(question.question_id, answer), question)

    metrics = measure_robustness(answer_all, pairs, is_right, _PERTURBATIONS.value, _SEED.value)
    print(f"questions: {len(pairs)}")
    print(f"perturbations: {_PERTURBATIONS.value}")
    print(f"accuracy before: {metrics['accuracy']:.4f}")
    print(f"accuracy after: {metrics['perturbed_accuracy']:.4f}")
    print(f"variation percentage: {100 * metrics['variation_percentage']:.2f} %")


if __name__ == "__main__":
    terminal.run(main)
