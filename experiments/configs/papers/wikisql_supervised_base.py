"""WikiSQL with its queries as supervision, TAPAS's base model and the release's values.

    python -m experiments.create_data --task=WIKISQL_SUPERVISED --input_dir=WikiSQL \
        --output_dir=out/wikisql_supervised --vocab_file=tapas_base/vocab.txt --trim_cells \
        --original_conversion
    python -m experiments.finetune --config=wikisql_supervised_base \
        --data_dir=out/wikisql_supervised --init_checkpoint=tapas_base \
        --model_dir=out/wikisql_supervised_base

Hardware: an accelerator.
Time: not measured; 50,000 steps.
Score: not run here; the release gives none for this model.
"""

from experiments.configs._shared import BERT_BASE, TAPAS_TRAINING
from mate_tf.models.table_qa import TableQAConfig
from mate_tf.training.config import TableQATrainingConfig

CONFIG = TableQATrainingConfig(
    encoder=BERT_BASE,
    task=TableQAConfig(
        use_answer_as_supervision=False,
        select_one_column=True,
        allow_empty_column_selection=True,
        init_cell_selection_weights_to_zero=True,
        temperature=0.763141,
        # The release sets the next three too, but a loss on known cells does not use them.
        cell_select_pref=0.903421,
        answer_loss_cutoff=36.4519,
        huber_loss_delta=222.088,
    ),
    num_steps=50_000,
    learning_rate=4.12331e-5,
    warmup_ratio=0.168479,
    **TAPAS_TRAINING,
)
