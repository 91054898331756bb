"""mate-tf calibrate: how much a model's scores are worth, learned and stored with the model."""

import argparse
from typing import Any

from mate_tf.command_line import arguments
from mate_tf.command_line.terminal import say

HELP = "learn how much a model's scores are worth"
DESCRIPTION = """\
Learns how much a model's scores are worth, and stores it in the model's folder.

Answers all questions of the file, finds by the official definition of their task which answers are
right, and fits a temperature and an offset to the scores. From then on a score of 0.8 says that
eight of ten such answers are right, wherever the model is loaded.

The questions must be none that the model was trained on, and none that its scores are reported for:
splits named train, dev or test are refused. `mate-tf data
--divide=train:train=90,calibration=10` keeps a tenth of the training tables for this.

Prints the expected calibration error on these questions before and after, and the AUROC, which
stays the same; `mate-tf evaluate` has both for other questions.
"""
EPILOG = """\
example:
  mate-tf calibrate --model=my_model --data=my_data/calibration.jsonl
"""
_NOT_FOR_CALIBRATION = ("train", "dev", "test")


def add_arguments(parser: Any) -> None:
    """Adds what the command takes."""
    arguments.add_questions(parser)
    arguments.add_model(parser, required=True)


def run(options: argparse.Namespace) -> None:
    """Fits the calibration, stores it and prints what it does."""
    from mate_tf.answers.answer import Answer
    from mate_tf.answers.calibration import fit_calibration
    from mate_tf.evaluation.scoring import auroc, expected_calibration_error, is_correct
    from mate_tf.serving.folder import check_calibrates, write_calibration

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
    predictor = arguments.load_model(options, calibrated=False)
    scores, correct = [], []
    for _table, question, answer in arguments.answers(predictor, asked):
        prediction = Answer.of(answer)
        if prediction.answered:
            scores.append(prediction.score)
            correct.append(is_correct(asked.task, prediction, question))
    try:
        calibration = fit_calibration(scores, correct)
    except ValueError as error:
        raise ValueError(f"{error} (split {asked.split!r})") from None
    say(f"questions: {len(asked.pairs)}, answered {len(scores)}, right {sum(correct)}")
    say(f"temperature {calibration.temperature:.3f}, offset {calibration.offset:+.3f}")
    before = expected_calibration_error(scores, correct)
    after = expected_calibration_error(calibration.apply(scores), correct)
    say(f"expected calibration error: {before:.2%} before, {after:.2%} after")
    say(f"AUROC: {auroc(scores, correct):.2%}")
    write_calibration(model, calibration)
    say(f"written to {model}")
