"""The presets of the papers and of the TAPAS release; README.md says how each is run."""

import dataclasses
from typing import Any

from mate_tf.config import AttentionConfig, EncoderConfig
from mate_tf.pointr.answering import PointRConfig
from mate_tf.task_configs import ClassificationConfig, SpanReadingConfig, TableQAConfig
from mate_tf.training.config import (
    ClassificationTrainingConfig,
    MaskedLMTrainingConfig,
    SpanReadingTrainingConfig,
    TableQATrainingConfig,
)

# Like the published checkpoints whose positions restart in each cell ("reset").
BERT_BASE = EncoderConfig(
    original_ids=True, position="per_cell", attention=AttentionConfig(architecture="tapas")
)
_LARGE: dict[str, Any] = dict(hidden_size=1024, num_layers=24, num_heads=16, intermediate_size=4096)
BERT_LARGE = dataclasses.replace(BERT_BASE, **_LARGE)
# Every pair that row heads and column heads allow; up to 1,000 tokens the fastest evaluator.
MATE_DENSE = AttentionConfig("mate", evaluator="dense", bucket_size=0)
# The window of the MATE paper: buckets of 42 behind 116 global tokens, half of the heads in rows.
MATE_WINDOW = AttentionConfig("mate", evaluator="multi_view", bucket_size=42, global_size=116)
LONG: dict[str, Any] = dict(max_seq_length=2048, length_buckets=(256, 512, 1024))

# The release clips gradients at 10 in all tasks but SQA. After a norm of 1 this never acts.
TAPAS_TRAINING: dict[str, Any] = dict(
    max_seq_length=512,
    length_buckets=(128, 256),
    batch_size=512,
    max_gradient_value=10.0,
    dtype="mixed_bfloat16",
    eval_interval=2_000,
    checkpoint_interval=1_000,
    keep_checkpoints=5,
)


def steps(
    num_steps: int, learning_rate: float, warmup_ratio: float, **others: Any
) -> dict[str, Any]:
    """How long a run takes and at which rates, and other values such as eval_interval."""
    rates = dict(learning_rate=learning_rate, warmup_ratio=warmup_ratio)
    return dict(num_steps=num_steps, **rates, **others)


def _pretraining(
    encoder: EncoderConfig, attention: AttentionConfig, **changes: Any
) -> MaskedLMTrainingConfig:
    """The MATE paper's values for MATE (appendix A.1), and what other models change.

    The paper does not give the learning rate and the warm-up; these are the defaults of the
    release's program.
    """
    values: dict[str, Any] = dict(
        max_seq_length=128,
        batch_size=512,
        **steps(1_000_000, 5e-5, 0.01, eval_interval=10_000, checkpoint_interval=1_000),
        dtype="mixed_bfloat16",
        eval_examples=10_000,
        keep_checkpoints=5,
    )
    encoder = dataclasses.replace(encoder, attention=attention)
    return MaskedLMTrainingConfig(encoder=encoder, **values | changes)


