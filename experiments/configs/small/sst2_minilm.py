"""SST-2 from all-MiniLM-L6-v2: full and grammar-guided attention on a CPU.

    python -m experiments.create_data --task=SST2 --input_dir=sst2 --output_dir=out/sst2 \
        --vocab_file=minilm/vocab.txt --max_seq_length=128 --tagger=textblob
    python -m experiments.paper.compare_attention --config=sst2_minilm --data_dir=out/sst2 \
        --init_checkpoint=minilm --output_dir=out/grammar \
        --architectures=tapas,grammar_hard,grammar_soft

`sst2` is a folder with train.tsv and dev.tsv (6,920 and 872 sentences).

Hardware: 2 CPU cores.
Time: 6 minutes a run.
Score: 86.7 % accuracy on dev with full attention in bfloat16; others in docs/results.md.
"""

import dataclasses

from experiments.configs._shared import MINILM, SST2
from mate_tf.config import AttentionConfig
from mate_tf.training.config import ClassificationTrainingConfig

CONFIG = ClassificationTrainingConfig(
    encoder=dataclasses.replace(
        MINILM,
        hidden_dropout=0.1,
        attention_dropout=0.1,
        attention=AttentionConfig(architecture="tapas"),
    ),
    batch_size=32,
    num_steps=432,
    learning_rate=1e-4,
    head_learning_rate_ratio=10.0,
    warmup_ratio=0.1,
    eval_interval=216,
    checkpoint_interval=108,
    **SST2,
)
