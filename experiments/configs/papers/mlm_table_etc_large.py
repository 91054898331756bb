"""The pre-training of the MATE paper's TableETC (appendix A.1).

    python -m experiments.pretrain --config=mlm_table_etc_large --data_dir=out/mlm_2048 \
        --init_checkpoint=bert_large --model_dir=out/mlm_table_etc_large

with the data of mlm_linformer_large. Batch and steps are the paper's. It does not give the length;
the small batch suggests the Linformer's 2,048 tokens. Rows beyond the 127 that have a global token
share them.

Hardware: 32 cores of Cloud TPU v3 in the paper.
Time: not measured here; 2,000,000 steps.
Score: not run here; no score of the pre-training itself is published.
"""

from experiments.configs._shared import BERT_LARGE, pretraining
from mate_tf.config import AttentionConfig

CONFIG = pretraining(
    BERT_LARGE,
    AttentionConfig("table_etc", share_global_tokens=True),
    max_seq_length=2048,
    batch_size=32,
    num_steps=2_000_000,
)
