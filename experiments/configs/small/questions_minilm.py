"""Intermediate pre-training on synthetic questions, to compare architectures, on a CPU.

    python -m experiments.create_questions --task=WTQ --input_dir=WikiTableQuestions \
        --output_dir=out/questions --vocab_file=minilm/vocab.txt --questions_per_table=12 \
        --max_seq_length=192 --parts=train=90,dev=10
    python -m experiments.create_data --task=JSONL --input_dir=out/questions \
        --output_dir=out/questions_256 --vocab_file=minilm/vocab.txt --max_seq_length=256
    python -m experiments.paper.compare_attention --config=questions_minilm \
        --data_dir=out/questions_256 --init_checkpoint=out/default/words_weights --reset_heads \
        --architectures=tapas,mate_exact --seeds=1 --output_dir=out/compare_questions

out/default/words_weights is the default model's first stage (scripts/train_default_model.sh). This
is a quarter of the steps of default_questions.

Hardware: 1 CPU core with AMX.
Time: 15 to 25 minutes a run, TableETC 37.
Score: 54.5 % of 400 questions with mate_exact, 28.5 % with tapas; others in docs/results.md.
"""

import dataclasses

from experiments.configs.default.default_questions import CONFIG as _DEFAULT_QUESTIONS

CONFIG = dataclasses.replace(
    _DEFAULT_QUESTIONS,
    # Longer records, so that a Linformer with these weights reads WikiTableQuestions at 256.
    max_seq_length=256,
    length_buckets=(64, 96, 128, 160, 192),
    # TableFormer's biases start at zero; at the encoder's rate 400 steps leave them below 0.05.
    attention_bias_learning_rate_ratio=100.0,
    num_steps=400,
    eval_interval=400,
)
