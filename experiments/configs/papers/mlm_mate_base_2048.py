"""MATE with linear attention, pre-trained at the length at which it is used. In no paper.

    python -m experiments.create_pretraining_data --task=TEXTS --input_dir=my_tables \
        --output_dir=out/mlm_lengths --vocab_file=bert_base/vocab.txt \
        --max_seq_lengths=128,512,2048 --num_shards=64
    python -m experiments.pretrain --config=mlm_mate_base_2048 --data_dir=out/mlm_lengths \
        --init_checkpoint=bert_base --model_dir=out/mlm_mate_base_2048

Batches of 128, 512 and 2,048 tokens take turns, with 512, 128 and 32 examples: always as many
tokens as in a batch of mlm_mate_base.

Hardware: as mlm_mate_base.
Time: not measured.
Score: not run here.
"""

from experiments.configs._shared import BERT_BASE, pretraining
from mate_tf.config import AttentionConfig

CONFIG = pretraining(
    BERT_BASE,
    AttentionConfig("mate", evaluator="multi_view"),
    max_seq_length=2048,
    length_buckets=(128, 512),
    batch_size=32,
)
