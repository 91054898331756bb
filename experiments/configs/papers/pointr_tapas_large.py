"""PointR on HybridQA with TAPAS in the first stage (a baseline of the MATE paper, 5.1).

    python -m experiments.pointr --config=pointr_tapas_large --input_dir=HybridQA \
        --output_dir=out/pointr_tapas_large --vocab_file=bert_large/vocab.txt \
        --point_checkpoint=tapas_large --read_checkpoint=bert_large

with `tapas_large` the release's tapas_masklm_large_reset, whose positions restart in each cell, and
`bert_large` as in pointr_mate_large. All tokens attend to all: the memory grows with the square of
2,048.

Hardware: the paper trained on 32 cores of Cloud TPU v3.
Time: not measured here.
Score: not run here. The MATE paper has 63.3 % exact match and 70.8 % F1 on dev (table 5), with the
answer in 80.1 % of the best cells (table 6).
"""

import dataclasses

from experiments.configs.papers.pointr_mate_large import CONFIG as _MATE
from mate_tf.presets import with_architecture

_ENCODER = with_architecture(_MATE.point.encoder, "tapas")
CONFIG = dataclasses.replace(_MATE, point=dataclasses.replace(_MATE.point, encoder=_ENCODER))
