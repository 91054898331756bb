"""PointR on HybridQA with a small encoder: 2,048 tokens to point, 512 to read, on a CPU.

    python -m experiments.pointr --config=pointr_hybridqa_minilm --input_dir=HybridQA \
        --output_dir=out/pointr_hybridqa --vocab_file=minilm/vocab.txt \
        --point_checkpoint=minilm --read_checkpoint=minilm

It was run as an overfitting check only, on 24 questions about eight tables, with
--train_split=dev --dev_split=dev.

Hardware: 1 CPU core with AMX.
Time: 17 minutes beside other work.
Score: 23 of the 24 training questions; no cell or passage holds the other answer.
"""

import dataclasses

from experiments.configs.small import hybridqa_minilm, pointr_minilm
from mate_tf.pointr.inputs import PointRConfig

CONFIG = PointRConfig(
    point=dataclasses.replace(hybridqa_minilm.CONFIG, dtype="mixed_bfloat16"),
    read=dataclasses.replace(
        pointr_minilm.CONFIG.read, length_buckets=(64, 128, 192, 256, 384), num_steps=200
    ),
)
