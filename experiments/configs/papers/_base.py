"""What the papers' presets share; no preset itself."""

import dataclasses
from typing import Any

from mate_tf.config import AttentionConfig, EncoderConfig

# As the published checkpoints, whose positions restart in each cell ("reset").
BERT_BASE = EncoderConfig(
    original_ids=True, position="per_cell", attention=AttentionConfig(architecture="tapas")
)
BERT_LARGE = dataclasses.replace(
    BERT_BASE, hidden_size=1024, num_layers=24, num_heads=16, intermediate_size=4096
)
# The release cuts gradients at 10 for all tasks but SQA, which after a norm of 1 never acts.
TAPAS_TRAINING: dict[str, Any] = dict(
    max_seq_length=512,
    length_buckets=(128, 256),
    batch_size=512,
    max_gradient_value=10.0,
    dtype="mixed_bfloat16",
    eval_interval=2_000,
    checkpoint_interval=1_000,
    keep_checkpoints=5,
)
# The MATE paper's for MATE (appendix A.1). Learning rate and warm-up, which it does not give, are
# the defaults of the release's program.
PRETRAINING: dict[str, Any] = dict(
    max_seq_length=128,
    batch_size=512,
    num_steps=1_000_000,
    learning_rate=5e-5,
    warmup_ratio=0.01,
    dtype="mixed_bfloat16",
    eval_examples=10_000,
    eval_interval=10_000,
    checkpoint_interval=1_000,
    keep_checkpoints=5,
)
