"""The pre-training of the TableETC that the MATE paper compares with (appendix A.1).

    python -m experiments.create_pretraining_data --task=TEXTS --input_dir=my_tables \
        --output_dir=out/mlm_2048 --vocab_file=bert_large/vocab.txt --max_seq_lengths=2048 \
        --num_shards=64
    python -m experiments.pretrain --config=mlm_table_etc_large --data_dir=out/mlm_2048 \
        --init_checkpoint=bert_large --model_dir=out/mlm_table_etc_large

with `bert_large` the weights of BERT uncased. Batch and steps are the paper's, which does not say
its length: 2,048 tokens, the Linformer's, are why a batch would have to be so small. Learning rate
and warm-up are the release's defaults. Rows beyond the 127 global tokens for them begin anew with
the first, for a table may have more.

Hardware: the paper trained on 32 cores of Cloud TPU v3; where 32 examples of 2,048 tokens do not
fit, --config.gradient_accumulation_steps=16 computes them in parts.
Time: not measured; 2,000,000 steps.
Score: not run here; none is published for the pre-training itself.
"""

import dataclasses

from experiments.configs.papers._base import BERT_LARGE, PRETRAINING
from mate_tf.config import AttentionConfig
from mate_tf.training.config import MaskedLMTrainingConfig

CONFIG = MaskedLMTrainingConfig(
    encoder=dataclasses.replace(
        BERT_LARGE,
        attention=AttentionConfig(architecture="table_etc", share_global_tokens=True),
    ),
    **PRETRAINING | dict(max_seq_length=2048, batch_size=32, num_steps=2_000_000),
)
