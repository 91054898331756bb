"""The pre-training of the Linformer that the MATE paper compares with (appendix A.1).

    python -m experiments.create_pretraining_data --task=TEXTS --input_dir=my_tables \
        --output_dir=out/mlm_2048 --vocab_file=bert_large/vocab.txt --max_seq_lengths=2048 \
        --num_shards=64
    python -m experiments.pretrain --config=mlm_linformer_large --data_dir=out/mlm_2048 \
        --init_checkpoint=bert_large --model_dir=out/mlm_linformer_large

with `bert_large` the weights of BERT uncased. Its projections are of one length, so that it is
pre-trained at the 2,048 tokens that it is used with. Length, batch and steps are the paper's; it
does not give the learning rate and the warm-up, which are the release's defaults.

Hardware: the paper trained on 32 cores of Cloud TPU v3; where 128 examples of 2,048 tokens do not
fit, --config.gradient_accumulation_steps=32 computes them in parts.
Time: not measured; 2,000,000 steps, 12 days in the paper.
Score: not run here; none is published for the pre-training itself.
"""

import dataclasses

from experiments.configs.papers._base import BERT_LARGE, PRETRAINING
from mate_tf.config import AttentionConfig
from mate_tf.training.config import MaskedLMTrainingConfig

CONFIG = MaskedLMTrainingConfig(
    encoder=dataclasses.replace(
        BERT_LARGE,
        attention=AttentionConfig(
            architecture="linformer", sequence_length=2048, projected_length=256
        ),
    ),
    **PRETRAINING | dict(max_seq_length=2048, batch_size=128, num_steps=2_000_000),
)
