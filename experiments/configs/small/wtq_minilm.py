"""WikiTableQuestions from all-MiniLM-L6-v2, in three quarters of an hour on a CPU.

    python -m experiments.create_data --task=WTQ --input_dir=WikiTableQuestions \
        --output_dir=out/wtq_384 --vocab_file=minilm/vocab.txt --max_seq_length=384
    python -m experiments.finetune --config=wtq_minilm --data_dir=out/wtq_384 \
        --init_checkpoint=minilm --model_dir=out/wtq_minilm
    python -m experiments.predict --model=out/wtq_minilm --data=out/wtq_384/dev.jsonl \
        --drop_rows_to_fit --output=out/wtq_minilm_dev.jsonl
    python -m experiments.evaluate --predictions=out/wtq_minilm_dev.jsonl \
        --data=out/wtq_384/dev.jsonl

Evaluations during training ask the first 300 questions. Questions that do not fit into 384 tokens
count as wrong; predict answers all 2,831, with up to 512 tokens.

Hardware: 2 CPU cores without bfloat16.
Time: 45 minutes (79 CPU minutes) beside other work; the last evaluation takes 6 minutes.
Score: 12.0 % denotation accuracy on dev. The best constant answer has 5.1 %.
"""

from experiments.configs._shared import MINILM
from mate_tf.training.config import TableQATrainingConfig
from mate_tf.training.starting_points import STARTING_POINTS

CONFIG = TableQATrainingConfig(
    encoder=MINILM,
    task=STARTING_POINTS["table_questions"].task,
    max_seq_length=384,
    length_buckets=(128, 192, 256),
    batch_size=16,
    num_steps=640,
    learning_rate=1e-4,
    # The pooler is almost untrained and the heads are new. At the encoder's rate they learn
    # nothing in 200 steps; at a higher rate the encoder forgets.
    head_learning_rate_ratio=20.0,
    warmup_ratio=0.1,
    eval_batch_size=16,
    eval_questions=300,
    eval_interval=160,
    checkpoint_interval=80,
)
