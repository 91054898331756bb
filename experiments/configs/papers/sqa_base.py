"""SQA with TAPAS's base model and the release's values.

    python -m experiments.create_data --task=SQA --input_dir=SQA --output_dir=out/sqa \
        --vocab_file=tapas_base/vocab.txt --trim_cells --original_conversion
    python -m experiments.finetune --config=sqa_base --data_dir=out/sqa \
        --init_checkpoint=tapas_base --model_dir=out/sqa_base

--architecture=mate trains MATE, --architecture=tableformer_pcp TableFormer. With mate,
--config.encoder.attention.evaluator=dense is faster at this length.

Hardware: an accelerator.
Time: not measured; 200,000 steps.
Score: not run here. Release, dev, gold previous answers: 68.7 %. On test: TableFormer paper, base,
67.5 % ALL, 38.8 % SEQ; MATE paper, large, 71.0 % and 44.8 % for TAPAS, 71.7 % and 46.1 % for MATE.
"""

from experiments.configs._shared import BERT_BASE, TAPAS_TRAINING
from mate_tf.models.table_qa import TableQAConfig
from mate_tf.training.config import TableQATrainingConfig

CONFIG = TableQATrainingConfig(
    encoder=BERT_BASE,
    # SQA's answers are cells; nothing is computed from them.
    task=TableQAConfig(
        num_aggregation_labels=0,
        select_one_column=True,
        allow_empty_column_selection=False,
        init_cell_selection_weights_to_zero=False,
    ),
    **TAPAS_TRAINING
    | dict(
        batch_size=128,
        num_steps=200_000,
        learning_rate=1.25e-5,
        warmup_ratio=0.01,
        max_gradient_value=None,
    ),
)
