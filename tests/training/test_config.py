"""Configs of training: their limits."""

import dataclasses

import pytest

from mate_tf.config import AttentionConfig, EncoderConfig
from mate_tf.training.config import MaskedLMTrainingConfig, TableQATrainingConfig

CONFIG = TableQATrainingConfig(
    num_steps=10,
    learning_rate=1e-3,
    length_buckets=(128, 256),
    encoder=EncoderConfig(attention=AttentionConfig(bucket_size=64)),
)
LINFORMER = EncoderConfig(attention=AttentionConfig("linformer", sequence_length=384))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"num_steps": 0}, "num_steps of at least 1, got 0"),
        ({"batch_size": -1}, "batch_size of at least 1"),
        ({"eval_interval": 0}, "eval_interval of at least 1"),
        ({"warmup_ratio": 1.5}, "warmup_ratio from 0 to 1, got 1.5"),
        ({"max_gradient_value": 0.0}, "max_gradient_value above 0, got 0.0"),
        ({"gradient_accumulation_steps": 0}, "gradient_accumulation_steps of at least 1, got 0"),
        (
            {"gradient_accumulation_steps": 3, "batch_size": 32},
            r"batch_size to be a multiple of gradient_accumulation_steps \(3\), got 32",
        ),
        ({"ema_decay": 1.0}, "ema_decay between 0 and 1, got 1.0"),
        ({"early_stopping_patience": 0}, "early_stopping_patience of at least 1, got 0"),
        ({"steps_per_loop": 0}, "steps_per_loop of at least 1, got 0"),
        (
            {"steps_per_loop": 50, "length_buckets": ()},
            r"summary_interval to be a multiple of steps_per_loop \(50\), got 20",
        ),
        (
            {"steps_per_loop": 20},
            r"no length_buckets with steps_per_loop above 1 \(20\), .*, got \(128, 256\)",
        ),
        ({"head_learning_rate_ratio": 0.0}, "head_learning_rate_ratio above 0, got 0.0"),
        (
            {"attention_bias_learning_rate_ratio": -1.0},
            "attention_bias_learning_rate_ratio above 0, got -1.0",
        ),
        ({"perturbed_copies": -1}, "perturbed_copies of at least 0, got -1"),
        ({"length_buckets": (256, 128)}, "length_buckets to ascend"),
        ({"length_buckets": (512,)}, r"below max_seq_length \(512\)"),
        (
            {"encoder": EncoderConfig(position="absolute"), "max_seq_length": 1024},
            "at most 512 with absolute positions, got 1024",
        ),
        (
            {"encoder": LINFORMER, "length_buckets": (), "max_seq_length": 512},
            r"one length, encoder.attention.sequence_length \(384\), got 512 and \(\)",
        ),
        ({"encoder": LINFORMER, "max_seq_length": 384}, r"got 384 and \(128, 256\)"),
    ],
)
def test_impossible_values_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        dataclasses.replace(CONFIG, **changes)


def test_masked_tokens_are_not_perturbed():
    with pytest.raises(ValueError, match="perturbed_copies of 0 in pre-training, got 1"):
        MaskedLMTrainingConfig(
            num_steps=1, learning_rate=0.1, encoder=EncoderConfig(), perturbed_copies=1
        )
