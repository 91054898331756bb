"""Answers all questions of a file and scores them by the official WTQ definition.

    python -m experiments.evaluate --model=out/wtq/saved_model --data=out/wtq_data/dev.jsonl \
        --predictions=out/wtq/dev.tsv

The file is one of experiments/create_data.py, or your own in its format: a question, its gold
answers and its table a line. Prints the denotation accuracy over all of its questions; one that
the model does not accept counts as wrong, and is counted. Predictions are written in the official
format: the question's id, then the items of the answer, separated by tabs.
"""

import collections

from absl import flags
from tqdm import tqdm

from experiments import terminal

_MODEL = flags.DEFINE_string("model", None, "folder of an exported model", required=True)
_DATA = flags.DEFINE_string("data", None, "JSON Lines file of questions with tables", required=True)
_PREDICTIONS = flags.DEFINE_string("predictions", None, "TSV file to write the answers to")
_LIMIT = flags.DEFINE_integer("limit", None, "answer only so many questions", lower_bound=1)


def main(_) -> None:
    from mate_tf.evaluation.wtq import denotation_correct, write_predictions
    from mate_tf.serving import load_predictor
    from mate_tf.tables.datasets.json_lines import read_json_lines

    pairs = list(read_json_lines(_DATA.value))[: _LIMIT.value]
    if not pairs:
        raise ValueError(f"expected questions in {_DATA.value}, found none")
    predictor = load_predictor(_MODEL.value)
    predictions: dict[str, tuple[str, ...]] = {}
    outcomes: collections.Counter[str] = collections.Counter()
    answers = predictor.answer_all(pairs)
    for _table, question, answer in tqdm(answers, total=len(pairs), unit="question"):
        if isinstance(answer, ValueError):
            outcomes["not accepted"] += 1
            predictions[question.question_id] = ()
            continue
        predictions[question.question_id] = answer.items
        right = denotation_correct(answer.items, question.answers)
        outcomes["right" if right else "wrong"] += 1
    if _PREDICTIONS.value:
        write_predictions(_PREDICTIONS.value, predictions)
    print(f"questions: {len(pairs)}")
    print(f"not accepted: {outcomes['not accepted']}")
    print(f"denotation accuracy: {outcomes['right'] / len(pairs):.4f}")


if __name__ == "__main__":
    terminal.run(main)
