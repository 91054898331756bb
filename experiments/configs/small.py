"""The presets for two CPU cores, and the default model's; README.md says how each is run."""

import dataclasses
from typing import Any

from experiments.configs.papers import LONG, MATE_DENSE, MATE_WINDOW, steps
from mate_tf.config import AttentionConfig, EncoderConfig
from mate_tf.pointr.answering import PointRConfig
from mate_tf.presets import with_architecture
from mate_tf.task_configs import ClassificationConfig, SpanReadingConfig, TableQAConfig
from mate_tf.training.config import (
    ClassificationTrainingConfig,
    MaskedLMTrainingConfig,
    SpanReadingTrainingConfig,
    TableQATrainingConfig,
)
from mate_tf.training.starting_points import ENCODER, STARTING_POINTS

MINILM = dataclasses.replace(
    ENCODER,
    # These weights know positions counted through the sequence. Positions that restart in each
    # cell can be learned too, but not in half an hour.
    position="absolute",
    attention=MATE_DENSE,
)
_FULL = AttentionConfig("tapas")
_ANSWERS = STARTING_POINTS["table_questions"]

_DEFAULT_QUESTIONS = TableQATrainingConfig(
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
    **steps(1_600, 1e-4, 0.05, eval_interval=400, checkpoint_interval=100),
    head_learning_rate_ratio=5.0,
    dtype="mixed_bfloat16",
    eval_batch_size=32,
    eval_questions=400,
)
_STATEMENTS = ClassificationTrainingConfig(
    encoder=MINILM,
    task=ClassificationConfig(
        num_classes=2, class_names=("refuted", "entailed"), output_dropout=0.0
    ),
    max_seq_length=96,
    length_buckets=(32, 48, 64),
    batch_size=32,
    # At five times this rate all tokens become alike before anything is learned.
    **steps(2_400, 2e-5, 0.05, eval_interval=300, checkpoint_interval=50),
    head_learning_rate_ratio=5.0,
    dtype="mixed_bfloat16",
    eval_batch_size=64,
)
_MASKED_WORDS = MaskedLMTrainingConfig(
    encoder=MINILM,
    max_seq_length=128,
    batch_size=16,
    **steps(1_600, 2e-4, 0.05, eval_interval=200, checkpoint_interval=50),
    # MiniLM has no head for masked words, and the pooler gets a new task.
    head_learning_rate_ratio=5.0,
    eval_batch_size=32,
    eval_examples=2_000,
    dtype="mixed_bfloat16",
)

_WTQ = TableQATrainingConfig(
    encoder=MINILM,
    task=_ANSWERS.task,
    max_seq_length=384,
    length_buckets=(128, 192, 256),
    batch_size=16,
    **steps(640, 1e-4, 0.1, eval_interval=160, checkpoint_interval=80),
    # The pooler is almost untrained and the heads are new. At the encoder's rate they learn
    # nothing in 200 steps; at a higher rate the encoder forgets.
    head_learning_rate_ratio=20.0,
    eval_batch_size=16,
    eval_questions=300,
)
_WTQ_2048 = dataclasses.replace(
    _WTQ,
    # MiniLM knows 512 positions, so for longer input they restart in each cell.
    encoder=dataclasses.replace(MINILM, position="per_cell", attention=MATE_WINDOW),
    **LONG,
    num_steps=200,
    eval_batch_size=8,
    eval_questions=None,
    eval_interval=200,
    checkpoint_interval=25,
)
_TABFACT = ClassificationTrainingConfig(
    encoder=dataclasses.replace(MINILM, attention=AttentionConfig()),
    task=ClassificationConfig(num_classes=2, class_names=("refuted", "entailed")),
    max_seq_length=256,
    length_buckets=(128, 192),
    batch_size=16,
    # At three times this rate all tokens become alike before anything is learned.
    **steps(200, 3e-5, 0.1, eval_interval=200, checkpoint_interval=50),
    head_learning_rate_ratio=5.0,
    eval_batch_size=32,
)

