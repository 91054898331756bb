"""WikiSQL with its queries as supervision, with TAPAS's base model and the release's values.

    python -m experiments.create_data --task=WIKISQL_SUPERVISED --input_dir=WikiSQL \
        --output_dir=out/wikisql_supervised --vocab_file=tapas_base/vocab.txt --trim_cells \
        --original_conversion
    python -m experiments.finetune --config=wikisql_supervised_base \
        --data_dir=out/wikisql_supervised --init_checkpoint=tapas_base \
        --model_dir=out/wikisql_supervised_base

with the weights of sqa_base. --architecture=mate trains MATE.

Hardware: as wikisql_base.
Time: not measured; 50,000 steps. Scores are medians of 5 seeds.
Score: not run here, and the release names none for this model.
"""

from experiments.configs.papers._base import BERT_BASE, TAPAS_TRAINING
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
        # The next three are the release's too, but no part of a loss that is told the cells.
        cell_select_pref=0.903421,
        answer_loss_cutoff=36.4519,
        huber_loss_delta=222.088,
    ),
    num_steps=50_000,
    learning_rate=4.12331e-5,
    warmup_ratio=0.168479,
    **TAPAS_TRAINING,
)
