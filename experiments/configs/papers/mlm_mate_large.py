"""MATE's pre-training on tables and texts (MATE paper, appendix A.1), large size.

    python -m experiments.create_pretraining_data --task=TEXTS --input_dir=my_tables \
        --output_dir=out/mlm_data --vocab_file=bert_large/vocab.txt --num_shards=64
    python -m experiments.pretrain --config=mlm_mate_large --data_dir=out/mlm_data \
        --init_checkpoint=bert_large --model_dir=out/mlm_mate_large

with `bert_large` the weights of BERT uncased. What mlm_mate_base says of data and values holds here
too. The run's folder is the --init_checkpoint of hybridqa_mate_large, whose attention is linear.

Hardware: the paper trained on 32 cores of Cloud TPU v3; where 512 examples do not fit,
--config.gradient_accumulation_steps=16 computes them in parts.
Time: not measured; 1,000,000 steps, 2 days in the paper.
Score: not run here; none is published for the pre-training itself. In the MATE paper (table 6) it
is worth 4.6 points of the HybridQA questions whose best cell holds the answer.
"""

import dataclasses

from experiments.configs.papers._base import BERT_LARGE
from experiments.configs.papers.mlm_mate_base import CONFIG as BASE

CONFIG = dataclasses.replace(
    BASE, encoder=dataclasses.replace(BERT_LARGE, attention=BASE.encoder.attention)
)
