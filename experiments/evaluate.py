"""Answers all questions of a file and scores them by the official WTQ definition.

    python -m experiments.evaluate --model=out/wtq/saved_model --data=out/wtq_data/dev.jsonl \
        --predictions=out/wtq/dev.tsv

The file is one of experiments/create_data.py, or your own in its format: a question, its gold
answers and its table a line; where create_data wrote shards of dev.jsonl, that name stands for all
of them. Prints the denotation accuracy over all of its questions; one that the model does not
accept counts as wrong, and is counted. Predictions are written in the official format: the
question's id, then the items of the answer, separated by tabs.
"""

import itertools
import pathlib
from typing import Any

from absl import flags
from tqdm import tqdm

from experiments import terminal

_MODEL = flags.DEFINE_string("model", None, "folder of an exported model", required=True)
_DATA = flags.DEFINE_string("data", None, "JSON Lines file of questions with tables", required=True)
_PREDICTIONS = flags.DEFINE_string("predictions", None, "TSV file to write the answers to")
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
_LIMIT = flags.DEFINE_integer("limit", None, "answer only so many questions", lower_bound=1)


def main(_) -> None:
    from mate_tf.evaluation.wtq import denotation_accuracy, write_predictions
    from mate_tf.serving import load_predictor
    from mate_tf.tables.splits import read_questions
    from mate_tf.tables.taggers import load_tagger

    file = pathlib.Path(_DATA.value)
    pairs = list(itertools.islice(read_questions(file.parent, file.stem), _LIMIT.value))
    if not pairs:
        raise ValueError(f"expected questions in {_DATA.value}, found none")
    overrides: dict[str, Any] = {"drop_rows_to_fit": True} if _DROP.value else {}
    tagger = load_tagger(_TAGGER.value) if _TAGGER.value else None
    predictor = load_predictor(_MODEL.value, tagger, **overrides)
    predictions: dict[str, tuple[str, ...]] = {}
    not_accepted: dict[str, str] = {}
    rows_dropped = 0
    answers = predictor.answer_all(pairs)
    for _table, question, answer in tqdm(answers, total=len(pairs), unit="question"):
        if isinstance(answer, ValueError):
            not_accepted[question.question_id] = str(answer)
        else:
            predictions[question.question_id] = answer.items
            rows_dropped += answer.rows_dropped > 0
    if _PREDICTIONS.value:
        write_predictions(_PREDICTIONS.value, predictions | dict.fromkeys(not_accepted, ()))
    golds = {question.question_id: question.answers for _table, question in pairs}
    print(f"questions: {len(pairs)}")
    print(f"not accepted: {len(not_accepted)}")
    for question_id, reason in itertools.islice(not_accepted.items(), 1):
        print(f"  the first: {question_id}: {reason}")
    print(f"asked with rows dropped: {rows_dropped}")
    print(f"denotation accuracy: {denotation_accuracy(predictions, golds):.4f}")


if __name__ == "__main__":
    terminal.run(main)
