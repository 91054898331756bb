"""WikiSQL from answers alone, with TAPAS's base model and the release's values.

    python -m experiments.create_data --task=WIKISQL --input_dir=WikiSQL --output_dir=out/wikisql \
        --vocab_file=tapas_base/vocab.txt --trim_cells --original_conversion
    python -m experiments.finetune --config=wikisql_base --data_dir=out/wikisql \
        --init_checkpoint=out/sqa_base --model_dir=out/wikisql_base

The release starts it from the run of sqa_base; `tapas_base` works too.

Hardware: an accelerator.
Time: not measured; 50,000 steps.
Score: not run here. Release, dev: 88.6 %, by its own reading of the queries.
"""

from experiments.configs._shared import BERT_BASE, TAPAS_TRAINING
from mate_tf.models.table_qa import TableQAConfig
from mate_tf.training.config import TableQATrainingConfig

CONFIG = TableQATrainingConfig(
    encoder=BERT_BASE,
    task=TableQAConfig(
        select_one_column=False,
        allow_empty_column_selection=False,
        init_cell_selection_weights_to_zero=False,
        temperature=0.107515,
        cell_select_pref=0.611754,
        answer_loss_cutoff=0.185567,
        huber_loss_delta=1265.74,
    ),
    num_steps=50_000,
    learning_rate=6.17164e-5,
    warmup_ratio=0.1424,
    **TAPAS_TRAINING,
)
