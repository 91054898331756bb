"""The presets of pre-training: the papers' values and sizes."""

import numpy as np
import pytest
import tensorflow as tf

from experiments.config_files import PRESETS, load_preset, make_config
from mate_tf.models.masked_lm import MaskedLanguageModel
from mate_tf.training.config import MaskedLMTrainingConfig

# The MATE paper, appendix A.1.
PAPER = {
    "mlm_mate_base": ("mate", 128, 512, 1_000_000),
    "mlm_mate_large": ("mate", 128, 512, 1_000_000),
    "mlm_linformer_large": ("linformer", 2048, 128, 2_000_000),
    "mlm_table_etc_large": ("table_etc", 2048, 32, 2_000_000),
}


@pytest.mark.parametrize("name", PAPER)
def test_a_preset_has_the_values_of_the_paper(name):
    config = load_preset(name)
    attention = config.encoder.attention
    values = config.max_seq_length, config.batch_size, config.num_steps
    assert (attention.architecture, *values) == PAPER[name]
    assert (config.learning_rate, config.warmup_ratio) == (5e-5, 0.01)  # the release's defaults
    assert config.task.next_sentence and config.length_buckets == ()


def test_mate_at_2048_tokens_has_as_many_tokens_in_each_batch():
    sets = load_preset("mlm_mate_base_2048").record_sets
    assert [(records.max_seq_length, records.batch_size) for records in sets] == [
        (128, 512),
        (512, 128),
        (2048, 32),
    ]


@pytest.mark.parametrize(("name", "millions"), [("mlm_mate_base", 110), ("mlm_mate_large", 340)])
def test_a_preset_has_as_many_parameters_as_the_paper_says(name, millions):
    """Which it rounds to ten millions; MATE adds none to TAPAS."""
    counts = []
    for config in (load_preset(name), make_config(name, "tapas", [])):
        with tf.Graph().as_default():  # whose variables take no memory
            model = MaskedLanguageModel(config.encoder, config.task)
            model.build()
            counts.append(sum(int(np.prod(weight.shape)) for weight in model.weights))
    assert counts[0] == counts[1]
    assert round(counts[0] / 1e6, -1) == millions


def test_presets_of_pre_training_can_be_told_by_their_names():
    for name in PRESETS:
        config = load_preset(name)
        assert isinstance(config, MaskedLMTrainingConfig) == name.startswith(
            ("mlm_", "default_words")
        )
