"""mate-tf calibrate: how much a model's scores are worth, learned and stored with the model."""

import argparse
from typing import Any

from mate_tf.command_line import arguments
from mate_tf.command_line.arguments import say

HELP = "learn how much a model's scores are worth"
DESCRIPTION = """\
Learns how much a model's scores are worth, and stores it in the model's folder.

Answers all questions of the file, finds by the official definition of their task which answers are
right, and fits a logistic regression to the scores and to what else is known of the answers: the
operator, the number of cells, how far ahead of the next best answer they are, the table's size and
the question's words. From then on a score of 0.8 says that eight of ten such answers are right,
wherever the model is loaded. Answers below a threshold are called "not sure"; it is chosen so that
70 % of the sure ones are right.

The questions must be none that the model was trained on, and none that its scores are reported for:
splits named train, dev or test are refused. `mate-tf data
--divide=train:train=90,calibration=10` keeps a tenth of the training tables for this.

Prints the expected calibration error and the AUROC on these questions before and after; `mate-tf
evaluate` has both for other questions.
"""
EPILOG = """\
example:
  mate-tf calibrate --model=my_model --data=my_data/calibration.jsonl
"""
_RIGHT_OF_SURE = 0.7
_NOT_FOR_CALIBRATION = ("train", "dev", "test")


def add_arguments(parser: Any) -> None:
    """Adds what the command takes."""
    arguments.add_questions(parser)
    arguments.add_model(parser, required=True)
    arguments.add_devices(parser)


def run(options: argparse.Namespace) -> None:
    """Fits the calibration, stores it and prints what it does."""
    from mate_tf.answers.answer import Answer
    from mate_tf.answers.calibration import fit_calibration, signs_of
    from mate_tf.evaluation.scoring import auroc, expected_calibration_error, is_correct
    from mate_tf.weights.folder import check_calibrates, write_calibration

    if options.architecture:
        raise ValueError(
            "expected the attention that the model has, whose scores the calibration is stored "
            f"for, got --architecture={options.architecture}; export it with that first"
        )
    model = arguments.find_model(options.model)
    check_calibrates(model)
    asked = arguments.read_asked(options)
    if asked.split.startswith(_NOT_FOR_CALIBRATION):
        raise ValueError(
            f"expected questions kept for calibration, got the split {asked.split!r}; make some "
            "with mate-tf data --divide=train:train=90,calibration=10"
        )
    predictor = arguments.load_model(options, calibrated=False, num_alternatives=1)
    scores, correct, signs = [], [], []
    for table, question, answer in arguments.answers(predictor, asked):
        prediction = Answer.of(answer)
        if prediction.answered:
            scores.append(prediction.score)
            correct.append(is_correct(asked.task, prediction, question))
            signs.append(signs_of(prediction, table, question.text))
    try:
        calibration = fit_calibration(scores, correct, signs, _RIGHT_OF_SURE)
    except ValueError as error:
        raise ValueError(f"{error} (split {asked.split!r})") from None
    say(f"questions: {len(asked.pairs)}, answered {len(scores)}, right {sum(correct)}")
    say(f"temperature {calibration.temperature:.3f}, offset {calibration.offset:+.3f}")
    pairs = zip(scores, signs, strict=True)
    after = [float(calibration.apply(score, of_answer)) for score, of_answer in pairs]
    for name, measure in (("calibration error", expected_calibration_error), ("AUROC", auroc)):
        before_and_after = measure(scores, correct), measure(after, correct)
        say("{}: {:.2%} before, {:.2%} after".format(name, *before_and_after))
    num_sure = sum(score >= calibration.threshold for score in after)
    say(
        f"threshold {calibration.threshold:.3f}: {num_sure / len(after):.0%} of the answers are "
        f"sure, and {_RIGHT_OF_SURE:.0%} of these are right"
    )
    write_calibration(model, calibration)
    say(f"written to {model}")
