"""SQA with TAPAS's base model and the release's values.

    python -m experiments.create_data --task=SQA --input_dir=SQA --output_dir=out/sqa \
        --vocab_file=tapas_base/vocab.txt --trim_cells --original_conversion
    python -m experiments.finetune --config=sqa_base --data_dir=out/sqa \
        --init_checkpoint=tapas_base --model_dir=out/sqa_base

with `tapas_base` the weights after intermediate pre-training, tapas_inter_masklm_base_reset of the
release, which is google/tapas-base on the Hugging Face Hub; without that step
tapas_masklm_base_reset. --architecture=mate trains MATE,
--architecture=mate --config.encoder.attention.evaluator=dense faster at this length. For weights
without "reset": --config.encoder.position=absolute.

Hardware: an accelerator; where 128 examples of 512 tokens do not fit,
--config.gradient_accumulation_steps=8 computes them in parts.
Time: not measured; 200,000 steps. Scores are medians of 5 seeds.
Score: not run here. The release has 68.7 % denotation accuracy on dev, with gold previous answers
(base, reset); the TableFormer paper 67.5 % ALL and 38.8 % SEQ on test for the base model, the MATE
paper, of large models, 71.0 % and 44.8 % for TAPAS and 71.7 % and 46.1 % for MATE.
"""

from experiments.configs.papers._base import BERT_BASE, TAPAS_TRAINING
from mate_tf.models.table_qa import TableQAConfig
from mate_tf.training.config import TableQATrainingConfig

CONFIG = TableQATrainingConfig(
    encoder=BERT_BASE,
    # Nothing is computed from the cells that answer.
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
