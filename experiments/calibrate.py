"""Learns how much an exported model's scores are worth, and stores it with the model.

    python -m experiments.calibrate --model=out/wtq/saved_model \\
        --data=out/wtq_data/calibration.jsonl

Answers all questions of the file, finds by the official definition of their task which answers are
right, and fits a temperature and an offset to the scores (mate_tf/tasks/calibration.py). From then
on a score of 0.8 says that eight of ten such answers are right: wherever the model is loaded,
--min_score=0.8 of experiments/ask.py and experiments/predict.py keeps to these.

The questions must be none that the model was trained on, and none that its scores are reported for:
create_data --divide=train:train=90,calibration=10 keeps a tenth of the training tables for this.
Prints the expected calibration error before and after on these questions, and the AUROC, which
stays; experiments/evaluate.py has both for others.
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
_DATA = flags.DEFINE_string(
    "data", None, "JSON Lines file of questions with tables and gold answers", required=True
)
_TASK = flags.DEFINE_string(
    "task",
    None,
    "of the questions, such as SQA; by default what their folder's conversion.json says",
)
_DROP = flags.DEFINE_bool(
    "drop_rows_to_fit",
    False,
    "leave out rows at the end of a table that is too long for the model; questions that it does "
    "not accept are passed over",
)
_TAGGER = flags.DEFINE_string(
    "tagger",
    None,
    "for a model with grammar-guided attention, the tagger of its training data: textblob, "
    "spacy:MODEL or MODULE:FUNCTION",
)
_LIMIT = flags.DEFINE_integer("limit", None, "answer only so many questions", lower_bound=1)


def main(_) -> None:
    from mate_tf.evaluation.calibration import auroc, expected_calibration_error
    from mate_tf.evaluation.predictions import prediction_of
    from mate_tf.evaluation.scoring import is_correct
    from mate_tf.serving import load_predictor, write_calibration
    from mate_tf.tables.conversion_file import task_of
    from mate_tf.tables.splits import read_questions
    from mate_tf.tables.taggers import load_tagger
    from mate_tf.tasks.calibration import fit_calibration

    file = pathlib.Path(_DATA.value)
    task = _TASK.value or task_of(file.parent)
    pairs = list(itertools.islice(read_questions(file.parent, file.stem), _LIMIT.value))
    if not pairs:
        raise ValueError(f"expected questions in {file}, found none")
    overrides: dict[str, Any] = {"drop_rows_to_fit": True} if _DROP.value else {}
    tagger = load_tagger(_TAGGER.value) if _TAGGER.value else None
    predictor = load_predictor(_MODEL.value, tagger, calibrated=False, **overrides)
    scores, correct = [], []
    answers = predictor.answer_all(pairs)
    for _table, question, answer in tqdm(answers, total=len(pairs), unit="question"):
        prediction = prediction_of(question.question_id, answer)
        if not prediction.error:
            scores.append(prediction.score)
            correct.append(is_correct(task, prediction, question))
    try:
        calibration = fit_calibration(scores, correct)
    except ValueError as error:
        raise ValueError(f"{error} (file '{file}')") from None
    write_calibration(_MODEL.value, calibration)
    print(f"questions: {len(pairs)}, accepted {len(scores)}, answered right {sum(correct)}")
    print(f"temperature {calibration.temperature:.3f}, offset {calibration.offset:+.3f}")
    before = expected_calibration_error(scores, correct)
    after = expected_calibration_error(calibration.apply(scores), correct)
    print(f"expected calibration error: {before:.2%} before, {after:.2%} after")
    print(f"AUROC: {auroc(scores, correct):.2%}")
    print(f"written to {_MODEL.value}")


if __name__ == "__main__":
    terminal.run(main)
