"""TabFact from all-MiniLM-L6-v2, on a CPU.

    python -m experiments.create_data --task=TABFACT --input_dir=tabfact --splits=dev \
        --divide=dev:train=72,calibration=8,dev=20 --output_dir=out/tabfact_256 \
        --vocab_file=minilm/vocab.txt --max_seq_length=256 --drop_rows_to_fit
    python -m experiments.paper.compare_attention --config=tabfact_minilm \
        --data_dir=out/tabfact_256 --init_checkpoint=minilm --output_dir=out/compare_tabfact

divides the release's validation split by its tables. With the whole release leave out --splits and
--divide.

Hardware: 1 CPU core, with --config.dtype=mixed_bfloat16 one that has AMX.
Time: 6 to 15 minutes a run, TableETC 21.
Score: 49.4 % of 2,613 statements with each attention: 200 steps teach nothing. After synthetic
questions and statements, with --config.learning_rate=5e-6 --config.head_learning_rate_ratio=1,
53.0 % with mate_exact; others in docs/results.md.
"""

import dataclasses

from experiments.configs._shared import MINILM
from mate_tf.config import AttentionConfig
from mate_tf.models.classification import ClassificationConfig
from mate_tf.training.config import ClassificationTrainingConfig

CONFIG = ClassificationTrainingConfig(
    encoder=dataclasses.replace(MINILM, attention=AttentionConfig()),
    task=ClassificationConfig(num_classes=2, class_names=("refuted", "entailed")),
    max_seq_length=256,
    length_buckets=(128, 192),
    batch_size=16,
    num_steps=200,
    # At three times this rate all tokens become alike before anything is learned.
    learning_rate=3e-5,
    head_learning_rate_ratio=5.0,
    warmup_ratio=0.1,
    eval_batch_size=32,
    eval_interval=200,
    checkpoint_interval=50,
)
