"""HybridQA's cells with MATE: the first stage of the MATE paper's PointR (section 4.1).

    python -m experiments.create_data --task=HYBRIDQA --input_dir=HybridQA \
        --output_dir=out/hybridqa --vocab_file=tapas_large/vocab.txt --max_seq_length=2048 \
        --trim_cells --original_conversion
    python -m experiments.finetune --config=hybridqa_mate_large --data_dir=out/hybridqa \
        --init_checkpoint=mate_large/model.ckpt --model_dir=out/hybridqa_mate_large

with `mate_large` MATE's weights after pre-training on tables, which are not published, or the
release's tapas_masklm_large_reset ("- sparse pretrain" in the paper's table 6). The values are the
paper's (appendix A.2); the release has them too, but for the loss.

Hardware: the paper trained on 32 cores of Cloud TPU v3; where 128 examples of 2,048 tokens do not
fit, --config.gradient_accumulation_steps=32 computes them in parts.
Time: not measured; 80,000 steps, one day in the paper. Scores are medians of 5 seeds.
Score: not run here. The MATE paper (table 6) has 80.1 % of dev questions with an answer in the best
cell, 89.2 % in the best three and 91.5 % in the best five; from TAPAS's weights 75.5 %, 86.5 % and
89.9 %.
"""

import dataclasses

from experiments.configs.papers._base import BERT_LARGE, TAPAS_TRAINING
from mate_tf.config import AttentionConfig
from mate_tf.models.table_qa import TableQAConfig
from mate_tf.training.config import TableQATrainingConfig

CONFIG = TableQATrainingConfig(
    encoder=dataclasses.replace(
        BERT_LARGE,
        attention=AttentionConfig(
            architecture="mate",
            evaluator="multi_view",
            row_heads_ratio=0.5,
            bucket_size=42,
            global_size=116,
        ),
    ),
    task=TableQAConfig(
        num_aggregation_labels=0,
        select_one_column=False,
        allow_empty_column_selection=False,
        cell_cross_entropy=True,
    ),
    **TAPAS_TRAINING
    | dict(
        max_seq_length=2048,
        length_buckets=(512, 1024),
        batch_size=128,
        num_steps=80_000,
        learning_rate=1e-5,
        warmup_ratio=0.05,
        eval_batch_size=8,
    ),
)
