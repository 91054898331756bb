"""The binary from the outside: what it counts as right, wrong and not accepted."""

import pathlib
import subprocess
import sys

import tensorflow as tf

from mate_tf.config import AttentionConfig, EncoderConfig
from mate_tf.evaluation.wtq import read_predictions
from mate_tf.serving import export_saved_model, load_predictor
from mate_tf.tables.datasets.json_lines import write_json_lines
from mate_tf.tables.features import FeatureConfig
from mate_tf.tables.table import Question, Table
from mate_tf.tasks.table_qa import TableQuestionAnswering

ROOT = pathlib.Path(__file__).resolve().parents[2]
PIECES = ["[PAD]", "[EMPTY]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdefgh"]
TABLE = Table.from_rows([["a", "b"], ["c", "d"], ["e", "f"]], table_id="letters")
LONG = Table.from_rows([["a", "b"], *[["c", "d"]] * 40], table_id="long")


def export_model(directory):
    vocab_file = directory / "vocab.txt"
    vocab_file.write_text("".join(f"{piece}\n" for piece in PIECES))
    tf.keras.utils.set_random_seed(0)
    encoder = EncoderConfig(
        vocab_size=len(PIECES),
        hidden_size=16,
        num_layers=1,
        num_heads=2,
        intermediate_size=16,
        attention=AttentionConfig(bucket_size=8, global_size=16),
    )
    model = TableQuestionAnswering(encoder)
    model.build()
    export_saved_model(model, vocab_file, FeatureConfig(max_seq_length=64), directory / "model")
    return directory / "model"


def test_every_question_counts_and_the_first_not_accepted_is_explained(tmp_path):
    model = export_model(tmp_path)
    items = load_predictor(model).answer(TABLE, "c d").items
    data = tmp_path / "dev.jsonl"
    write_json_lines(
        data,
        [
            (TABLE, Question("c d", "right", answers=items)),
            (TABLE, Question("c d", "wrong", answers=(*items, "h"))),
            (LONG, Question("c d", "long", answers=("c",))),
        ],
    )
    predictions = tmp_path / "predictions.tsv"
    command = [sys.executable, "-m", "experiments.evaluate", f"--model={model}", f"--data={data}"]
    done = subprocess.run(
        [*command, f"--predictions={predictions}"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    lines = done.stdout.splitlines()
    assert lines[:2] == ["questions: 3", "not accepted: 1"]
    assert lines[2].startswith("  the first: long: ") and "64" in lines[2] and "'long'" in lines[2]
    assert lines[3:] == ["asked with rows dropped: 0", "denotation accuracy: 0.3333"]
    assert read_predictions(predictions) == {
        "right": list(items),
        "wrong": list(items),
        "long": [],
    }
