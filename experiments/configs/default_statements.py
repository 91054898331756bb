"""The default model, stage 2 of 4: true and false statements, on a CPU."""

import dataclasses

from experiments.configs.default_words import CONFIG as _WORDS
from experiments.configs.statements_minilm import CONFIG as _STATEMENTS_MINILM

CONFIG = dataclasses.replace(
    _STATEMENTS_MINILM,
    encoder=_WORDS.encoder,
    num_steps=300,
    learning_rate=3e-5,
    eval_interval=150,
    checkpoint_interval=100,
)
