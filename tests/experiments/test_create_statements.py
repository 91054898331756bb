import json

import pytest

from mate_tf.datasets.json_lines import read_json_lines
from mate_tf.datasets.tasks import TASKS, read_split, splits_there
from mate_tf.evaluation.predictions import Prediction, write_predictions
from mate_tf.features.builder import FeatureBuilder
from mate_tf.features.config import FeatureConfig
from mate_tf.features.wordpiece import Wordpiece
from mate_tf.records.conversion import Summary, convert_all
from mate_tf.synthesis.pairs import kind_of_id
from tests.small import run_binary
from tests.vocabulary import vocab_file

__all__ = ["vocab_file"]

LENGTH = 400


@pytest.fixture(scope="module")
def statements(tmp_path_factory, vocab_file):
    folder = tmp_path_factory.mktemp("statements")
    (folder / "in").mkdir()
    for i in range(8):
        rows = "".join(f"{name},{n * (i + 2)}\n" for n, name in enumerate("abcdef", start=3))
        (folder / "in" / f"{i}.csv").write_text(f"name,points\n{rows}")
    (folder / "in" / "broken.csv").write_text("a,b\n1\n")
    done = run_binary(
        "experiments.create_statements",
        f"--input_dir={folder / 'in'}",
        f"--output_dir={folder / 'out'}",
        f"--vocab_file={vocab_file}",
        f"--max_seq_length={LENGTH}",
        "--excerpts_per_table=2",
        "--parts=train=60,dev=40",
    )
    assert done.returncode == 0, done.stderr
    return folder / "out", done.stdout


def test_statements_become_records_with_classes(statements, vocab_file):
    output, printed = statements
    assert sorted(path.name for path in output.iterdir()) == ["dev.jsonl", "train.jsonl"]
    assert "left out: 1 table: malformed" in printed
    there, _ = splits_there("JSONL", str(output))
    builder = FeatureBuilder(Wordpiece(vocab_file), FeatureConfig(max_seq_length=LENGTH))
    for split in there:
        summary = Summary("questions")
        pairs = read_split("JSONL", str(output), split)
        classes = []
        for outcome in convert_all(TASKS["JSONL"], builder, pairs, is_training=True):
            summary.add(outcome)
            assert outcome.features is not None
            classes += outcome.features["classification_class_index"].tolist()
        count = len(list(read_json_lines(output / f"{split}.jsonl")))
        assert summary.num_kept == count > 0
        assert sum(classes) == count / 2
        assert f"{split}: {count} statements" in printed


def test_counterfactuals_are_made_of_sentences_and_their_lack_is_told(tmp_path, vocab_file):
    table = {"header": ["name", "points"], "rows": [["ann", "3"], ["bob", "5"], ["cid", "7"]]}
    texts = ["ann has 3 points", "nothing of it"]
    lines = [{"table": table | {"id": str(n)}, "texts": texts[: 2 - n]} for n in range(3)]
    lines[1]["table"] = table | {"id": "1", "rows": [*table["rows"], ["dan", "9"]]}
    lines[2]["table"] = table | {"id": "2", "rows": [*table["rows"], ["eve", "8"]]}
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "train.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    done = run_binary(
        "experiments.create_statements",
        *("--task=TEXTS", "--kinds=counterfactual", f"--input_dir={folder}"),
        *(f"--output_dir={tmp_path / 'out'}", f"--vocab_file={vocab_file}", "--parts=all=100"),
    )
    assert done.returncode == 0, done.stderr
    assert "all: 4 statements about 2 of 3 tables" in done.stdout
    for told in ("1 sentence: no entity of the table", "1 table: no sentence"):
        assert f"left out: {told}" in done.stdout
    questions = [question for _, question in read_json_lines(tmp_path / "out" / "all.jsonl")]
    assert [question.class_index for question in questions] == [1, 0, 1, 0]
    assert {question.text for question in questions[::2]} == {"ann has 3 points"}
    assert all(question.text != "ann has 3 points" for question in questions[1::2])
    assert kind_of_id(questions[0].question_id) == ("counterfactual", "")


def test_accuracy_is_printed_by_operation(statements, tmp_path):
    data = statements[0] / "dev.jsonl"
    questions = [question for _, question in read_json_lines(data)]
    answers = [Prediction(question.question_id, class_index=1) for question in questions]
    write_predictions(tmp_path / "p.jsonl", answers)
    done = run_binary(
        "experiments.paper.statement_accuracy",
        f"--predictions={tmp_path / 'p.jsonl'}",
        f"--data={data}",
        "--task=JSONL",
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.strip().split("\n")
    kinds = [kind_of_id(question.question_id) for question in questions]
    expected = {name for kind in kinds for name in (kind[0], f"/{kind[1]}")}
    assert {line.split()[0] for line in lines} == expected | {"all"}
    told = f"{len(questions)}  accuracy  50.0%  true 100.0%  false   0.0%"
    assert lines[-1].split() == ["all", *told.split()]
