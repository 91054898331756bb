"""Asks a question of a table.

    python -m experiments.ask --model=out/demo/saved_model --table=planets.csv \\
        --question="which planet has the most moons?"

Reads CSV, TSV or JSON Lines (.jsonl: a row a line). Prints the answer, the cells it comes from
with their coordinates (row 0 is the first below the header), what was computed from them, a score
between 0 and 1, and the table around the cells, which it marks with [brackets].
--num_alternatives=3 adds the next best answers. With --min_score, an answer of a lower score is "no
answer", and what it would have been is said. A classifier answers a statement with its class. With
--json, prints one object for programs. Exits with 1 and one sentence where the table, the question
or the model cannot be used.
"""

import dataclasses
import json
import pathlib

from absl import flags

from experiments import asking, terminal
from experiments.answer_lines import answer_lines
from mate_tf.tables.table import Table

_TABLE = flags.DEFINE_string("table", None, "the table: .csv, .tsv or .jsonl", required=True)
_QUESTION = flags.DEFINE_string("question", None, "what you want to know", required=True)
_ALTERNATIVES = flags.DEFINE_integer(
    "num_alternatives", 0, "show so many of the next best answers", lower_bound=0
)
_MIN_SCORE = flags.DEFINE_float(
    "min_score", 0.0, "where the score is lower, there is no answer", 0.0, 1.0
)
_JSON = flags.DEFINE_bool("json", False, "print one JSON object instead of text")


def read_table(path: str) -> Table:
    if pathlib.Path(path).suffix in (".jsonl", ".ndjson"):
        return Table.from_json_lines(path)
    return Table.from_csv(path)


def main(_) -> None:
    # The table first: a wrong path should not have to wait for TensorFlow.
    table = read_table(_TABLE.value)
    if not _QUESTION.value.strip():
        raise ValueError("expected a question, got an empty one")

    predictor = asking.load(min_score=_MIN_SCORE.value, num_alternatives=_ALTERNATIVES.value)
    answer = predictor.answer(table, _QUESTION.value)
    if _JSON.value:
        print(json.dumps(dataclasses.asdict(answer), ensure_ascii=False))
        return
    print("\n".join(answer_lines(table, answer)))


if __name__ == "__main__":
    flags.mark_flag_as_required("model")
    terminal.run(main)
