"""The default model, stage 1 of 4: words and cells of tables filled in, on a CPU.

    python -m experiments.train_default --stage=words

which is experiments/train_default.py with all its stages' commands. The start are the weights of
all-MiniLM-L6-v2, the tables nine tenths of WikiTableQuestions' training tables; the evaluations are
on the other tenth.
"""

import dataclasses

from experiments.configs.mlm_minilm import CONFIG as _MLM_MINILM
from mate_tf.presets import with_architecture

CONFIG = dataclasses.replace(
    _MLM_MINILM,
    # Every pair that MATE's pattern allows, and positions that restart in each cell, so that a
    # table may be longer than the 512 tokens that MiniLM knows.
    encoder=dataclasses.replace(
        with_architecture(_MLM_MINILM.encoder, "mate_exact"), position="per_cell"
    ),
    num_steps=1_200,
    eval_examples=1_000,
    eval_interval=400,
    checkpoint_interval=100,
)
