"""The default model, stage 4 of 4: WikiTableQuestions' questions, on a CPU."""

import dataclasses

from experiments.configs.default_words import CONFIG as _WORDS
from experiments.configs.wtq_minilm import CONFIG as _WTQ_MINILM

CONFIG = dataclasses.replace(
    _WTQ_MINILM,
    encoder=_WORDS.encoder,
    max_seq_length=1024,
    length_buckets=(128, 192, 256, 384, 512, 768),
    batch_size=16,
    num_steps=1_200,
    learning_rate=5e-5,
    head_learning_rate_ratio=2.0,
    warmup_ratio=0.05,
    dtype="mixed_bfloat16",
    eval_batch_size=16,
    eval_questions=400,
    eval_interval=300,
    checkpoint_interval=100,
)
