"""SQA with the TableFormer paper's base model, TAPAS's values and no perturbed copies.

    python -m experiments.finetune --config=sqa_tableformer_base --data_dir=out/sqa \
        --init_checkpoint=tapas_base --model_dir=out/sqa_tableformer_base
    python -m experiments.export --model_dir=out/sqa_tableformer_base --output_dir=out/sqa_tf_base
    python -m experiments.robustness --model=out/sqa_tf_base --data=out/sqa/dev.jsonl \
        --num_perturbations=5

with the data and weights of sqa_base. The paper pre-trains with its relations, and names no other
values than TAPAS's; its weights are not published, and from TAPAS's the embeddings of rows and
columns are not read.

Hardware: as sqa_base.
Time: not measured; 200,000 steps. Scores are medians of 5 seeds.
Score: not run here. The TableFormer paper (table 1) has 69.4 % ALL and 43.5 % SEQ on test after
intermediate pre-training, 69.3 % ALL after perturbation and a variation percentage of 0.1 %;
without that pre-training 66.7 %, 39.7 %, 66.7 % and 0.2 %.
"""

import dataclasses

from experiments.configs.papers import sqa_base
from mate_tf.presets import with_architecture

CONFIG = dataclasses.replace(
    sqa_base.CONFIG, encoder=with_architecture(sqa_base.CONFIG.encoder, "tableformer_pcp")
)
