"""MATE's pre-training on tables and texts (MATE paper, appendix A.1), base size.

    python -m experiments.create_pretraining_data --task=TEXTS --input_dir=my_tables \
        --output_dir=out/mlm_data --vocab_file=bert_base/vocab.txt --num_shards=64
    python -m experiments.pretrain --config=mlm_mate_base --data_dir=out/mlm_data \
        --init_checkpoint=bert_base --model_dir=out/mlm_mate_base

The paper's data, 6.2 million tables of Wikipedia with their texts, are not published. At 128 tokens
dense attention is the fastest. It computes all pairs that row heads and column heads allow, so
linear attention can use the weights too.

Hardware: 32 cores of Cloud TPU v3 in the paper.
Time: not measured here; 1,000,000 steps.
Score: not run here; no score of the pre-training itself is published.
"""

from experiments.configs._shared import BERT_BASE, MATE_DENSE, pretraining

CONFIG = pretraining(BERT_BASE, MATE_DENSE)
