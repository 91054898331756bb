"""The default model, stage 3 of 4: synthetic questions whose cells and aggregations are known.

    scripts/train_default_model.sh WikiTableQuestions minilm questions

makes 69,589 questions about excerpts of the first stage's tables, and runs

    python -m experiments.finetune --config=default_questions \
        --data_dir=out/default/questions_data --init_checkpoint=out/default/statements_weights \
        --reset_heads --model_dir=out/default/questions

Hardware: 2 CPU cores with AMX.
Time: 33 minutes beside other work.
Score: 73.5 % of 400 synthetic questions about held-out tables.
"""

from mate_tf.models.table_qa import TableQAConfig
from mate_tf.training.config import TableQATrainingConfig
from mate_tf.training.starting_points import ENCODER

CONFIG = TableQATrainingConfig(
    encoder=ENCODER,
    # The cells and the aggregation are known here; the rest is as in the next stage.
    task=TableQAConfig(
        use_answer_as_supervision=False,
        init_cell_selection_weights_to_zero=True,
        temperature=0.1,
        output_dropout=0.0,
    ),
    max_seq_length=192,
    length_buckets=(64, 96, 128, 160),
    batch_size=32,
    num_steps=1_600,
    learning_rate=1e-4,
    head_learning_rate_ratio=5.0,
    warmup_ratio=0.05,
    dtype="mixed_bfloat16",
    eval_batch_size=32,
    eval_questions=400,
    eval_interval=400,
    checkpoint_interval=100,
)
