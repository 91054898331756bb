"""WikiTableQuestions with TAPAS's base model and the release's values.

    python -m experiments.create_data --task=WTQ --input_dir=WikiTableQuestions \
        --output_dir=out/wtq --vocab_file=tapas_base/vocab.txt --trim_cells --original_conversion
    python -m experiments.finetune --config=wtq_base --data_dir=out/wtq \
        --init_checkpoint=out/wikisql_base --model_dir=out/wtq_base

The release's chain is intermediate pre-training, SQA, WikiSQL, WTQ: run sqa_base, wikisql_base and
this one, each from the run before. The TableFormer and MATE papers go from SQA to WTQ:
--init_checkpoint=out/sqa_base. --architecture=mate in each run of the chain trains MATE.

Hardware: an accelerator.
Time: not measured; 50,000 steps.
Score: not run here. Release, dev: 46.4 % after its chain. TableFormer paper, base, after SQA:
44.8 % on dev, 45.1 % on test. MATE paper, large, test: 46.6 % for TAPAS, 51.5 % for MATE.
"""

from experiments.configs._shared import BERT_BASE, TAPAS_TRAINING
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
