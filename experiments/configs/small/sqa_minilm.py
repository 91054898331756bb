"""SQA from all-MiniLM-L6-v2, small enough for a CPU.

    python -m experiments.create_data --task=SQA --input_dir=SQA --output_dir=out/sqa_384 \
        --vocab_file=minilm/vocab.txt --max_seq_length=384 --drop_rows_to_fit
    python -m experiments.finetune --config=sqa_minilm --data_dir=out/sqa_384 \
        --init_checkpoint=minilm --model_dir=out/sqa_minilm

Hardware: 2 CPU cores.
Time: not run here; about that of wtq_minilm for as many steps.
Score: not run here.
"""

import dataclasses

from experiments.configs.small import wtq_minilm
from mate_tf.models.table_qa import TableQAConfig

CONFIG = dataclasses.replace(
    wtq_minilm.CONFIG,
    # SQA's answers are cells; nothing is computed from them.
    task=TableQAConfig(num_aggregation_labels=0, temperature=0.1, output_dropout=0.0),
)
