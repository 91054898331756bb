"""What the binary refuses, and PointR's presets; tests/test_commands_of_docs.py runs it."""

import dataclasses
import json

import pytest

from mate_tf.dataclass_json import from_dict
from mate_tf.pointr.inputs import PointRConfig
from mate_tf.training.starting_points import find_config, make_config, presets
from tests.small import run_binary

POINTR = [name for name in presets() if name.startswith("pointr_")]


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--config=demo",), "got demo; `mate-tf train --config=demo` trains it"),
        (("--config=pointr_minilm", "--task=WTQ"), "--task=WTQ"),
        (("--config=pointr_minilm", "--eval_splits=train", "--train_split=x"), "as which 'x' is"),
    ],
)
def test_what_cannot_work_is_refused_in_a_sentence(tmp_path, flags, message):
    shared = [f"--{name}={tmp_path}" for name in ("input_dir", "output_dir", "vocab_file")]
    done = run_binary("experiments.pointr", *flags, *shared)
    assert done.returncode == 1
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_other_programs_say_which_trains_a_pointr(tmp_path):
    flags = ("--config=pointr_minilm", f"--data_dir={tmp_path}", f"--model_dir={tmp_path}")
    done = run_binary("experiments.finetune", *flags)
    assert done.returncode == 1
    assert "mate_tf.pointr.pipeline.Pipeline trains" in done.stderr


@pytest.mark.parametrize("name", POINTR)
def test_a_preset_goes_to_json_and_back(name):
    config = find_config(name)
    values = json.loads(json.dumps(dataclasses.asdict(config)))
    assert from_dict(PointRConfig, values) == config


def test_the_paper_s_preset_is_of_its_two_stages():
    config = find_config("pointr_mate_large")
    assert config.point == find_config("hybridqa_mate_large")
    reader = find_config("hybridqa_reader_large")
    assert config.read == dataclasses.replace(reader, task=config.read.task)
    assert config.inputs.num_sentences == 5


@pytest.mark.parametrize("name", ["tapas", "sat", "linformer_256", "table_etc"])
def test_an_architecture_changes_the_pointer_alone(name):
    mate, other = (make_config("pointr_mate_large", of, []) for of in (None, name))
    assert other.point.encoder.attention.architecture == name.removesuffix("_256")
    encoder = dataclasses.replace(other.point.encoder, attention=mate.point.encoder.attention)
    buckets = mate.point.length_buckets
    point = dataclasses.replace(other.point, encoder=encoder, length_buckets=buckets)
    assert dataclasses.replace(other, point=point) == mate
    if name == "linformer_256":
        longer = make_config("pointr_mate_large", name, ["--config.point.max_seq_length=4096"])
        assert longer.point.encoder.attention.sequence_length == 4096
