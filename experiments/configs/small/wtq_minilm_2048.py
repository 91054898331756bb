"""WikiTableQuestions read whole: 2,048 tokens, the MATE paper's window, MiniLM's weights.

    python -m experiments.create_data --task=WTQ --input_dir=WikiTableQuestions \
        --divide=train:train=90,calibration=10 --output_dir=out/wtq_2048 \
        --vocab_file=minilm/vocab.txt --max_seq_length=2048 --trim_cells
    python -m experiments.finetune --config=wtq_minilm_2048 --data_dir=out/wtq_2048 \
        --init_checkpoint=minilm --model_dir=out/wtq_minilm_2048

Hardware: 1 CPU core with AMX (--config.dtype=mixed_bfloat16).
Time: 27 minutes, 7 of them for the answers to all 2,831 dev questions.
Score: 7.0 % denotation accuracy. MiniLM's weights do not know positions that restart in each cell,
so this is less than the same 200 steps give at 256 tokens.
"""

import dataclasses

from experiments.configs._shared import LONG, MATE_WINDOW
from experiments.configs.small.wtq_minilm import CONFIG as _WTQ_MINILM

CONFIG = dataclasses.replace(
    _WTQ_MINILM,
    # MiniLM knows 512 positions, so for longer input they restart in each cell.
    encoder=dataclasses.replace(_WTQ_MINILM.encoder, position="per_cell", attention=MATE_WINDOW),
    **LONG,
    num_steps=200,
    eval_batch_size=8,
    eval_questions=None,
    eval_interval=200,
    checkpoint_interval=25,
)
