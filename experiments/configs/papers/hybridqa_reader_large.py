"""HybridQA's reader: the second stage of the MATE paper's PointR (section 4.2).

    python -m experiments.create_data --task=JSONL --input_dir=hybridqa_cells \
        --output_dir=out/hybridqa_cells --vocab_file=bert_large/vocab.txt --trim_cells \
        --label_answer_spans
    python -m experiments.finetune --config=hybridqa_reader_large --data_dir=out/hybridqa_cells \
        --init_checkpoint=bert_large --model_dir=out/hybridqa_reader_large

with `hybridqa_cells` questions in the format of docs/own_data.md, whose table is a single cell: the
one that the first stage chose, its text followed by the sentences of its links;
experiments/pointr.py makes such records. `bert_large` is the Hugging Face folder of
bert-large-uncased, from which the paper starts. The values are the paper's (appendix A.2) and the
release's. A span's score is the release's, linear in its first and last token's vectors; the
paper's is of a multi-layer perceptron, whose size it does not give: --config.task.hidden_size=1024
makes one.

Hardware: the paper trained on 32 cores of Cloud TPU v3; where 512 examples of 512 tokens do not
fit, --config.gradient_accumulation_steps=64 computes them in parts.
Time: not measured; 25,000 steps, six hours in the paper. Scores are medians of 5 seeds.
Score: not run here. The MATE paper (table 5) has 63.4 % exact match and 71.0 % F1 on dev with the
cells of hybridqa_mate_large.
"""

import dataclasses

from experiments.configs.papers._base import BERT_LARGE, TAPAS_TRAINING
from mate_tf.models.span_reading import SpanReadingConfig
from mate_tf.training.config import SpanReadingTrainingConfig

CONFIG = SpanReadingTrainingConfig(
    # BERT's own weights count positions through the whole sequence.
    encoder=dataclasses.replace(BERT_LARGE, position="absolute"),
    task=SpanReadingConfig(kind="span", max_span_length=10),
    num_steps=25_000,
    learning_rate=5e-5,
    warmup_ratio=0.01,
    **TAPAS_TRAINING,
)
