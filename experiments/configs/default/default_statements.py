"""The default model, stage 2 of 4: true and false statements about tables, on a CPU.

    scripts/train_default_model.sh WikiTableQuestions minilm statements

makes the data and runs

    python -m experiments.finetune --config=default_statements \
        --data_dir=out/default/statements_data --init_checkpoint=out/default/words_weights \
        --reset_heads --model_dir=out/default/statements

on statements about excerpts of the tables of the first stage.

Hardware: 2 CPU cores with AMX.
Time: 4 minutes, other work running beside.
Score: 50.0 % of the statements about the kept tables, half of which are true: so few steps teach
nothing. statements_minilm, with eight times as many, has 73.0 %; here the next stage, whose
questions are about the same things, was given the time instead.
"""

import dataclasses

from experiments.configs.default.default_words import CONFIG as _WORDS
from experiments.configs.small.statements_minilm import CONFIG as _STATEMENTS_MINILM

CONFIG = dataclasses.replace(
    _STATEMENTS_MINILM,
    encoder=_WORDS.encoder,
    num_steps=300,
    learning_rate=3e-5,
    eval_interval=150,
    checkpoint_interval=100,
)
