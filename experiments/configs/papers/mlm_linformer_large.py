"""The pre-training of the MATE paper's Linformer (appendix A.1).

    python -m experiments.create_pretraining_data --task=TEXTS --input_dir=my_tables \
        --output_dir=out/mlm_2048 --vocab_file=bert_large/vocab.txt --max_seq_lengths=2048 \
        --num_shards=64
    python -m experiments.pretrain --config=mlm_linformer_large --data_dir=out/mlm_2048 \
        --init_checkpoint=bert_large --model_dir=out/mlm_linformer_large

Its projections have one length, so it is pre-trained at the 2,048 tokens of its use. Length, batch
and steps are the paper's.

Hardware: 32 cores of Cloud TPU v3 in the paper.
Time: not measured here; 2,000,000 steps, 12 days in the paper.
Score: not run here; no score of the pre-training itself is published.
"""

from experiments.configs._shared import BERT_LARGE, pretraining
from mate_tf.config import AttentionConfig

CONFIG = pretraining(
    BERT_LARGE,
    AttentionConfig("linformer", sequence_length=2048, projected_length=256),
    max_seq_length=2048,
    batch_size=128,
    num_steps=2_000_000,
)
