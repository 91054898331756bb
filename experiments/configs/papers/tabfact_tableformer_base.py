"""TabFact with the TableFormer paper's base model and TAPAS's values.

    python -m experiments.finetune --config=tabfact_tableformer_base --data_dir=out/tabfact \
        --init_checkpoint=tapas_base --model_dir=out/tabfact_tableformer_base

with the data of tabfact_base and the weights of sqa_base; sqa_tableformer_base says what of these
is not read.

Hardware: as tabfact_base.
Time: not measured; 80,000 steps. Scores are medians of 5 seeds.
Score: not run here. The TableFormer paper (table 2) has 79.7 % accuracy on dev and 79.2 % on test,
before and after perturbation; without intermediate pre-training 75.1 % and 75.0 %.
"""

import dataclasses

from experiments.configs.papers import tabfact_base
from mate_tf.presets import with_architecture

CONFIG = dataclasses.replace(
    tabfact_base.CONFIG, encoder=with_architecture(tabfact_base.CONFIG.encoder, "tableformer_pcp")
)
