"""WikiTableQuestions with the MATE paper's base model and window, and TAPAS's training.

    python -m experiments.create_data --task=WTQ --input_dir=WikiTableQuestions \
        --output_dir=out/wtq_mate_2048 --vocab_file=mate_base/vocab.txt --max_seq_length=2048 \
        --trim_cells --original_conversion
    python -m experiments.finetune --config=wtq_mate_base_2048 --data_dir=out/wtq_mate_2048 \
        --init_checkpoint=mate_base/model.ckpt --model_dir=out/wtq_mate_base_2048

Hardware: an accelerator; 512 examples of 2,048 tokens do not fit one device in one step:
--config.gradient_accumulation_steps=128 computes them in parts.
Time: not measured.
Score: not measured; nobody has run it to the end here.
"""

import dataclasses

from experiments.configs.papers import wtq_base
from mate_tf.config import AttentionConfig

CONFIG = dataclasses.replace(
    wtq_base.CONFIG,
    # BERT base; buckets of 42 behind 116 global tokens, half of the heads in rows.
    encoder=dataclasses.replace(
        wtq_base.CONFIG.encoder,
        attention=AttentionConfig(
            architecture="mate",
            evaluator="multi_view",
            row_heads_ratio=0.5,
            bucket_size=42,
            global_size=116,
        ),
    ),
    max_seq_length=2048,
    length_buckets=(256, 512, 1024),
)
