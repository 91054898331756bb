"""PointR on HybridQA without the passages ("Table-Only" in the MATE paper, 5.1).

    python -m experiments.pointr --config=pointr_table_only_large --input_dir=HybridQA \
        --output_dir=out/pointr_table_only_large --vocab_file=bert_large/vocab.txt \
        --point_checkpoint=mate_large --read_checkpoint=bert_large

with the weights of pointr_mate_large. The paper's figures are of the data set's authors, whose own
model read the table alone; here it is PointR with evidence "table".

Hardware: the paper trained on 32 cores of Cloud TPU v3.
Time: not measured here.
Score: not run here. The MATE paper has 8.4 % exact match and 12.1 % F1 on dev (table 5).
"""

import dataclasses

from experiments.configs.papers.pointr_mate_large import CONFIG as _MATE
from mate_tf.pointr.config import PointingInputs

CONFIG = dataclasses.replace(_MATE, inputs=PointingInputs(evidence="table"))
