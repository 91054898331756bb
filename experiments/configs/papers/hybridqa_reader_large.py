"""HybridQA's reader: the second stage of the MATE paper's PointR (section 4.2).

    python -m experiments.create_data --task=JSONL --input_dir=hybridqa_cells \
        --output_dir=out/hybridqa_cells --vocab_file=bert_large/vocab.txt --trim_cells \
        --label_answer_spans
    python -m experiments.finetune --config=hybridqa_reader_large --data_dir=out/hybridqa_cells \
        --init_checkpoint=bert_large --model_dir=out/hybridqa_reader_large

Each table in `hybridqa_cells` is one cell, which the first stage chose, followed by the sentences
of its links; `experiments.pointr` makes such records. The values are the paper's (appendix A.2).
A span's score is linear, as in the release; --config.task.hidden_size=1024 makes a perceptron.

Hardware: 32 cores of Cloud TPU v3 in the paper.
Time: not measured here; 25,000 steps, six hours in the paper.
Score: not run here. MATE paper, table 5, dev: 63.4 % exact match and 71.0 % F1 with the cells of
hybridqa_mate_large.
"""

import dataclasses

from experiments.configs._shared import BERT_LARGE, TAPAS_TRAINING
from mate_tf.models.span_reading import SpanReadingConfig
from mate_tf.training.config import SpanReadingTrainingConfig

CONFIG = SpanReadingTrainingConfig(
    # BERT's weights count positions through the whole sequence.
    encoder=dataclasses.replace(BERT_LARGE, position="absolute"),
    task=SpanReadingConfig(kind="span", max_span_length=10),
    num_steps=25_000,
    learning_rate=5e-5,
    warmup_ratio=0.01,
    **TAPAS_TRAINING,
)
