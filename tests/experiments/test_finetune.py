"""The binary from the outside: a run, its refusals; and the presets."""

import importlib
import json
import pathlib
import subprocess
import sys

import pytest

from mate_tf.tables.datasets.json_lines import write_json_lines
from mate_tf.tables.features import FeatureBuilder, FeatureConfig
from mate_tf.tables.records import write_records
from mate_tf.tables.table import Question, Table
from mate_tf.tables.wordpiece import Wordpiece
from mate_tf.training.config import FinetuneConfig, load_config

ROOT = pathlib.Path(__file__).resolve().parents[2]
PRESETS = sorted(path.stem for path in (ROOT / "experiments" / "configs").glob("*.py"))
PIECES = ["[PAD]", "[EMPTY]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdefgh"]
SMALL = (
    "--config=demo",
    "--config.max_seq_length=24",
    "--config.length_buckets=",
    "--config.encoder.num_layers=1",
    "--config.encoder.hidden_size=16",
    "--config.encoder.intermediate_size=16",
    "--config.batch_size=2",
    "--config.num_steps=2",
)


def finetune(*flags):
    return subprocess.run(
        [sys.executable, "-m", "experiments.finetune", *flags],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory):
    directory = tmp_path_factory.mktemp("data")
    (directory / "vocab.txt").write_text("\n".join(PIECES) + "\n", encoding="utf-8")
    table = Table.from_rows([["a", "b"], ["c", "d"], ["e", "f"]])
    question = Question(
        "a", question_id="q", answers=("c",), answer_coordinates=((0, 0),), aggregation="NONE"
    )
    builder = FeatureBuilder(Wordpiece(directory / "vocab.txt"), FeatureConfig(max_seq_length=24))
    for split in ("train", "dev"):
        write_records(
            directory / f"{split}.tfrecord", [builder.build(table, question).features] * 2
        )
        write_json_lines(directory / f"{split}.jsonl", [(table, question)])
    return directory


def test_a_run_leaves_what_evaluation_and_export_need(data_dir, tmp_path):
    flags = (*SMALL, f"--data_dir={data_dir}", f"--model_dir={tmp_path / 'run'}")
    done = finetune(*flags)
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    assert "step 2 evaluation: loss " in done.stderr
    assert "(best denotation_accuracy " in done.stderr

    config = load_config(tmp_path / "run")
    assert (config.num_steps, config.encoder.hidden_size) == (2, 16)
    assert (tmp_path / "run" / "vocab.txt").read_text().splitlines() == PIECES
    assert (tmp_path / "run" / "ckpt-2.index").is_file()
    (evaluation,) = (tmp_path / "run" / "evaluations.jsonl").read_text().splitlines()
    assert json.loads(evaluation).keys() == {"step", "loss", "denotation_accuracy"}

    refused = finetune(*flags, "--config.seed=7")
    assert refused.returncode == 1
    assert "got another: seed=7 (there: 1); choose another folder" in refused.stderr
    assert "Traceback" not in refused.stderr


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--config=small",), f"expected --config to be one of {', '.join(PRESETS)}, got 'small'"),
        (("--config=demo", "--config.speed=1"), "unknown key config.speed; the known keys are "),
        (("--config=demo",), "expected vocab.txt in "),
        ((*SMALL, "--config.max_seq_length=32"), "expected examples of 32 tokens"),
        ((*SMALL, "--init_checkpoint=nowhere"), "expected a TF1 checkpoint at nowhere"),
        ((*SMALL, "more"), "expected --config.key=value, got more"),
    ],
)
def test_what_cannot_work_is_refused_in_a_sentence(data_dir, tmp_path, flags, message):
    data_dir = data_dir if flags[:1] != ("--config=demo",) or flags[1:] else tmp_path
    done = finetune(*flags, f"--data_dir={data_dir}", f"--model_dir={tmp_path / 'run'}")
    assert done.returncode == 1
    assert message in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_says_how_it_is_run_and_what_to_expect(name):
    preset = importlib.import_module(f"experiments.configs.{name}")
    assert isinstance(preset.CONFIG, FinetuneConfig)
    assert f"--config={name}" in preset.__doc__
    for part in ("Hardware: ", "Time: ", "Score: "):
        assert part in preset.__doc__
