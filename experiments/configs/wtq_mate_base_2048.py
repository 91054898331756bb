"""WikiTableQuestions with the MATE paper's base model and window, and TAPAS's training.

    python -m experiments.create_data --task=WTQ --input_dir=WikiTableQuestions \
        --output_dir=out/wtq_2048 --vocab_file=vocab.txt --max_seq_length=2048 \
        --trim_cells --original_conversion
    python -m experiments.finetune --config=wtq_mate_base_2048 --data_dir=out/wtq_2048 \
        --init_checkpoint=mate_base/model.ckpt --model_dir=out/wtq_mate_base_2048

Hardware: an accelerator; 512 examples of 2,048 tokens do not fit one device in one step, so lower
--config.batch_size there (and the learning rate with it).
Time: not measured.
Score: not measured; nobody has run it to the end here.
"""

from mate_tf.config import AttentionConfig, EncoderConfig
from mate_tf.tasks.table_qa import TableQAConfig
from mate_tf.training.config import FinetuneConfig

CONFIG = FinetuneConfig(
    # BERT base; buckets of 42 behind 116 global tokens, half of the heads in rows.
    encoder=EncoderConfig(
        original_ids=True,  # as the published checkpoints that it starts from
        attention=AttentionConfig(
            architecture="mate",
            evaluator="multi_view",
            row_heads_ratio=0.5,
            bucket_size=42,
            global_size=116,
        ),
    ),
    # TAPAS's values for WTQ.
    task=TableQAConfig(
        select_one_column=True,
        allow_empty_column_selection=False,
        init_cell_selection_weights_to_zero=True,
        temperature=0.0352513,
        cell_select_pref=0.207951,
        answer_loss_cutoff=0.664694,
        huber_loss_delta=0.121194,
    ),
    max_seq_length=2048,
    length_buckets=(256, 512, 1024),
    batch_size=512,
    num_steps=50_000,
    learning_rate=1.93581e-5,
    warmup_ratio=0.12896,
    dtype="mixed_bfloat16",
    eval_interval=2_000,
    checkpoint_interval=1_000,
)
