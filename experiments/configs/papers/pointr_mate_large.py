"""PointR on HybridQA as in the MATE paper: MATE points, BERT reads (section 4).

    python -m experiments.pointr --config=pointr_mate_large --input_dir=HybridQA \
        --output_dir=out/pointr_mate_large --vocab_file=bert_large/vocab.txt \
        --point_checkpoint=mate_large --read_checkpoint=bert_large

The stages are hybridqa_mate_large and hybridqa_reader_large, the reader with a perceptron. The
paper's ablations (table 6) are flags: --config.point.encoder.attention.row_heads_ratio=0 (no row
heads) or 1 (no column heads), --config.inputs.discard_ambiguous=true, and TAPAS's weights as
--point_checkpoint (no sparse pre-training). Its baselines are flags too: configs/README.md.

Hardware: 32 cores of Cloud TPU v3 in the paper.
Time: not measured here; a day to point and six hours to read in the paper.
Score: not run here. MATE paper, dev: 63.4 % exact match, 71.0 % F1 (table 5), 80.1 % Hits@1 (table
6); without row heads 78.3 %, column heads 77.8 %, sparse pre-training 75.5 %, ambiguous questions
76.7 %.
"""

import dataclasses

from experiments.configs.papers.hybridqa_mate_large import CONFIG as _POINT
from experiments.configs.papers.hybridqa_reader_large import CONFIG as _READ
from mate_tf.pointr.inputs import PointRConfig

CONFIG = PointRConfig(
    point=_POINT,
    # The paper does not give the size of its perceptron. This is the encoder's.
    read=dataclasses.replace(_READ, task=dataclasses.replace(_READ.task, hidden_size=1024)),
)
