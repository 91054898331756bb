"""WikiSQL from all-MiniLM-L6-v2, small enough for a CPU.

    python -m experiments.create_data --task=WIKISQL_SUPERVISED --input_dir=WikiSQL \
        --output_dir=out/wikisql_384 --vocab_file=minilm/vocab.txt --max_seq_length=384 \
        --drop_rows_to_fit
    python -m experiments.finetune --config=wikisql_minilm --data_dir=out/wikisql_384 \
        --init_checkpoint=minilm --model_dir=out/wikisql_minilm

The queries are the supervision. To learn from answers alone: --task=WIKISQL and
--config.task.use_answer_as_supervision=true.

Hardware: 2 CPU cores.
Time: not run here; about that of wtq_minilm for as many steps.
Score: not run here.
"""

import dataclasses

from experiments.configs.small import wtq_minilm
from mate_tf.models.table_qa import TableQAConfig

CONFIG = dataclasses.replace(
    wtq_minilm.CONFIG,
    task=TableQAConfig(
        use_answer_as_supervision=False,
        allow_empty_column_selection=True,
        temperature=0.1,
        output_dropout=0.0,
    ),
)
