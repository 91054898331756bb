"""Answers all questions of a file with an exported model.

    python -m experiments.predict --model=out/wtq/saved_model --data=out/wtq_data/dev.jsonl \\
        --output=out/wtq/dev_predictions.jsonl

The file is one of experiments/create_data.py, or your own in its format, a question and its table
a line; where create_data wrote shards of dev.jsonl, that name stands for all of them. Writes an
object a question (mate_tf/evaluation/predictions.py says what is in it), in their order: also for
those that the model does not accept, with the reason. experiments/evaluate.py scores that file.

Questions in sequences (SQA) are answered one after the other, each with the model's own answers
before it; --history=gold takes the answers that the data has. --official writes the answers a
second time, in the format of the data set's own evaluation: WTQ, SQA and HYBRIDQA have one.
"""

import itertools
import pathlib
from typing import Any

from absl import flags
from tqdm import tqdm

from experiments import terminal

_MODEL = flags.DEFINE_string(
    "model", None, "folder of an exported model (experiments/export.py writes one)", required=True
)
_DATA = flags.DEFINE_string("data", None, "JSON Lines file of questions with tables", required=True)
_OUTPUT = flags.DEFINE_string(
    "output", None, "JSON Lines file to write the answers to", required=True
)
_OFFICIAL = flags.DEFINE_string(
    "official", None, "file to write the answers to in the data set's official format"
)
_TASK = flags.DEFINE_string(
    "task",
    None,
    "of the questions, such as SQA; by default what their folder's conversion.json says",
)
_HISTORY = flags.DEFINE_enum(
    "history",
    None,
    ["predicted", "gold"],
    "the previous answers of a question in a sequence; by default predicted for SQA, gold for "
    "other tasks, whose questions mostly have none",
)
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
    from mate_tf.evaluation.official import check_official_format, write_official
    from mate_tf.evaluation.predictions import prediction_of, write_predictions
    from mate_tf.serving import load_predictor
    from mate_tf.tables.conversion_file import task_of
    from mate_tf.tables.splits import read_questions
    from mate_tf.tables.taggers import load_tagger
    from mate_tf.tasks.sequences import answer_sequences

    file = pathlib.Path(_DATA.value)
    task = _TASK.value or task_of(file.parent)
    if _OFFICIAL.value:
        check_official_format(task)
    pairs = list(itertools.islice(read_questions(file.parent, file.stem), _LIMIT.value))
    if not pairs:
        raise ValueError(f"expected questions in {_DATA.value}, found none")
    overrides: dict[str, Any] = {"drop_rows_to_fit": True} if _DROP.value else {}
    tagger = load_tagger(_TAGGER.value) if _TAGGER.value else None
    predictor = load_predictor(_MODEL.value, tagger, **overrides)
    history = _HISTORY.value or ("predicted" if task == "SQA" else "gold")
    if history == "predicted":
        answers = answer_sequences(predictor.answer_all, pairs)
    else:
        answers = predictor.answer_all(pairs)
    by_id = {
        question.question_id: prediction_of(question.question_id, answer)
        for _table, question, answer in tqdm(answers, total=len(pairs), unit="question")
    }
    predictions = [by_id[question.question_id] for _table, question in pairs]
    write_predictions(_OUTPUT.value, predictions)
    if _OFFICIAL.value:
        write_official(task, _OFFICIAL.value, predictions)
    not_accepted = [prediction for prediction in predictions if prediction.error]
    print(f"questions: {len(predictions)}")
    print(f"not accepted: {len(not_accepted)}")
    for prediction in not_accepted[:1]:
        print(f"  the first: {prediction.question_id}: {prediction.error}")
    print(f"asked with rows dropped: {sum(p.rows_dropped > 0 for p in predictions)}")
    print(f"written to {_OUTPUT.value}")


if __name__ == "__main__":
    terminal.run(main)
