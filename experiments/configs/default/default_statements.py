"""The default model, stage 2 of 4: true and false statements about tables.

    scripts/train_default_model.sh WikiTableQuestions minilm statements

makes statements about excerpts of the first stage's tables, and runs

    python -m experiments.finetune --config=default_statements \
        --data_dir=out/default/statements_data --init_checkpoint=out/default/words_weights \
        --reset_heads --model_dir=out/default/statements

Hardware: 2 CPU cores with AMX.
Time: 4 minutes beside other work.
Score: 50.0 % of the statements about held-out tables: so few steps teach nothing. statements_minilm
trains eight times as long and reaches 73.0 %; here the time went to the next stage.
"""

import dataclasses

from experiments.configs.small.statements_minilm import CONFIG as _STATEMENTS_MINILM
from mate_tf.training.starting_points import ENCODER

CONFIG = dataclasses.replace(
    _STATEMENTS_MINILM,
    encoder=ENCODER,
    num_steps=300,
    learning_rate=3e-5,
    eval_interval=150,
    checkpoint_interval=100,
)
