"""TabFact with TAPAS's base model and the release's values.

    python -m experiments.create_data --task=TABFACT --input_dir=Table-Fact-Checking \
        --output_dir=out/tabfact --vocab_file=tapas_base/vocab.txt --trim_cells \
        --original_conversion
    python -m experiments.finetune --config=tabfact_base --data_dir=out/tabfact \
        --init_checkpoint=tapas_base --model_dir=out/tabfact_base

--architecture=mate trains MATE, --architecture=tableformer_pcp TableFormer.

Hardware: an accelerator.
Time: not measured; 80,000 steps.
Score: not run here. Release, dev: 79.2 %. TableFormer paper, base: 78.4 % on dev, 77.9 % on test.
MATE paper, large, test: 81.0 % for TAPAS, 81.4 % for MATE.
"""

import dataclasses

from experiments.configs._shared import BERT_BASE, TAPAS_TRAINING
from mate_tf.models.classification import ClassificationConfig
from mate_tf.training.config import ClassificationTrainingConfig

CONFIG = ClassificationTrainingConfig(
    encoder=dataclasses.replace(BERT_BASE, attention_dropout=0.0, hidden_dropout=0.07),
    # The release has no dropout on the pooled output.
    task=ClassificationConfig(
        num_classes=2, class_names=("refuted", "entailed"), output_dropout=0.0
    ),
    num_steps=80_000,
    learning_rate=2e-5,
    warmup_ratio=0.05,
    **TAPAS_TRAINING,
)
