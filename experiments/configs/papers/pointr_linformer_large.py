"""PointR on HybridQA with a Linformer in the first stage (a baseline of the MATE paper, 5.1).

    python -m experiments.pointr --config=pointr_linformer_large --input_dir=HybridQA \
        --output_dir=out/pointr_linformer_large --vocab_file=bert_large/vocab.txt \
        --point_checkpoint=linformer_large --read_checkpoint=bert_large

with `linformer_large` a run of mlm_linformer_large, whose projections are of 2,048 tokens as here,
and `bert_large` as in pointr_mate_large.

Hardware: the paper trained on 32 cores of Cloud TPU v3.
Time: not measured here.
Score: not run here. The MATE paper has 60.8 % exact match and 68.4 % F1 on dev (table 5), with the
answer in 77.1 % of the best cells (table 6).
"""

import dataclasses

from experiments.configs.papers.pointr_mate_large import CONFIG as _MATE
from mate_tf.presets import with_architecture

_ENCODER = with_architecture(_MATE.point.encoder, "linformer_256")
CONFIG = dataclasses.replace(
    _MATE, point=dataclasses.replace(_MATE.point, encoder=_ENCODER, length_buckets=())
)
