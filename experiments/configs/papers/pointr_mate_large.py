"""PointR on HybridQA as the MATE paper has it: MATE points, BERT reads (section 4).

    python -m experiments.pointr --config=pointr_mate_large --input_dir=HybridQA \
        --output_dir=out/pointr_mate_large --vocab_file=bert_large/vocab.txt \
        --point_checkpoint=mate_large --read_checkpoint=bert_large

with `mate_large` MATE's weights after pre-training on tables, which are not published (a run of
mlm_mate_large makes some), and `bert_large` the Hugging Face folder of bert-large-uncased. The
stages are hybridqa_mate_large, whose gradients' values are cut to 10 after their norm is to 1, as
in the release, and hybridqa_reader_large with a perceptron for its spans. The paper's ablations
(table 6): --config.point.encoder.attention.row_heads_ratio=0 (no row heads) or =1 (no column
heads), TAPAS's weights as --point_checkpoint (no sparse pre-training),
--config.inputs.discard_ambiguous=true.

Hardware: the paper trained on 32 cores of Cloud TPU v3, a day to point and six hours to read.
Time: not measured here.
Score: not run here. The MATE paper has 63.4 % exact match and 71.0 % F1 on dev (table 5), with the
answer in 80.1 % of the best cells (table 6); without row heads 78.3 %, without column heads 77.8 %,
without sparse pre-training 75.5 %, without ambiguous questions 76.7 %.
"""

import dataclasses

from experiments.configs.papers.hybridqa_mate_large import CONFIG as _POINT
from experiments.configs.papers.hybridqa_reader_large import CONFIG as _READ
from mate_tf.pointr.config import PointRConfig

CONFIG = PointRConfig(
    point=_POINT,
    # The paper does not say how large its perceptron is: as the encoder.
    read=dataclasses.replace(_READ, task=dataclasses.replace(_READ.task, hidden_size=1024)),
)
