"""HybridQA's cells with MATE: the first stage of the MATE paper's PointR (section 4.1).

    python -m experiments.create_data --task=HYBRIDQA --input_dir=HybridQA \
        --output_dir=out/hybridqa --vocab_file=tapas_large/vocab.txt --max_seq_length=2048 \
        --trim_cells --original_conversion
    python -m experiments.finetune --config=hybridqa_mate_large --data_dir=out/hybridqa \
        --init_checkpoint=mate_large --model_dir=out/hybridqa_mate_large

The values are the paper's (appendix A.2). The release has the same values, with another loss.

Hardware: 32 cores of Cloud TPU v3 in the paper.
Time: not measured here; 80,000 steps, one day in the paper.
Score: not run here. MATE paper, table 6, dev: 80.1 % Hits@1, 89.2 % Hits@3, 91.5 % Hits@5; from
TAPAS's weights 75.5 %, 86.5 % and 89.9 %.
"""

import dataclasses

from experiments.configs._shared import BERT_LARGE, MATE_WINDOW, TAPAS_TRAINING
from mate_tf.models.table_qa import TableQAConfig
from mate_tf.training.config import TableQATrainingConfig

CONFIG = TableQATrainingConfig(
    encoder=dataclasses.replace(BERT_LARGE, attention=MATE_WINDOW),
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
