"""WikiTableQuestions with the MATE paper's base model and window, and TAPAS's training.

    python -m experiments.create_data --task=WTQ --input_dir=WikiTableQuestions \
        --output_dir=out/wtq_mate_2048 --vocab_file=mate_base/vocab.txt --max_seq_length=2048 \
        --trim_cells --original_conversion
    python -m experiments.finetune --config=wtq_mate_base_2048 --data_dir=out/wtq_mate_2048 \
        --init_checkpoint=mate_base/model.ckpt --model_dir=out/wtq_mate_base_2048

Hardware: an accelerator, with --config.gradient_accumulation_steps=128 on a single device.
Time: not measured.
Score: not run here.
"""

import dataclasses

from experiments.configs._shared import LONG, MATE_WINDOW
from experiments.configs.papers import wtq_base

CONFIG = dataclasses.replace(
    wtq_base.CONFIG,
    encoder=dataclasses.replace(wtq_base.CONFIG.encoder, attention=MATE_WINDOW),
    **LONG,
)
