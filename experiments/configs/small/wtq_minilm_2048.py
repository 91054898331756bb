"""WikiTableQuestions read whole: 2,048 tokens, the MATE paper's window 42/116, MiniLM's weights.

    python -m experiments.create_data --task=WTQ --input_dir=WikiTableQuestions \
        --divide=train:train=90,calibration=10 --output_dir=out/wtq_2048 \
        --vocab_file=minilm/vocab.txt --max_seq_length=2048 --trim_cells
    python -m experiments.finetune --config=wtq_minilm_2048 --data_dir=out/wtq_2048 \
        --init_checkpoint=minilm --model_dir=out/wtq_minilm_2048

with `minilm` as in wtq_minilm.

Hardware: 2 CPU cores with AMX, of which the run had one (--config.dtype=mixed_bfloat16).
Time: 27 minutes, 7 of them the answers to all 2,831 dev questions.
Score: 7.0 % denotation accuracy (calibration error 2.7 %), which is less than the same 200 steps
give at 256 tokens: MiniLM's weights know positions through a sequence, and here they restart in
each cell.
"""

import dataclasses

from experiments.configs.small.wtq_minilm import CONFIG as _WTQ_MINILM
from mate_tf.config import AttentionConfig

CONFIG = dataclasses.replace(
    _WTQ_MINILM,
    encoder=dataclasses.replace(
        _WTQ_MINILM.encoder,
        # MiniLM knows 512 positions: beyond, they restart in each cell.
        position="per_cell",
        attention=AttentionConfig("mate", evaluator="multi_view", bucket_size=42, global_size=116),
    ),
    max_seq_length=2048,
    length_buckets=(256, 512, 1024),
    batch_size=16,
    num_steps=200,
    eval_batch_size=8,
    eval_questions=None,
    eval_interval=200,
    checkpoint_interval=25,
)
