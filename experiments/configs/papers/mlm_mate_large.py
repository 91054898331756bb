"""MATE's pre-training on tables and texts (MATE paper, appendix A.1), large size.

    python -m experiments.create_pretraining_data --task=TEXTS --input_dir=my_tables \
        --output_dir=out/mlm_data --vocab_file=bert_large/vocab.txt --num_shards=64
    python -m experiments.pretrain --config=mlm_mate_large --data_dir=out/mlm_data \
        --init_checkpoint=bert_large --model_dir=out/mlm_mate_large

mlm_mate_base says more about data and values. hybridqa_mate_large starts from the run.

Hardware: 32 cores of Cloud TPU v3 in the paper.
Time: not measured here; 1,000,000 steps, 2 days in the paper.
Score: not run here. In the MATE paper (table 6) it adds 4.6 points of Hits@1 on HybridQA.
"""

from experiments.configs._shared import BERT_LARGE, MATE_DENSE, pretraining

CONFIG = pretraining(BERT_LARGE, MATE_DENSE)
