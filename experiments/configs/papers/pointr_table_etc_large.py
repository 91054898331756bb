"""PointR on HybridQA with TableETC in the first stage (a baseline of the MATE paper, 5.1).

    python -m experiments.pointr --config=pointr_table_etc_large --input_dir=HybridQA \
        --output_dir=out/pointr_table_etc_large --vocab_file=bert_large/vocab.txt \
        --point_checkpoint=table_etc_large --read_checkpoint=bert_large

with `table_etc_large` a run of mlm_table_etc_large, and `bert_large` as in pointr_mate_large.

Hardware: the paper trained on 32 cores of Cloud TPU v3.
Time: not measured here.
Score: not run here. The MATE paper has 36.1 % exact match and 42.9 % F1 on dev (table 5), with the
answer in 51.1 % of the best cells (table 6).
"""

import dataclasses

from experiments.configs.papers.pointr_mate_large import CONFIG as _MATE
from mate_tf.presets import with_architecture

_ENCODER = with_architecture(_MATE.point.encoder, "table_etc")
CONFIG = dataclasses.replace(_MATE, point=dataclasses.replace(_MATE.point, encoder=_ENCODER))
