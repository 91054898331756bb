"""Scores a file of answers by the official definitions of their task.

    python -m experiments.predict --model=out/wtq/saved_model --data=out/wtq_data/dev.jsonl \\
        --output=out/wtq/dev_predictions.jsonl
    python -m experiments.evaluate --predictions=out/wtq/dev_predictions.jsonl \\
        --data=out/wtq_data/dev.jsonl

The file has an answer for each question of the data, and for no other. A question that the model
did not accept counts as wrong, and is counted. The scores, in percent:

    WTQ, WIKISQL, JSONL  denotation accuracy; of JSONL's questions with a class, accuracy
    SQA                  ALL, SEQ, ALL by position in the sequence; all_d: the denotation accuracy
    TABFACT              accuracy
    HYBRIDQA,
    LINKED_JSONL         exact match, F1; Hits@1, 3 and 5 of a model that selects cells, as far as
                         there are alternatives for so many (predict --num_alternatives=4)

and how well the answers' own scores say which are right: expected calibration error in ten bins,
AUROC (where some answers are right and some wrong). --official_dir=FOLDER, the release that
create_data read, adds what is only there: the simple, complex and small parts of TabFact's test
split; HybridQA's answers in the table and in passages; the numbers and dates that WTQ annotates
its gold answers with.
"""

import json

from absl import flags

from experiments import terminal
from experiments.question_files import read_asked

_PREDICTIONS = flags.DEFINE_string(
    "predictions", None, "JSON Lines file of answers (experiments/predict.py)", required=True
)
_OFFICIAL = flags.DEFINE_string(
    "official_dir", None, "folder of the data set's release, for the scores that need it"
)
_JSON = flags.DEFINE_bool("json", False, "print one JSON object, its scores from 0 to 1")


def main(_) -> None:
    from mate_tf.evaluation.official import read_official
    from mate_tf.evaluation.predictions import match_predictions, read_predictions
    from mate_tf.evaluation.scoring import score

    predictions = read_predictions(_PREDICTIONS.value)
    task, split, pairs = read_asked()
    match_predictions(predictions, pairs, _PREDICTIONS.value)
    official = None
    if _OFFICIAL.value:
        official = read_official(task, _OFFICIAL.value, split, pairs)
    scores = score(task, predictions, pairs, official)
    not_accepted = [(id_, answer.error) for id_, answer in predictions.items() if answer.error]
    counts = {
        "questions": len(predictions),
        "not accepted": len(not_accepted),
        "not answered": sum(not p.answered and not p.error for p in predictions.values()),
        "asked with rows dropped": sum(p.rows_dropped > 0 for p in predictions.values()),
    }
    if _JSON.value:
        keys = {name.replace(" ", "_"): count for name, count in counts.items()}
        print(json.dumps({"task": task, **keys, "scores": scores}))
        return
    lines = [f"{name:<32} {count:7}" for name, count in counts.items()]
    lines += [f"{name.replace('_', ' '):<32} {value:7.2%}" for name, value in scores.items()]
    if not_accepted:
        id_, error = not_accepted[0]
        lines.insert(2, f"  the first: {id_}: {error}")
    print("\n".join(lines))


if __name__ == "__main__":
    flags.mark_flag_as_required("data")
    terminal.run(main)
