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
wherever the model is loaded. Two thresholds say which answers are said plainly, which as "probably"
and which as "not sure": three of four of the plain ones are right, and 45 % of the probable ones.
Where the file has questions that their table does not answer, refusals are calibrated too.

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
_NOT_FOR_CALIBRATION = ("train", "dev", "test")


def add_arguments(parser: Any) -> None:
    """Adds what the command takes."""
    arguments.add_questions(parser)
    arguments.add(
        parser,
        """
        --right-of-sure=SHARE  the least share of plain answers that is right, or one for each of
            several files in --data, with commas
        """,
        defaults=dict(right_of_sure="0.75"),
    )
    arguments.add_model(parser, required=True)
    arguments.add_devices(parser)


def run(options: argparse.Namespace) -> None:
    """Fits the calibration, stores it and prints what it does."""
    from mate_tf.evaluation import scoring
    from mate_tf.weights.folder import check_calibrates, write_calibration

    if options.architecture:
        raise ValueError(
            "expected the attention that the model has, whose scores the calibration is stored "
            f"for, got --architecture={options.architecture}; export it with that first"
        )
    model = arguments.find_model(options.model)
    check_calibrates(model)
    shares = [float(share) for share in options.right_of_sure.split(",")]
    files = options.data.split(",")
    if len(shares) != len(files) or not all(0.0 <= share <= 1.0 for share in shares):
        raise ValueError(
            f"expected a share from 0 to 1 as --right-of-sure for each of {len(files)} files, got "
            f"{options.right_of_sure}"
        )
    given = []
    for file in files:
        given.append(arguments.read_asked(argparse.Namespace(**{**vars(options), "data": file})))
        if given[-1].split.startswith(_NOT_FOR_CALIBRATION):
            raise ValueError(
                f"expected questions kept for calibration, got the split {given[-1].split!r}; make "
                "some with mate-tf data --divide=train:train=90,calibration=10"
            )
    predictor = arguments.load_model(options, calibrated=False, num_alternatives=1)
    each = [scoring.observe(arguments.answers(predictor, asked), asked.task) for asked in given]
    try:
        calibration = scoring.calibrate(each, shares)
    except ValueError as error:
        raise ValueError(f"{error} ({options.data})") from None
    observed = scoring.Observed.together(each)
    scores, correct = observed.scores, observed.correct
    number = sum(len(asked.pairs) for asked in given)
    say(f"questions: {number}, answered {len(scores)}, right {correct.sum()}")
    say(f"temperature {calibration.temperature:.3f}, offset {calibration.offset:+.3f}")
    after = scoring.apply_each(calibration, scores, observed.signs)
    calibration_error = scoring.expected_calibration_error
    for name, measure in (("calibration error", calibration_error), ("AUROC", scoring.auroc)):
        before_and_after = measure(scores, correct), measure(after, correct)
        say("{}: {:.2%} before, {:.2%} after".format(name, *before_and_after))
    for name, least, most in (
        ("said plainly", calibration.sure, 1.01),
        ("probable", calibration.probably, calibration.sure),
    ):
        chosen = (after >= least) & (after < most)
        share = correct[chosen].mean() if chosen.any() else 0.0
        say(f"{name}, from {least:.3f} on: {chosen.mean():.0%} of the answers, {share:.0%} right")
    write_calibration(model, calibration)
    say(f"written to {model}")
