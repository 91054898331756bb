"""HybridQA's cells with MATE from all-MiniLM-L6-v2, small enough for a CPU.

    python -m experiments.create_data --task=HYBRIDQA --input_dir=HybridQA \
        --output_dir=out/hybridqa_minilm --vocab_file=minilm/vocab.txt --max_seq_length=2048 \
        --trim_cells
    python -m experiments.finetune --config=hybridqa_minilm --data_dir=out/hybridqa_minilm \
        --init_checkpoint=minilm --model_dir=out/hybridqa_minilm_run

Encoder and window are those of wtq_minilm_2048. If you only have the dev split, divide it by its
tables: --divide=dev:train=75,dev=25.

Hardware: 2 CPU cores.
Time: 16 s a step beside other work.
Score: not measured on the whole data set.
"""

import dataclasses

from experiments.configs._shared import POINTING
from experiments.configs.small import wtq_minilm_2048

CONFIG = dataclasses.replace(
    wtq_minilm_2048.CONFIG,
    task=POINTING,
    batch_size=4,
    eval_batch_size=4,
)