_SQA_BASE = TableQATrainingConfig(
    encoder=BERT_BASE,
    # SQA's answers are cells; nothing is computed from them. A record may have none.
    task=TableQAConfig(
        operators=(),
        mask_examples_without_labels=True,
        select_one_column=True,
        allow_empty_column_selection=False,
        init_cell_selection_weights_to_zero=False,
    ),
    **TAPAS_TRAINING
    | dict(
        batch_size=128,
        **steps(200_000, 1.25e-5, 0.01),
        max_gradient_value=None,
    ),
)
_WIKISQL_BASE = TableQATrainingConfig(
    encoder=BERT_BASE,
    task=TableQAConfig(
        select_one_column=False,
        allow_empty_column_selection=False,
        init_cell_selection_weights_to_zero=False,
        temperature=0.107515,
        cell_select_pref=0.611754,
        answer_loss_cutoff=0.185567,
        huber_loss_delta=1265.74,
    ),
    **steps(50_000, 6.17164e-5, 0.1424),
    **TAPAS_TRAINING,
)
_WIKISQL_SUPERVISED_BASE = TableQATrainingConfig(
    encoder=BERT_BASE,
    task=TableQAConfig(
        use_answer_as_supervision=False,
        select_one_column=True,
        allow_empty_column_selection=True,
        init_cell_selection_weights_to_zero=True,
        temperature=0.763141,
        # The release sets the next three too, but a loss on known cells does not use them.
        cell_select_pref=0.903421,
        answer_loss_cutoff=36.4519,
        huber_loss_delta=222.088,
    ),
    **steps(50_000, 4.12331e-5, 0.168479),
    **TAPAS_TRAINING,
)
_WTQ_BASE = TableQATrainingConfig(
    encoder=BERT_BASE,
    task=TableQAConfig(
        select_one_column=True,
        allow_empty_column_selection=False,
        init_cell_selection_weights_to_zero=True,
        temperature=0.0352513,
        cell_select_pref=0.207951,
        answer_loss_cutoff=0.664694,
        huber_loss_delta=0.121194,
    ),
    **steps(50_000, 1.93581e-5, 0.12896),
    **TAPAS_TRAINING,
)
_TABFACT_BASE = ClassificationTrainingConfig(
    encoder=dataclasses.replace(BERT_BASE, attention_dropout=0.0, hidden_dropout=0.07),
    # The release has no dropout on the pooled output.
    task=ClassificationConfig(
        num_classes=2, class_names=("refuted", "entailed"), output_dropout=0.0
    ),
    **steps(80_000, 2e-5, 0.05),
    **TAPAS_TRAINING,
)
# Intermediate pre-training on synthetic statements and counterfactuals. The release names no values
# of its own; these are TabFact's.
_STATEMENTS_BASE = dataclasses.replace(_TABFACT_BASE, eval_interval=10_000)
# Both stages of PointR (MATE paper, appendix A.2). The release points with another loss.
_POINT = TableQATrainingConfig(
    encoder=dataclasses.replace(BERT_LARGE, attention=MATE_WINDOW),
    task=TableQAConfig(
        operators=(),
        select_one_column=False,
        allow_empty_column_selection=False,
        cell_cross_entropy=True,
    ),
    **TAPAS_TRAINING
    | dict(
        max_seq_length=2048,
        length_buckets=(512, 1024),
        batch_size=128,
        **steps(80_000, 1e-5, 0.05),
        eval_batch_size=8,
    ),
)
_READ = SpanReadingTrainingConfig(
    # BERT's weights count positions through the whole sequence.
    encoder=dataclasses.replace(BERT_LARGE, position="absolute"),
    task=SpanReadingConfig(kind="span", max_span_length=10),
    **steps(25_000, 5e-5, 0.01),
    **TAPAS_TRAINING,
)
_OTHER_PRETRAINING: dict[str, Any] = dict(max_seq_length=2048, num_steps=2_000_000)

_OF_BOTH_SIZES: dict[str, Any] = {
    "statements": _STATEMENTS_BASE,
    "sqa": _SQA_BASE,
    "wikisql": _WIKISQL_BASE,
    "wikisql_supervised": _WIKISQL_SUPERVISED_BASE,
    "wtq": _WTQ_BASE,
    "tabfact": _TABFACT_BASE,
}

CONFIGS = {
    **{f"{name}_base": config for name, config in _OF_BOTH_SIZES.items()},
    # The release trains both sizes alike.
    **{
        f"{name}_large": dataclasses.replace(
            config, encoder=dataclasses.replace(config.encoder, **_LARGE)
        )
        for name, config in _OF_BOTH_SIZES.items()
    },
    "wtq_mate_base_2048": dataclasses.replace(
        _WTQ_BASE, encoder=dataclasses.replace(BERT_BASE, attention=MATE_WINDOW), **LONG
    ),
    "hybridqa_mate_large": _POINT,
    "hybridqa_reader_large": _READ,
    "pointr_mate_large": PointRConfig(
        point=_POINT,
        # The paper does not give the size of its perceptron. This is the encoder's.
        read=dataclasses.replace(_READ, task=dataclasses.replace(_READ.task, hidden_size=1024)),
    ),
    "mlm_mate_base": _pretraining(BERT_BASE, MATE_DENSE),
    "mlm_mate_large": _pretraining(BERT_LARGE, MATE_DENSE),
    "mlm_mate_base_2048": _pretraining(
        BERT_BASE,
        AttentionConfig("mate", evaluator="multi_view"),
        max_seq_length=2048,
        length_buckets=(128, 512),
        batch_size=32,
    ),
    "mlm_linformer_large": _pretraining(
        BERT_LARGE,
        AttentionConfig("linformer", sequence_length=2048, projected_length=256),
        batch_size=128,
        **_OTHER_PRETRAINING,
    ),
    "mlm_table_etc_large": _pretraining(
        BERT_LARGE,
        AttentionConfig("table_etc", share_global_tokens=True),
        batch_size=32,
        **_OTHER_PRETRAINING,
    ),
}
