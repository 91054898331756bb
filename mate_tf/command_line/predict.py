"""mate-tf predict: answers to all questions of a file."""

import argparse
import pathlib
from typing import Any

from mate_tf.command_line import arguments
from mate_tf.command_line.arguments import say

HELP = "answer all questions of a file"
DESCRIPTION = """\
Answers all questions of a file, and writes one JSON object for each, in the file's order. A
question that the model does not accept is written with the reason. `mate-tf evaluate` scores the
file that is written.

The file has a question and its table on each line. It is one that `mate-tf data` wrote, or your own
in the same format. Where there are shards of dev.jsonl, that name stands for all of them.

Questions in sequences (SQA) are answered one after the other, each with the model's own answers
before it.
"""
EPILOG = """\
examples:
  mate-tf predict --data=questions.jsonl --output=answers.jsonl
  mate-tf predict --model=my_model --data=my_data/dev.jsonl --output=answers.jsonl --limit=100
"""


def add_arguments(parser: Any) -> None:
    """Adds what the command takes."""
    arguments.add_questions(parser)
    arguments.add(
        parser,
        """
        --output=FILE  JSON Lines file to write the answers to
        --official-output=FILE  write the answers to this file too, in the format of the data set's
            own evaluation (WTQ, SQA and HYBRIDQA have one)
        --history=predicted|gold  whose answers come before a question of a sequence: the model's or
            the data's; by default predicted for SQA, gold for other tasks, most of whose questions
            have none
        --drop-rows-to-fit  read the first rows of a table that is too long for the model, as TAPAS
            does, and not those that the question needs
        """,
        required=["output"],
    )
    arguments.add_answers(parser)
    arguments.add_model(parser)
    arguments.add_devices(parser)


def run(options: argparse.Namespace) -> None:
    """Answers the questions and writes the answers."""
    from mate_tf.answers.answer import Answer
    from mate_tf.evaluation.official import check_official_format, write_official
    from mate_tf.evaluation.predictions import write_predictions

    asked = arguments.read_asked(options)
    ids = [question.question_id for _table, question in asked.pairs]
    if options.official_output:
        check_official_format(asked.task, ids)
    for path in map(pathlib.Path, filter(None, (options.output, options.official_output))):
        if path.is_dir():
            raise ValueError(f"expected a file to write answers to, got the folder {path}")
        path.parent.mkdir(parents=True, exist_ok=True)
    predictor = arguments.load_model(options)
    by_id = {
        question.question_id: Answer.of(answer)
        for _table, question, answer in arguments.answers(predictor, asked, options.history)
    }
    predictions = {id_: by_id[id_] for id_ in ids}
    write_predictions(options.output, predictions.items())
    if options.official_output:
        write_official(asked.task, options.official_output, predictions)
    not_accepted = [(id_, answer.error) for id_, answer in predictions.items() if answer.error]
    say(f"questions: {len(predictions)}")
    say(f"not accepted: {len(not_accepted)}")
    for id_, error in not_accepted[:1]:
        say(f"  the first: {id_}: {error}")
    say(f"asked with rows dropped: {sum(p.rows_dropped > 0 for p in predictions.values())}")
    say(f"written to {options.output}")
