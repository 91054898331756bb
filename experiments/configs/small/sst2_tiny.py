"""The grammar-guided attention paper's model on SST-2 (section 4): 2 layers, 128 wide, 2 heads.

    python -m experiments.paper.compare_attention --config=sst2_tiny --data_dir=out/sst2 \
        --init_checkpoint=bert-tiny --output_dir=out/grammar_tiny \
        --architectures=tapas,grammar_hard,grammar_soft

with the data of sst2_minilm and the Hugging Face folder of prajjwal1/bert-tiny. Three epochs of the
6,920 sentences; the paper trained on 67,349: --config.num_steps=25256.

Hardware: 2 CPU cores.
Time: not run to its end here.
Score: the paper has 82.0 % with full attention, 82.0 % with hard and 81.7 % with soft rules.
"""

from experiments.configs._shared import SST2
from mate_tf.config import AttentionConfig, EncoderConfig
from mate_tf.training.config import ClassificationTrainingConfig

CONFIG = ClassificationTrainingConfig(
    encoder=EncoderConfig(
        hidden_size=128,
        num_layers=2,
        num_heads=2,
        intermediate_size=512,
        activation="gelu",
        position="absolute",
        attention=AttentionConfig(architecture="tapas"),
    ),
    batch_size=8,
    num_steps=2595,
    learning_rate=2e-5,
    # The paper uses Hugging Face's Trainer, which has no warm-up by default.
    warmup_ratio=0.0,
    eval_interval=865,
    checkpoint_interval=865,
    **SST2,
)
