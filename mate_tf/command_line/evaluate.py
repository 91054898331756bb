"""mate-tf evaluate: the scores of a file of answers."""

import argparse
import json
from typing import Any

from mate_tf.command_line import arguments
from mate_tf.command_line.arguments import say

HELP = "score a file of answers"
DESCRIPTION = """\
Scores a file of answers by the official definitions of their task.

The file has an answer for each question of the data, and for no other: `mate-tf predict` writes it.
A question that the model did not accept counts as wrong, and is counted. The scores, in percent:

  WTQ, WIKISQL, JSONL      denotation accuracy; for JSONL's questions with a class, accuracy
  SQA                      ALL, SEQ, ALL by position in the sequence; all_d: denotation accuracy
  TABFACT                  accuracy
  HYBRIDQA, LINKED_JSONL   exact match, F1; for a model that selects cells Hits@1, 3 and 5, if there
                           are alternatives for so many (mate-tf predict --alternatives=4)

Others say how well the answers' own scores tell which are right: the expected calibration error
in ten bins, and the AUROC (if some answers are right and some wrong).
"""
EPILOG = """\
examples:
  mate-tf predict --data=my_data/dev.jsonl --output=answers.jsonl
  mate-tf evaluate --data=my_data/dev.jsonl --predictions=answers.jsonl --by-kind
"""


def add_arguments(parser: Any) -> None:
    """Adds what the command takes."""
    arguments.add_questions(parser)
    arguments.add(
        parser,
        """
        --predictions=FILE  JSON Lines file of answers that mate-tf predict wrote
        --official-dir=FOLDER  folder of the data set's release, for scores that need it: the
            simple, complex and small parts of TabFact's test split; HybridQA's answers in the table
            and in passages; the numbers and dates in WTQ's gold answers
        --by-kind  also print how many questions of each kind are right: look-up, superlative, how
            many, difference and so on, by their words
        --kinds=confidence|ids|FILE  other kinds: how sure the answer is said to be; what stands
            behind the last colon of the question's id, as in those of create_questions; or those
            of a JSON object of question ids and kinds
        --json  print one JSON object, with scores from 0 to 1
        """,
        required=["predictions"],
    )


def run(options: argparse.Namespace) -> None:
    """Scores the answers and prints the scores."""
    from mate_tf.evaluation.official import read_official
    from mate_tf.evaluation.predictions import (
        by_kind,
        find_kinds,
        match_predictions,
        read_predictions,
    )
    from mate_tf.evaluation.scoring import is_correct, score

    predictions = read_predictions(options.predictions)
    task, split, pairs = arguments.read_asked(options)
    match_predictions(predictions, pairs, options.predictions)
    official = None
    if options.official_dir:
        official = read_official(task, options.official_dir, split, pairs)
    scores = score(task, predictions, pairs, official)
    kinds = {}
    if options.by_kind or options.kinds:
        golds = official.golds if official else {}
        right = {
            id_: is_correct(task, predictions[id_], question, golds.get(id_))
            for _, question in pairs
            for id_ in [question.question_id]
        }
        named = find_kinds(options.kinds, predictions) if options.kinds else None
        kinds = by_kind(right, pairs, named)
    not_accepted = [(id_, answer.error) for id_, answer in predictions.items() if answer.error]
    counts = {
        "questions": len(predictions),
        "not accepted": len(not_accepted),
        "not answered": sum(not p.answered and not p.error for p in predictions.values()),
        "asked with rows dropped": sum(p.rows_dropped > 0 for p in predictions.values()),
    }
    if options.json:
        keys = {name.replace(" ", "_"): count for name, count in counts.items()}
        kind_counts = {"kinds": {name: kind._asdict() for name, kind in kinds.items()}}
        say(json.dumps({"task": task, **keys, "scores": scores} | (kind_counts if kinds else {})))
        return
    lines = [f"{name:<32} {count:7}" for name, count in counts.items()]
    lines += [f"{name.replace('_', ' '):<32} {value:7.2%}" for name, value in scores.items()]
    lines += [
        f"{name:<32} {kind.right / kind.questions:7.2%}  {kind.right} of {kind.questions}"
        for name, kind in kinds.items()
    ]
    if not_accepted:
        id_, error = not_accepted[0]
        lines.insert(2, f"  the first: {id_}: {error}")
    say("\n".join(lines))
