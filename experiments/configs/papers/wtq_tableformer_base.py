"""WikiTableQuestions with the TableFormer paper's base model and TAPAS's values.

    python -m experiments.finetune --config=wtq_tableformer_base --data_dir=out/wtq \
        --init_checkpoint=out/sqa_tableformer_base --model_dir=out/wtq_tableformer_base

with the data of wtq_base and the run of sqa_tableformer_base ("inter-sqa").

Hardware: as wtq_base.
Time: not measured; 50,000 steps. Scores are medians of 5 seeds.
Score: not run here. The TableFormer paper (table 3) has 46.7 % denotation accuracy on dev and
46.5 % on test; without intermediate pre-training and SQA 34.4 % and 34.8 %.
"""

import dataclasses

from experiments.configs.papers import wtq_base
from mate_tf.presets import with_architecture

CONFIG = dataclasses.replace(
    wtq_base.CONFIG, encoder=with_architecture(wtq_base.CONFIG.encoder, "tableformer_pcp")
)
