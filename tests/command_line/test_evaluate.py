"""Two commands from the outside: what predict writes, and what evaluate counts as right."""

import dataclasses
import json
import shutil

import pytest

from mate_tf.answers.calibration import signs_of
from mate_tf.datasets.json_lines import write_json_lines
from mate_tf.evaluation.predictions import read_predictions
from mate_tf.features.config import FeatureConfig
from mate_tf.records.conversion_file import conversion_of, write_conversion
from mate_tf.serving.loading import from_pretrained
from mate_tf.tables.table import Question, Table
from mate_tf.weights.folder import read_calibration
from tests.small import export_small, run_binary, succeeded

TABLE = Table.from_rows([["a", "b"], ["c", "d"], ["e", "f"]], table_id="letters")
WIDE = Table.from_rows([["a"] * 80, ["c"] * 80], table_id="wide")


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return export_small(tmp_path_factory.mktemp("exported") / "model", 64)


@pytest.fixture(scope="module")
def answer(model):
    return from_pretrained(model).answer(TABLE, "c d")


def test_every_question_counts_and_the_first_not_accepted_is_explained(tmp_path, model, answer):
    data, output = tmp_path / "dev.jsonl", tmp_path / "predictions.jsonl"
    write_json_lines(
        data,
        [
            (TABLE, Question("c d", "right", answers=answer.items)),
            (TABLE, Question("c d", "wrong", answers=(*answer.items, "h"))),
            (WIDE, Question("c d", "wide", answers=("c",))),
        ],
    )
    flags = f"--model={model}", f"--data={data}", f"--output={output}", "--num-virtual-cpus=2"
    flags += ("--dtype=float32",)
    done = run_binary("mate_tf", "predict", *flags)
    lines = done.stdout.splitlines()
    assert lines[:2] == ["questions: 3", "not accepted: 1"], done.stderr
    assert lines[2].startswith("  the first: wide: ") and "64" in lines[2] and "'wide'" in lines[2]
    assert lines[3:] == ["asked with rows dropped: 0", f"written to {output}"]
    predictions = read_predictions(output)
    assert list(predictions) == ["right", "wrong", "wide"]
    assert predictions["right"].items == predictions["wrong"].items == answer.items
    assert predictions["right"].score == pytest.approx(answer.score, abs=1e-5)
    assert predictions["wide"].error and not predictions["wide"].answered

    done = run_binary("mate_tf", "evaluate", f"--predictions={output}", f"--data={data}")
    first, *rest = done.stdout.splitlines()
    assert first.split() == ["questions", "3"], done.stderr
    assert rest[0].split() == ["not", "accepted", "1"]
    assert rest[1].startswith("  the first: wide: ")
    assert "denotation accuracy               33.33%" in rest

    output.write_text("")
    done = run_binary("mate_tf", "evaluate", f"--predictions={output}", f"--data={data}")
    assert done.returncode == 1 and done.stderr.count("\n") == 1
    assert f"got 0 in '{output}', and none for 3 questions, the first 'right'" in done.stderr


@pytest.mark.medium
def test_sequences_and_official_formats_follow_from_the_datas_task(tmp_path, model):
    vocab_file = model / "assets.extra" / "vocab.txt"
    write_conversion(tmp_path, conversion_of("SQA", FeatureConfig(), vocab_file, None))
    data, output = tmp_path / "dev.jsonl", tmp_path / "predictions.jsonl"
    turns = [Question("c d", f"nt-1-0_{n}", ("x",), ((0, 0),)) for n in (1, 0)]
    write_json_lines(data, [(TABLE, question) for question in turns])
    files = f"--data={data}", f"--official-output={tmp_path / 'official.tsv'}"
    done = succeeded("mate_tf", "predict", f"--model={model}", *files, f"--output={output}")
    predictions = read_predictions(output)
    assert list(predictions) == ["nt-1-0_1", "nt-1-0_0"]
    (cell,) = predictions["nt-1-0_0"].cells
    (expected,) = from_pretrained(model).answer(TABLE, turns[1]).cells
    assert cell == dataclasses.replace(expected, score=pytest.approx(expected.score, abs=1e-5))
    official = (tmp_path / "official.tsv").read_text().splitlines()
    assert [line.split("\t")[:3] for line in official[1:]] == [["nt-1", "0", n] for n in "10"]

    done = run_binary("mate_tf", "evaluate", f"--predictions={output}", f"--data={data}", "--json")
    printed = json.loads(done.stdout)
    assert (printed["task"], printed["questions"], printed["not_accepted"]) == ("SQA", 2, 0)
    assert {"all", "all_d", "seq", "all_position_0", "all_position_1"} < set(printed["scores"])


@pytest.mark.medium
def test_scores_are_calibrated_on_questions_kept_for_it(tmp_path, model, answer):
    exported = shutil.copytree(model, tmp_path / "model")
    golds = [answer.items if n % 4 else ("h",) for n in range(8)]
    pairs = [(TABLE, Question("c d", str(n), gold)) for n, gold in enumerate(golds)]
    for split in ("dev", "calibration"):
        write_json_lines(tmp_path / f"{split}.jsonl", pairs)
    flags = (f"--model={exported}", f"--data={tmp_path / 'dev.jsonl'}")
    done = run_binary("mate_tf", "calibrate", *flags)
    assert done.returncode == 1 and read_calibration(exported) is None
    assert "expected questions kept for calibration, got the split 'dev'" in done.stderr
    flags = (flags[0], f"--data={tmp_path / 'calibration.jsonl'}", "--num-virtual-cpus=2")
    done = succeeded("mate_tf", "calibrate", *flags)
    assert "questions: 8, answered 8, right 6" in done.stdout
    calibration = read_calibration(exported)
    after = from_pretrained(exported).answer(TABLE, "c d")
    before = from_pretrained(model, num_alternatives=1).answer(TABLE, "c d")
    signs = signs_of(before, TABLE, "c d")
    assert after.score == pytest.approx(float(calibration.apply(answer.score, signs)))
    assert after.alternatives == () and after.confidence == calibration.confidence(after.score)
    assert abs(after.score - 0.75) < abs(answer.score - 0.75)
