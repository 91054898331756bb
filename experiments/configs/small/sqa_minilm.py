"""SQA from the weights of all-MiniLM-L6-v2, small enough for a CPU.

    python -m experiments.create_data --task=SQA --input_dir=SQA --output_dir=out/sqa_384 \
        --vocab_file=minilm/vocab.txt --max_seq_length=384 --drop_rows_to_fit
    python -m experiments.finetune --config=sqa_minilm --data_dir=out/sqa_384 \
        --init_checkpoint=minilm --model_dir=out/sqa_minilm

with `minilm` the folder of wtq_minilm, whose choices these are. --config.perturbed_copies=1 trains
on tables in random orders too.

Hardware: 2 CPU cores.
Time: not run on SQA here, whose data is not at hand; as wtq_minilm for as many steps.
Score: not run here.
"""

import dataclasses

from experiments.configs.small import wtq_minilm
from mate_tf.models.table_qa import TableQAConfig

CONFIG = dataclasses.replace(
    wtq_minilm.CONFIG,
    # Nothing is computed from the cells that answer.
    task=TableQAConfig(num_aggregation_labels=0, temperature=0.1, output_dropout=0.0),
)
