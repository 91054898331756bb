"""The default model, stage 1 of 4: words and cells of tables filled in, on a CPU.

    scripts/train_default_model.sh WikiTableQuestions minilm words

makes the data and runs

    python -m experiments.pretrain --config=default_words --data_dir=out/default/words_data \
        --init_checkpoint=minilm --model_dir=out/default/words

from the weights of all-MiniLM-L6-v2, on nine tenths of WikiTableQuestions' training tables and
their questions; the evaluations are on the other tenth, from which no stage learns. Positions
restart in each cell, which is why what BERT's weights know of the first position goes to [CLS]
(mate_tf/weights/loading.py): without that 32.5 % are right after 1,500 steps.

Hardware: 2 CPU cores with AMX; the run had about 1.3 of them.
Time: 17 minutes, other work running beside.
Score: 41.5 % of the masked tokens (36.7 % after a third of the steps). Whether the table is the
text's it has not learned (50.3 %).
"""

import dataclasses

from experiments.configs.small.mlm_minilm import CONFIG as _MLM_MINILM
from mate_tf.presets import with_architecture

CONFIG = dataclasses.replace(
    _MLM_MINILM,
    # Every pair that MATE's pattern allows, and positions that restart in each cell, so that a
    # table may be longer than the 512 tokens that MiniLM knows.
    encoder=dataclasses.replace(
        with_architecture(_MLM_MINILM.encoder, "mate_exact"), position="per_cell"
    ),
    num_steps=1_200,
    eval_examples=1_000,
    eval_interval=400,
    checkpoint_interval=100,
)
