"""WikiTableQuestions with TAPAS's base model and the release's values, alone or after a chain.

    python -m experiments.create_data --task=WTQ --input_dir=WikiTableQuestions \
        --output_dir=out/wtq --vocab_file=tapas_base/vocab.txt --trim_cells --original_conversion
    python -m experiments.finetune --config=wtq_base --data_dir=out/wtq \
        --init_checkpoint=out/wikisql_base --model_dir=out/wtq_base

The chain of the release: intermediate pre-training, SQA, WikiSQL, WTQ, each run starting from the
folder of the one before, the first from the weights that sqa_base begins with:

    python -m experiments.finetune --config=sqa_base --data_dir=out/sqa \
        --init_checkpoint=tapas_base --model_dir=out/sqa_base
    python -m experiments.finetune --config=wikisql_base --data_dir=out/wikisql \
        --init_checkpoint=out/sqa_base --model_dir=out/wikisql_base

That of the TableFormer and MATE papers ("inter-sqa", "CS") goes from SQA to WTQ:
--init_checkpoint=out/sqa_base. --architecture=mate, in each run of a chain, trains MATE.

Hardware: an accelerator; where 512 examples of 512 tokens do not fit,
--config.gradient_accumulation_steps=32 computes them in parts.
Time: not measured; 50,000 steps. Scores are medians of 5 seeds.
Score: not run here. The release has 46.4 % denotation accuracy on dev after its chain (base,
reset); the TableFormer paper 44.8 % on dev and 45.1 % on test after intermediate pre-training and
SQA; the MATE paper, of large models, 46.6 % on test for TAPAS and 51.5 % for MATE.
"""

from experiments.configs.papers._base import BERT_BASE, TAPAS_TRAINING
from mate_tf.models.table_qa import TableQAConfig
from mate_tf.training.config import TableQATrainingConfig

CONFIG = TableQATrainingConfig(
    encoder=BERT_BASE,
    task=TableQAConfig(
        select_one_column=True,
        allow_empty_column_selection=False,
        init_cell_selection_weights_to_zero=True,
        temperature=0.0352513,
        cell_select_pref=0.207951,
        answer_loss_cutoff=0.664694,
        huber_loss_delta=0.121194,
    ),
    num_steps=50_000,
    learning_rate=1.93581e-5,
    warmup_ratio=0.12896,
    **TAPAS_TRAINING,
)
