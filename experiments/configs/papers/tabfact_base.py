"""TabFact with TAPAS's base model and the release's values.

    python -m experiments.create_data --task=TABFACT --input_dir=Table-Fact-Checking \
        --output_dir=out/tabfact --vocab_file=tapas_base/vocab.txt --trim_cells \
        --original_conversion
    python -m experiments.finetune --config=tabfact_base --data_dir=out/tabfact \
        --init_checkpoint=tapas_base --model_dir=out/tabfact_base

with the weights of sqa_base. --architecture=mate trains MATE.

Hardware: an accelerator; where 512 examples of 512 tokens do not fit,
--config.gradient_accumulation_steps=32 computes them in parts.
Time: not measured; 80,000 steps. Scores are medians of 5 seeds.
Score: not run here. The release has 79.2 % accuracy on dev after intermediate pre-training (base,
reset); the TableFormer paper 78.4 % on dev and 77.9 % on test for the base model, the MATE paper,
of large models, 81.0 % on test for TAPAS and 81.4 % for MATE.
"""

import dataclasses

from experiments.configs.papers._base import BERT_BASE, TAPAS_TRAINING
from mate_tf.models.classification import ClassificationConfig
from mate_tf.training.config import ClassificationTrainingConfig

CONFIG = ClassificationTrainingConfig(
    encoder=dataclasses.replace(BERT_BASE, attention_dropout=0.0, hidden_dropout=0.07),
    # The release drops nothing of the pooled output.
    task=ClassificationConfig(
        num_classes=2, class_names=("refuted", "entailed"), output_dropout=0.0
    ),
    num_steps=80_000,
    learning_rate=2e-5,
    warmup_ratio=0.05,
    **TAPAS_TRAINING,
)
