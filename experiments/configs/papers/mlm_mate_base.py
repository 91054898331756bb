"""MATE's pre-training on tables and texts (MATE paper, appendix A.1), base size.

    python -m experiments.create_pretraining_data --task=TEXTS --input_dir=my_tables \
        --output_dir=out/mlm_data --vocab_file=bert_base/vocab.txt --num_shards=64
    python -m experiments.pretrain --config=mlm_mate_base --data_dir=out/mlm_data \
        --init_checkpoint=bert_base --model_dir=out/mlm_mate_base

with `bert_base` the weights of BERT uncased, and as data the 6.2 million tables of Wikipedia with
their texts that TAPAS's authors gathered, which are not published as such. Length, batch and steps
are the paper's; it does not give the learning rate and the warm-up, which are the release's
defaults. At 128 tokens the dense evaluator with an unlimited window is the fastest, and computes
each pair that the row and column heads allow: the weights are those of the linear one too.

Hardware: the paper trained on 32 cores of Cloud TPU v3.
Time: not measured; 1,000,000 steps, 2 days in the paper (large size).
Score: not run here; none is published for the pre-training itself.
"""

import dataclasses

from experiments.configs.papers._base import BERT_BASE, PRETRAINING
from mate_tf.config import AttentionConfig
from mate_tf.training.config import MaskedLMTrainingConfig

CONFIG = MaskedLMTrainingConfig(
    encoder=dataclasses.replace(
        BERT_BASE,
        attention=AttentionConfig(
            architecture="mate", evaluator="dense", row_heads_ratio=0.5, bucket_size=0
        ),
    ),
    **PRETRAINING,
)
