"""The table of attention flow, from a model and records to its files."""

import json
import shutil

from mate_tf.datasets.json_lines import write_json_lines
from mate_tf.records.conversion_file import file_sha256
from mate_tf.tables.table import Question, Table
from tests.small import run_binary, write_run

TABLE = Table.from_rows([["a", "b"], ["c d", "e"], ["f", "g h"], ["c", "e e"]], table_id="letters")


def test_a_run_s_attention_is_tabulated_and_drawn(tmp_path):
    (tmp_path / "run").mkdir()
    run = write_run(tmp_path / "run")
    (tmp_path / "in").mkdir()
    questions = [(TABLE, Question(text, text, ("e",))) for text in ("c e", "a b", "g h h")]
    write_json_lines(tmp_path / "in" / "dev.jsonl", questions)
    made = run_binary(
        "experiments.create_data",
        *("--task=JSONL", f"--input_dir={tmp_path / 'in'}", f"--output_dir={tmp_path / 'data'}"),
        *(f"--vocab_file={run / 'vocab.txt'}", "--max_seq_length=64"),
    )
    assert made.returncode == 0, made.stderr
    flags = f"--model={run}", f"--data_dir={tmp_path / 'data'}", f"--output_dir={tmp_path / 'out'}"
    done = run_binary("experiments.paper.attention_flow", *flags, "--batch_size=2")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    groups = ("row heads", "column heads", "all heads")
    names = [name for group in groups for name in (group, f"{group}, unasked")] + ["uniform"]
    assert lines[0] == (
        "| attention goes to | " + " | ".join(f"{n}, %" for n in names) + " | all heads / uniform |"
    )
    assert len(lines) == 2 + 8
    columns = list(zip(*(line.split(" | ")[1:-1] for line in lines[2:]), strict=True))
    for shares in columns:  # of two decimals
        assert abs(sum(map(float, shares)) - 100) < 8 * 0.005 + 1e-2
    assert (tmp_path / "out" / "flow.png").stat().st_size > 1000
    other = tmp_path / "other" / "vocab.txt"
    shutil.copytree(run, other.parent)
    other.write_text("".join(reversed(other.read_text().splitlines(keepends=True))))
    conversion = json.loads((other.parent / "conversion.json").read_text())
    conversion["vocabulary_sha256"] = file_sha256(other)
    (other.parent / "conversion.json").write_text(json.dumps(conversion))
    refused = run_binary("experiments.paper.attention_flow", *flags, f"--model={other.parent}")
    assert refused.returncode == 1
    assert f"made with the vocabulary of the model, {other}, got others" in refused.stderr
    without = run_binary("experiments.paper.attention_flow", *flags, "--split=test")
    assert without.returncode == 1
    assert "test" in without.stderr
