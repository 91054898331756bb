"""The presets of the papers: published values and sizes; test_tasks.py trains some of them."""

import ast
import dataclasses
import json
import operator
import pathlib

import numpy as np
import pytest
import tensorflow as tf

from experiments.benchmarks.check_tpu import small_steps, table_batch
from experiments.exported.programs import run_of
from mate_tf.dataclass_json import from_dict
from mate_tf.models.masked_lm import MaskedLanguageModel
from mate_tf.pointr.answering import PointRConfig
from mate_tf.training.run import load_config, save_config
from mate_tf.training.starting_points import find_config, make_config, presets

# The release's values (tapas/utils/hparam_utils.py), under the names they have here; "examples" are
# the training's in all. Below the MATE paper's of pre-training (appendix A.1), whose learning rate
# and warm-up are the release's defaults.
PUBLISHED = pathlib.Path(__file__).with_name("published_values.txt").read_text().rstrip("\n")
SIZES = {
    "base": {"hidden_size": 768, "num_layers": 12, "num_heads": 12, "intermediate_size": 3072},
    "large": {"hidden_size": 1024, "num_layers": 24, "num_heads": 16, "intermediate_size": 4096},
}


@pytest.mark.parametrize("published", PUBLISHED.replace("\n  ", " ").split("\n"))
def test_a_preset_has_the_published_values(published):
    name, *texts = published.split()
    config = find_config(name)
    values = {
        field.name: getattr(part, field.name)
        for part in (config.task, config.encoder.attention, config.encoder, config)
        for field in dataclasses.fields(part)
    }
    values["examples"] = config.num_steps * config.batch_size
    values["num_aggregation_labels"] = len(values.get("operators", ()))
    expected = dict(text.split("=") for text in texts)
    expected = {key: ast.literal_eval(text) for key, text in expected.items()}
    expected |= SIZES[name.rpartition("_")[2]]
    assert {key: values[key] for key in expected} == expected


def test_every_preset_goes_to_a_file_and_back_and_that_of_pointr_is_of_its_stages(tmp_path):
    for name in presets():
        config = find_config(name)
        if name.startswith("pointr_"):
            values = json.loads(json.dumps(dataclasses.asdict(config)))
            assert from_dict(PointRConfig, values) == config
        else:
            save_config(config, tmp_path / name)
            assert load_config(tmp_path / name) == config
    config = find_config("pointr_mate_large")
    assert config.point == find_config("hybridqa_mate_large")
    reader = find_config("hybridqa_reader_large")
    assert config.read == dataclasses.replace(reader, task=config.read.task)
    assert config.inputs.num_sentences == 5


def test_mate_has_as_many_parameters_as_tapas_and_as_its_paper_says():
    counts = []
    for architecture in (None, "tapas"):
        config = make_config("mlm_mate_base", architecture, [])
        with tf.Graph().as_default():  # whose variables take no memory
            model = MaskedLanguageModel(config.encoder, config.task)
            model.build()
            counts.append(sum(int(np.prod(weight.shape)) for weight in model.weights))
    assert counts[0] == counts[1]
    assert round(counts[0] / 1e6, -1) == 110  # the paper rounds to ten millions


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


NAMED_STEPS = {step.name: step for step in small_steps()}
# A large encoder is cut down to what the base one is.
STEPS = [
    step
    for name, step in NAMED_STEPS.items()
    if not name.endswith("_large") or name.replace("_large", "_base") not in NAMED_STEPS
]


@pytest.mark.medium
@pytest.mark.parametrize("step", STEPS, ids=operator.attrgetter("name"))
def test_a_preset_takes_two_steps_at_a_tenth_of_its_width(step):
    config = step.config()
    tf.keras.utils.set_random_seed(0)
    model, _, trainer = run_of(config, at_zero=False)
    inputs = table_batch(2, config.max_seq_length)
    before = [weight.numpy() for weight in model.trainable_variables]
    losses = [float(trainer.replica_step(inputs)["loss"]) for _ in range(2)]
    assert np.isfinite(losses).all()
    assert trainer.global_step.numpy() == 2
    after = [weight.numpy() for weight in model.trainable_variables]
    assert all(np.isfinite(weight).all() for weight in after)
    assert any((one != other).any() for one, other in zip(after, before, strict=True))
