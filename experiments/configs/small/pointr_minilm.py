"""PointR on short tables, from the weights of a small encoder, on a CPU.

    python -m experiments.create_linked_corpus --output_dir=out/linked_corpus
    python -m experiments.pointr --config=pointr_minilm --input_dir=out/linked_corpus \
        --output_dir=out/pointr --eval_splits=test --vocab_file=minilm/vocab.txt \
        --point_checkpoint=out/mlm_minilm --read_checkpoint=minilm

out/mlm_minilm is the run of mlm_minilm. The baselines that know only the table or only the
passages are --config.inputs.evidence=table and =passages.

Hardware: 1 CPU core with AMX.
Time: 40 minutes beside other work, half of them to train the pointer.
Score: 93.5 % exact match on the 1,800 test questions of the generated corpus; with the table alone
22.2 %, with the passages alone 35.6 %.
"""

import dataclasses
from typing import Any

from experiments.configs._shared import MINILM, POINTING
from mate_tf.config import AttentionConfig
from mate_tf.models.span_reading import SpanReadingConfig
from mate_tf.pointr.inputs import PointRConfig
from mate_tf.training.config import SpanReadingTrainingConfig, TableQATrainingConfig

_BOTH: dict[str, Any] = dict(
    max_seq_length=512,
    batch_size=16,
    learning_rate=5e-5,
    head_learning_rate_ratio=5.0,
    warmup_ratio=0.05,
    eval_batch_size=32,
    checkpoint_interval=100,
    dtype="mixed_bfloat16",
)

CONFIG = PointRConfig(
    point=TableQATrainingConfig(
        encoder=MINILM,
        task=POINTING,
        length_buckets=(128, 160, 192, 256),
        num_steps=900,
        eval_questions=300,
        eval_interval=300,
        **_BOTH,
    ),
    read=SpanReadingTrainingConfig(
        encoder=dataclasses.replace(MINILM, attention=AttentionConfig("tapas")),
        task=SpanReadingConfig(max_span_length=10, hidden_size=384, output_dropout=0.0),
        length_buckets=(64, 96, 128, 256),
        num_steps=400,
        eval_interval=200,
        **_BOTH,
    ),
)
