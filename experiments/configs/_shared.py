"""Values that several presets share. It is not a preset itself."""

import dataclasses
from typing import Any

from mate_tf.config import AttentionConfig, EncoderConfig
from mate_tf.models.classification import ClassificationConfig
from mate_tf.models.table_qa import TableQAConfig
from mate_tf.training.config import MaskedLMTrainingConfig
from mate_tf.training.starting_points import ENCODER

# Like the published checkpoints whose positions restart in each cell ("reset").
BERT_BASE = EncoderConfig(
    original_ids=True, position="per_cell", attention=AttentionConfig(architecture="tapas")
)
BERT_LARGE = dataclasses.replace(
    BERT_BASE, hidden_size=1024, num_layers=24, num_heads=16, intermediate_size=4096
)
# Every pair that row heads and column heads allow; up to 1,000 tokens the fastest evaluator.
MATE_DENSE = AttentionConfig("mate", evaluator="dense", bucket_size=0)
# The window of the MATE paper: buckets of 42 behind 116 global tokens, half of the heads in rows.
MATE_WINDOW = AttentionConfig("mate", evaluator="multi_view", bucket_size=42, global_size=116)
# The release clips gradients at 10 in all tasks but SQA. After a norm of 1 this never acts.
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
# The MATE paper's values for MATE (appendix A.1). The paper does not give the learning rate and
# the warm-up; these are the defaults of the release's program.
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
MINILM = dataclasses.replace(
    ENCODER,
    # These weights know positions counted through the sequence. Positions that restart in each
    # cell can be learned too, but not in half an hour.
    position="absolute",
    attention=MATE_DENSE,
)
LONG: dict[str, Any] = dict(max_seq_length=2048, length_buckets=(256, 512, 1024))
# The answer is in cells of any columns; nothing is computed from them.
POINTING = TableQAConfig(
    num_aggregation_labels=0, select_one_column=False, cell_cross_entropy=True, output_dropout=0.0
)
SST2: dict[str, Any] = dict(
    task=ClassificationConfig(num_classes=2),
    max_seq_length=128,
    length_buckets=(16, 24, 32, 40, 64),
    eval_batch_size=64,
)


def pretraining(
    encoder: EncoderConfig, attention: AttentionConfig, **changes: Any
) -> MaskedLMTrainingConfig:
    """PRETRAINING of an encoder with an attention, and with changed values."""
    encoder = dataclasses.replace(encoder, attention=attention)
    return MaskedLMTrainingConfig(encoder=encoder, **PRETRAINING | changes)
