"""PointR on HybridQA with SAT in the first stage (a baseline of the MATE paper, 5.1).

    python -m experiments.pointr --config=pointr_sat_large --input_dir=HybridQA \
        --output_dir=out/pointr_sat_large --vocab_file=bert_large/vocab.txt \
        --point_checkpoint=sat_large --read_checkpoint=bert_large

with `sat_large` a run of mlm_mate_large with --architecture=sat, and `bert_large` as in
pointr_mate_large. It has no row of histograms: the softmax over cells would take it in.

Hardware: the paper trained on 32 cores of Cloud TPU v3.
Time: not measured here.
Score: not run here. The MATE paper has 61.2 % exact match and 68.7 % F1 on dev (table 5), with the
answer in 77.9 % of the best cells (table 6).
"""

import dataclasses

from experiments.configs.papers.pointr_mate_large import CONFIG as _MATE
from mate_tf.presets import with_architecture

_ENCODER = with_architecture(_MATE.point.encoder, "sat")
CONFIG = dataclasses.replace(_MATE, point=dataclasses.replace(_MATE.point, encoder=_ENCODER))