# The answer is in cells of any columns; nothing is computed from them.
_POINTING = TableQAConfig(
    operators=(), select_one_column=False, cell_cross_entropy=True, output_dropout=0.0
)
_HYBRIDQA = dataclasses.replace(_WTQ_2048, task=_POINTING, batch_size=4, eval_batch_size=4)
_BOTH_STAGES: dict[str, Any] = dict(
    max_seq_length=512,
    batch_size=16,
    learning_rate=5e-5,
    head_learning_rate_ratio=5.0,
    warmup_ratio=0.05,
    eval_batch_size=32,
    checkpoint_interval=100,
    dtype="mixed_bfloat16",
)
_POINT = TableQATrainingConfig(
    encoder=MINILM,
    task=_POINTING,
    length_buckets=(128, 160, 192, 256),
    num_steps=900,
    eval_questions=300,
    eval_interval=300,
    **_BOTH_STAGES,
)
_READ = SpanReadingTrainingConfig(
    encoder=dataclasses.replace(MINILM, attention=_FULL),
    task=SpanReadingConfig(max_span_length=10, hidden_size=384, output_dropout=0.0),
    length_buckets=(64, 96, 128, 256),
    num_steps=400,
    eval_interval=200,
    **_BOTH_STAGES,
)

_SST2: dict[str, Any] = dict(
    task=ClassificationConfig(num_classes=2),
    max_seq_length=128,
    length_buckets=(16, 24, 32, 40, 64),
    eval_batch_size=64,
)
_SST2_MINILM = ClassificationTrainingConfig(
    encoder=dataclasses.replace(MINILM, hidden_dropout=0.1, attention_dropout=0.1, attention=_FULL),
    batch_size=32,
    **steps(432, 1e-4, 0.1, eval_interval=216, checkpoint_interval=108),
    head_learning_rate_ratio=10.0,
    **_SST2,
)
_SST2_TINY = ClassificationTrainingConfig(
    encoder=EncoderConfig(
        hidden_size=128,
        num_layers=2,
        num_heads=2,
        intermediate_size=512,
        activation="gelu",
        position="absolute",
        attention=_FULL,
    ),
    batch_size=8,
    num_steps=2595,
    learning_rate=2e-5,
    # The paper uses Hugging Face's Trainer, which has no warm-up by default.
    warmup_ratio=0.0,
    eval_interval=865,
    checkpoint_interval=865,
    **_SST2,
)

_DEMO = TableQATrainingConfig(
    # Larger first weights than BERT's and no dropout: so the model learns its questions in few
    # steps, at rates up to about 5e-4. At 1e-3 it learns nothing.
    encoder=EncoderConfig(
        vocab_size=2048,
        hidden_size=128,
        num_layers=2,
        num_heads=4,
        intermediate_size=512,
        hidden_dropout=0.0,
        attention_dropout=0.0,
        initializer_range=0.08,
        attention=AttentionConfig(bucket_size=64, global_size=64),
    ),
    # The demo's files give the cells and the aggregation of each answer.
    task=TableQAConfig(use_answer_as_supervision=False, output_dropout=0.0),
    max_seq_length=4096,
    length_buckets=(64, 128, 256, 512, 2560, 3072, 3584),
    batch_size=8,
    # After 1,300 a question or two still selects a cell too many, with some seeds.
    **steps(1600, 5e-4, 0.1, checkpoint_interval=800),
    # Once, at the end: the best evaluation is exported, and with few questions two can be equal.
    eval_interval=1600,
)

_DEFAULT_PEOPLE = dataclasses.replace(
    _ANSWERS,
    max_seq_length=512,
    length_buckets=(64, 96, 128, 192, 256, 384),
    num_steps=900,
    eval_interval=900,
    dtype="float32",
)
_DEFAULT_EVERYTHING = dataclasses.replace(
    _DEFAULT_PEOPLE,
    max_seq_length=2048,
    length_buckets=(128, 256, 512, 1024),
    batch_size=32,
    **steps(10_000, 1e-4, 0.04, eval_interval=10_000),
)
_DEFAULT_LAST = dataclasses.replace(
    _DEFAULT_EVERYTHING,
    # Of the written questions with an answer one in fifty is then called absent.
    task=dataclasses.replace(_DEFAULT_EVERYTHING.task, absent_threshold=0.8),
    **steps(2_000, 5e-5, 0.05, eval_interval=2_000),
)

