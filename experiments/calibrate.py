"""Learns how much an exported model's scores are worth, and stores it with the model.

    python -m experiments.calibrate --model=out/wtq/saved_model \\
        --data=out/wtq_data/calibration.jsonl

Answers all questions of the file, finds by the official definition of their task which answers are
right, and fits a temperature and an offset to the scores (mate_tf/answers/calibration.py). From
then on a score of 0.8 says that eight of ten such answers are right: wherever the model is loaded,
The min_score 0.8 of `mate-tf ask` and experiments/predict.py keeps to these.

The questions must be none that the model was trained on, and none that its scores are reported for
(splits named train, dev or test are refused): create_data
--divide=train:train=90,calibration=10 keeps a tenth of the training tables for this.
Prints the expected calibration error before and after on these questions, and the AUROC, which
stays; experiments/evaluate.py has both for others.
"""

from absl import flags

from experiments import asking, model_flags, terminal
from experiments.question_files import read_asked

_NOT_FOR_CALIBRATION = ("train", "dev", "test")


def main(_) -> None:
    from mate_tf.answers.answer import Answer
    from mate_tf.answers.calibration import fit_calibration
    from mate_tf.evaluation.scoring import auroc, expected_calibration_error, is_correct
    from mate_tf.serving.folder import check_calibrates, write_calibration

    if model_flags.ARCHITECTURE.value:
        raise ValueError(
            "expected the attention that the model has, whose scores the calibration is stored "
            f"for, got --architecture={model_flags.ARCHITECTURE.value}; export it with that first"
        )
    check_calibrates(model_flags.model_path())
    asked = read_asked()
    if asked.split.startswith(_NOT_FOR_CALIBRATION):
        raise ValueError(
            f"expected questions kept for calibration, got the split {asked.split!r}; make some "
            "with create_data --divide=train:train=90,calibration=10"
        )
    predictor = asking.load(calibrated=False)
    scores, correct = [], []
    for _table, question, answer in asking.answers(predictor, asked):
        prediction = Answer.of(answer)
        if prediction.answered:
            scores.append(prediction.score)
            correct.append(is_correct(asked.task, prediction, question))
    try:
        calibration = fit_calibration(scores, correct)
    except ValueError as error:
        raise ValueError(f"{error} (split {asked.split!r})") from None
    print(f"questions: {len(asked.pairs)}, answered {len(scores)}, right {sum(correct)}")
    print(f"temperature {calibration.temperature:.3f}, offset {calibration.offset:+.3f}")
    before = expected_calibration_error(scores, correct)
    after = expected_calibration_error(calibration.apply(scores), correct)
    print(f"expected calibration error: {before:.2%} before, {after:.2%} after")
    print(f"AUROC: {auroc(scores, correct):.2%}")
    write_calibration(model_flags.MODEL.value, calibration)
    print(f"written to {model_flags.MODEL.value}")


if __name__ == "__main__":
    flags.mark_flags_as_required(["model", "data"])
    terminal.run(main)
