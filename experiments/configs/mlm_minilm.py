"""placeholder"""

from mate_tf.config import AttentionConfig, EncoderConfig
from mate_tf.training.config import MaskedLMTrainingConfig

CONFIG = MaskedLMTrainingConfig(
    encoder=EncoderConfig(
        hidden_size=384,
        num_layers=6,
        num_heads=12,
        intermediate_size=1536,
        activation="gelu",
        hidden_dropout=0.0,
        attention_dropout=0.0,
        position="absolute",
        initializer_range=0.004,
        attention=AttentionConfig(architecture="mate", evaluator="dense", bucket_size=0),
    ),
    max_seq_length=128,
    batch_size=16,
    num_steps=2_800,
    learning_rate=2e-4,
    head_learning_rate_ratio=5.0,
    warmup_ratio=0.05,
    eval_batch_size=32,
    eval_examples=2_000,
    eval_interval=400,
    checkpoint_interval=50,
)
