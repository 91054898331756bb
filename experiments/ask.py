"""Asks a question of a table.

    python -m experiments.ask --model=out/demo/saved_model --table=planets.csv \
        --question="which planet has the most moons?"

Reads CSV, TSV or JSON Lines (.jsonl: a row a line). Prints the answer, the cells it comes from
with their coordinates (row 0 is the first below the header), what was computed from them, a score
between 0 and 1, and the table around the cells, which it marks with [brackets]. With --json,
prints one object for programs. Exits with 1 and one sentence where the table, the question or the
model cannot be used.
"""

import dataclasses
import json
import pathlib

from absl import flags

from experiments import terminal
from mate_tf.tables.table import Table

_MODEL = flags.DEFINE_string(
    "model", None, "folder of an exported model (experiments/export.py writes one)", required=True
)
_TABLE = flags.DEFINE_string("table", None, "the table: .csv, .tsv or .jsonl", required=True)
_QUESTION = flags.DEFINE_string("question", None, "what you want to know", required=True)
_JSON = flags.DEFINE_bool("json", False, "print one JSON object instead of text")
_DROP = flags.DEFINE_bool(
    "drop_rows_to_fit",
    False,
    "leave out rows at the end of a table that is longer than the model accepts, instead of "
    "refusing it",
)
_TAGGER = flags.DEFINE_string(
    "tagger",
    None,
    "for a model with grammar-guided attention, the tagger of its training data: textblob, "
    "spacy:MODEL or MODULE:FUNCTION",
)
_ROWS_SHOWN = 12


def read_table(path: str) -> Table:
    if pathlib.Path(path).suffix in (".jsonl", ".ndjson"):
        return Table.from_json_lines(path)
    return Table.from_csv(path)


def main(_) -> None:
    # The table first: a wrong path should not have to wait for TensorFlow.
    table = read_table(_TABLE.value)
    if not _QUESTION.value.strip():
        raise ValueError("expected a question, got an empty one")

    from mate_tf.serving import load_predictor
    from mate_tf.tables.taggers import load_tagger

    overrides = {"drop_rows_to_fit": True} if _DROP.value else {}
    tagger = load_tagger(_TAGGER.value) if _TAGGER.value else None
    answer = load_predictor(_MODEL.value, tagger, **overrides).answer(table, _QUESTION.value)
    if _JSON.value:
        print(json.dumps(dataclasses.asdict(answer), ensure_ascii=False))
        return
    print(f"answer: {answer.text}")
    print(f"score: {answer.score:.2f}")
    if answer.aggregation != "NONE":
        print(f"aggregation: {answer.aggregation} of {len(answer.cells)} cells = {answer.text}")
    else:
        print("aggregation: NONE")
    if answer.rows_dropped:
        print(f"not read: the last {answer.rows_dropped} of {table.num_rows} rows")
    for cell in answer.cells:
        print(
            f"cell: row {cell.row}, column {cell.column} ({table.header[cell.column]}): "
            f"{cell.text}  ({cell.score:.2f})"
        )
    marked = {(cell.row, cell.column) for cell in answer.cells}
    print("\n" + terminal.draw_table(table, marked, max_rows=_ROWS_SHOWN))


if __name__ == "__main__":
    terminal.run(main)
