"""Answers all questions of a file with an exported model.

    python -m experiments.predict --model=out/wtq/saved_model --data=out/wtq_data/dev.jsonl \\
        --output=out/wtq/dev_predictions.jsonl

The file is one of experiments/create_data.py, or your own in its format, a question and its table
a line; where create_data wrote shards of dev.jsonl, that name stands for all of them. Writes an
object a question (mate_tf/evaluation/predictions.py says what is in it), in their order: also
for those that the model does not accept, with the reason. experiments/evaluate.py scores that file.

Questions in sequences (SQA) are answered one after the other, each with the model's own answers
before it; --history=gold takes the answers that the data has. --official_output writes the answers
a second time, in the format of the data set's own evaluation: WTQ, SQA and HYBRIDQA have one.
"""

import pathlib

from absl import flags

from experiments import asking, terminal
from experiments.question_files import read_asked

_OUTPUT = flags.DEFINE_string(
    "output", None, "JSON Lines file to write the answers to", required=True
)
_OFFICIAL = flags.DEFINE_string(
    "official_output", None, "file to write the answers to in the data set's official format"
)
_HISTORY = flags.DEFINE_enum(
    "history",
    None,
    ["predicted", "gold"],
    "the previous answers of a question in a sequence; by default predicted for SQA, gold for "
    "other tasks, whose questions mostly have none",
)
_MIN_SCORE = flags.DEFINE_float(
    "min_score",
    0.0,
    "give no answer where its score is lower; experiments/calibrate.py says what scores mean",
    lower_bound=0.0,
    upper_bound=1.0,
)
_ALTERNATIVES = flags.DEFINE_integer(
    "num_alternatives",
    0,
    "how many other answers to write with each; Hits@5 takes 4",
    lower_bound=0,
)


def main(_) -> None:
    from mate_tf.answers.answer import Answer
    from mate_tf.evaluation.official import check_official_format, write_official
    from mate_tf.evaluation.predictions import write_predictions

    asked = read_asked()
    ids = [question.question_id for _table, question in asked.pairs]
    if _OFFICIAL.value:
        check_official_format(asked.task, ids)
    for path in map(pathlib.Path, filter(None, (_OUTPUT.value, _OFFICIAL.value))):
        if path.is_dir():
            raise ValueError(f"expected a file to write answers to, got the folder {path}")
        path.parent.mkdir(parents=True, exist_ok=True)
    predictor = asking.load(min_score=_MIN_SCORE.value, num_alternatives=_ALTERNATIVES.value)
    by_id = {
        question.question_id: Answer.of(answer)
        for _table, question, answer in asking.answers(predictor, asked, history=_HISTORY.value)
    }
    predictions = {id_: by_id[id_] for id_ in ids}
    write_predictions(_OUTPUT.value, predictions.items())
    if _OFFICIAL.value:
        write_official(asked.task, _OFFICIAL.value, predictions)
    not_accepted = [(id_, answer.error) for id_, answer in predictions.items() if answer.error]
    print(f"questions: {len(predictions)}")
    print(f"not accepted: {len(not_accepted)}")
    for id_, error in not_accepted[:1]:
        print(f"  the first: {id_}: {error}")
    print(f"asked with rows dropped: {sum(p.rows_dropped > 0 for p in predictions.values())}")
    print(f"written to {_OUTPUT.value}")


if __name__ == "__main__":
    flags.mark_flag_as_required("data")
    terminal.run(main)