CONFIGS = {
    "default_words": STARTING_POINTS["masked_words"],
    "default_statements": dataclasses.replace(
        _STATEMENTS,
        encoder=ENCODER,
        num_steps=300,
        learning_rate=3e-5,
        eval_interval=150,
        checkpoint_interval=100,
    ),
    "default_questions": _DEFAULT_QUESTIONS,
    "default_answers": _ANSWERS,
    "default_operators": dataclasses.replace(
        _ANSWERS,
        max_seq_length=1024,
        length_buckets=(128, 192, 256, 384, 512, 768),
    ),
    "default_absent": dataclasses.replace(
        _ANSWERS,
        # Of the kept questions with an answer one in two hundred is then called absent.
        task=dataclasses.replace(_ANSWERS.task, absent_threshold=0.7),
        max_seq_length=512,
        length_buckets=(96, 128, 192, 256, 384),
        num_steps=650,
        eval_interval=650,
        dtype="float32",
    ),
    "default_people": _DEFAULT_PEOPLE,
    "default_words_again": dataclasses.replace(
        STARTING_POINTS["masked_words"],
        max_seq_length=256,
        batch_size=64,
        **steps(3_200, 1e-4, 0.05, eval_interval=3_200),
        dtype="float32",
    ),
    "default_everything": _DEFAULT_EVERYTHING,
    "default_last": _DEFAULT_LAST,
    "default_wordings": dataclasses.replace(
        _DEFAULT_LAST,
        encoder=with_architecture(_DEFAULT_LAST.encoder, "mate_neighbours"),
        attention_bias_learning_rate_ratio=100.0,
        max_seq_length=512,
        length_buckets=(128, 192, 256, 384),
        batch_size=16,
        dtype="mixed_bfloat16",
        **steps(2_400, 4e-5, 0.05, eval_interval=2_400),
    ),
    "default_kinds": dataclasses.replace(
        _DEFAULT_LAST,
        encoder=with_architecture(_DEFAULT_LAST.encoder, "mate_neighbours"),
        attention_bias_learning_rate_ratio=100.0,
        max_seq_length=512,
        length_buckets=(96, 128, 192, 256, 384),
        batch_size=16,
        dtype="float32",
        **steps(4_000, 5e-5, 0.05, eval_interval=1_000),
    ),
    "mlm_minilm": _MASKED_WORDS,
    "statements_minilm": _STATEMENTS,
    "questions_minilm": dataclasses.replace(
        _DEFAULT_QUESTIONS,
        # Longer records, so that a Linformer with these weights reads WikiTableQuestions at 256.
        max_seq_length=256,
        length_buckets=(64, 96, 128, 160, 192),
        # TableFormer's biases start at zero; at the encoder's rate 400 steps leave them below 0.05.
        attention_bias_learning_rate_ratio=100.0,
        num_steps=400,
        eval_interval=400,
    ),
    "wtq_minilm": _WTQ,
    "wtq_minilm_2048": _WTQ_2048,
    # SQA's answers are cells; nothing is computed from them.
    "sqa_minilm": dataclasses.replace(
        _WTQ,
        task=TableQAConfig(
            operators=(),
            mask_examples_without_labels=True,
            temperature=0.1,
            output_dropout=0.0,
        ),
    ),
    "wikisql_minilm": dataclasses.replace(
        _WTQ,
        task=TableQAConfig(
            use_answer_as_supervision=False,
            allow_empty_column_selection=True,
            temperature=0.1,
            output_dropout=0.0,
        ),
    ),
    "tabfact_minilm": _TABFACT,
    "hybridqa_minilm": _HYBRIDQA,
    "pointr_minilm": PointRConfig(point=_POINT, read=_READ),
    "pointr_hybridqa_minilm": PointRConfig(
        # 1,000 questions or two: evaluated at the end alone, so that nothing is chosen on them.
        point=dataclasses.replace(
            _POINT,
            # Up to 640 tokens all pairs take less time than the pattern's tiles.
            encoder=dataclasses.replace(ENCODER, attention=MATE_DENSE),
            max_seq_length=640,
            length_buckets=(256, 448),
            **steps(160, 1e-4, 0.05, eval_interval=160, checkpoint_interval=40),
            eval_questions=None,
        ),
        read=dataclasses.replace(
            _READ,
            encoder=dataclasses.replace(ENCODER, attention=_FULL),
            max_seq_length=256,
            length_buckets=(128,),
            **steps(240, 1e-4, 0.05, eval_interval=240, checkpoint_interval=40),
        ),
    ),
    "point_minilm": dataclasses.replace(_POINT, num_steps=300, eval_interval=300),
    "sst2_minilm": _SST2_MINILM,
    "sst2_tiny": _SST2_TINY,
    "demo": _DEMO,
}
