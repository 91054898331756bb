"""The presets for two CPU cores and the default model's. A preset is a function without arguments.

All were run for this project, unless the score says otherwise. Most start from all-MiniLM-L6-v2;
minilm is its folder, which scripts/install_minilm.sh installs and prints.

The stages of the default model, default_..., are trained by scripts/train_default_model.sh, each
from the weights of the one before: it makes the data from nine tenths of WikiTableQuestions'
training tables and runs the preset. No stage learns from the other tenth; all evaluations use it.
From words_again on it needs `export TABLES=ottqa.jsonl TABFACT=TabFact SQA=SQA` before. The scores
on the dev split are in the card, mate_tf/default_model/README.md.
"""

import dataclasses
from typing import Any

from experiments.configs.papers import LONG, MATE_DENSE, MATE_WINDOW, sqa_base, steps
from mate_tf.config import AttentionConfig, EncoderConfig
from mate_tf.pointr.answering import PointRConfig
from mate_tf.presets import with_architecture
from mate_tf.tables.operators import ABSENT, operators_by_id
from mate_tf.task_configs import ClassificationConfig, SpanReadingConfig, TableQAConfig
from mate_tf.training.config import (
    ClassificationTrainingConfig,
    MaskedLMTrainingConfig,
    SpanReadingTrainingConfig,
    TableQATrainingConfig,
)
from mate_tf.training.starting_points import ENCODER, STARTING_POINTS

# The stages before `wordings` have no biases of neighbouring rows, those before `kinds` no newer
# operators than ABSENT.
_EXACT = with_architecture(ENCODER, "mate_exact")
_FORMER_OPERATORS = operators_by_id()[: operators_by_id().index(ABSENT) + 1]
MINILM = dataclasses.replace(
    ENCODER,
    # These weights know positions counted through the sequence. Positions that restart in each
    # cell can be learned too, but not in half an hour.
    position="absolute",
    attention=MATE_DENSE,
)
_FULL = AttentionConfig("tapas")
# The answer is in cells of any columns; nothing is computed from them.
_POINTING = TableQAConfig(
    operators=(), select_one_column=False, cell_cross_entropy=True, output_dropout=0.0
)
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
_SST2: dict[str, Any] = dict(
    task=ClassificationConfig(),
    max_seq_length=128,
    length_buckets=(16, 24, 32, 40, 64),
    eval_batch_size=64,
)


def default_words() -> MaskedLMTrainingConfig:
    """Stage 1 of the default model: fill in masked words and cells of tables.

        scripts/train_default_model.sh WikiTableQuestions minilm words

    Hardware: 2 CPU cores with AMX; the run had about 1.3 of them. Time: 17 minutes beside other
    work. Score: 41.5 % of the masked tokens. Whether a table belongs to a text: 50.3 %, not
    learned.
    """
    return dataclasses.replace(STARTING_POINTS["masked_words"], encoder=_EXACT)


def default_statements() -> ClassificationTrainingConfig:
    """Stage 2 of the default model: true and false statements about excerpts of tables.

        scripts/train_default_model.sh WikiTableQuestions minilm statements

    Hardware: 2 CPU cores with AMX. Time: 4 minutes beside other work. Score: 50.0 % of the
    statements about held-out tables: so few steps teach nothing. statements_minilm trains eight
    times as long and reaches 73.0 %; here the time went to the next stage.
    """
    return dataclasses.replace(
        statements_minilm(),
        encoder=_EXACT,
        **steps(300, 3e-5, 0.05, eval_interval=150, checkpoint_interval=100),
    )


def default_questions() -> TableQATrainingConfig:
    """Stage 3 of the default model: 69,589 synthetic questions with known cells and aggregations.

        scripts/train_default_model.sh WikiTableQuestions minilm questions

    Hardware: 2 CPU cores with AMX. Time: 33 minutes beside other work. Score: 73.5 % of 400
    synthetic questions about held-out tables.
    """
    return TableQATrainingConfig(
        encoder=_EXACT,
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
        eval_questions=400,
    )


def default_answers() -> TableQATrainingConfig:
    """Stage 4 of the default model: WikiTableQuestions, up to 512 tokens.

        scripts/train_default_model.sh WikiTableQuestions minilm answers

    Hardware: 2 CPU cores with AMX. Time: 23 minutes. Score: 28.5 % of the 980 questions about
    held-out tables, as it was trained for the package: from answers alone, before operators were
    derived.
    """
    answers = STARTING_POINTS["table_questions"]
    task = dataclasses.replace(answers.task, operators=_FORMER_OPERATORS)
    return dataclasses.replace(answers, encoder=_EXACT, task=task)


def default_operators() -> TableQATrainingConfig:
    """Stage 5 of the default model: WikiTableQuestions again, by operators and cells.

        scripts/train_default_model.sh WikiTableQuestions minilm operators

    The training questions whose tables fit into 1,024 tokens, with long cells cut, 2,300 about made
    tables and 1,200 synthetic ones about the training tables. Where question and table decide
    operator and cells, they are the labels. The script then calibrates the scores.

    Hardware: 2 CPU cores with AMX. Time: 65 minutes beside other work. Score: 37.0 % of 400
    questions about held-out tables; AUROC of the scores 78.6 %.
    """
    return dataclasses.replace(
        default_answers(),
        max_seq_length=1024,
        length_buckets=(128, 192, 256, 384, 512, 768),
    )


def default_absent() -> TableQATrainingConfig:
    """Stage 6 of the default model: one in eight synthetic questions is not answered by its table.

        TABLES=ottqa.jsonl scripts/train_default_model.sh WikiTableQuestions minilm absent

    Up to 512 tokens: 6,200 of WikiTableQuestions' training questions, 7,500 about made tables, and
    3,300 about excerpts of the training tables and of 3,000 of OTT-QA's. A part of the tables has
    its numbers and dates written in other ways.

    Hardware: one CPU core with AVX2, in float32. Time: 60 minutes. Score: in the card.
    """
    answers = default_answers()
    return dataclasses.replace(
        answers,
        # Of the kept questions with an answer one in two hundred is then called absent.
        task=dataclasses.replace(answers.task, absent_threshold=0.7),
        max_seq_length=512,
        length_buckets=(96, 128, 192, 256, 384),
        num_steps=650,
        eval_interval=650,
        dtype="float32",
    )


def default_people() -> TableQATrainingConfig:
    """Stage 7 of the default model: questions as people ask them about their own tables.

        scripts/train_default_model.sh WikiTableQuestions minilm people

    Up to 512 tokens: half of WikiTableQuestions' training questions, 3,100, 8,800 of
    experiments/demo_data/people, written for this project, and 1,600 about made tables.

    Hardware: one CPU core with AVX2, in float32. Time: 70 minutes beside other work. Score: in the
    card.
    """
    return dataclasses.replace(
        default_answers(),
        max_seq_length=512,
        length_buckets=(64, 96, 128, 192, 256, 384),
        num_steps=900,
        eval_interval=900,
        dtype="float32",
    )


def default_words_again() -> MaskedLMTrainingConfig:
    """Stage 8 of the default model: masked words of 19,932 tables of OTT-QA and TabFact.

        scripts/train_default_model.sh WikiTableQuestions minilm words_again

    37,900 records of 256 tokens, with the first sentences about OTT-QA's tables and TabFact's true
    statements as texts.

    Hardware: one H100, through experiments.exported; not run on a CPU. Time: 72 seconds, in batches
    of 64 x 128 tokens; 64 records take 22 ms. Score: a loss of 2.74 over the last 200 steps, from
    4.66 over the first 500.
    """
    return dataclasses.replace(
        default_words(),
        max_seq_length=256,
        batch_size=64,
        **steps(3_200, 1e-4, 0.05, eval_interval=3_200),
        dtype="float32",
    )


def default_everything() -> TableQATrainingConfig:
    """Stage 9 of the default model: all questions that there are, synthetic ones most.

        scripts/train_default_model.sh WikiTableQuestions minilm everything

    Up to 2,048 tokens: 8,500 of WikiTableQuestions' training questions, twice, 18,900 of
    experiments/demo_data/people, 145,000 about OTT-QA's and TabFact's tables, 51,000 about made
    ones, 9,100 about WikiTableQuestions' and seven tenths of SQA's 11,200, which know the answer
    before.

    Hardware: one H100, through experiments.exported; not run on a CPU, where this stage and the
    next would take days. Time: 154 seconds, 65 steps a second, in batches of 32 x 256, 24 x 512,
    12 x 1,024 and 6 x 2,048 tokens. It kept the heads of default_people, which the script starts
    anew. Score: operator and cells are right for 43.5 % of the kept WikiTableQuestions whose
    operator is known, for 72.8 % of the first 324 of people/dev.jsonl with an answer, and 67.4 % of
    the other 522.
    """
    return dataclasses.replace(
        default_people(),
        max_seq_length=2048,
        length_buckets=(128, 256, 512, 1024),
        batch_size=32,
        **steps(10_000, 1e-4, 0.04, eval_interval=10_000),
    )


def default_last() -> TableQATrainingConfig:
    """Stage 10 of the default model: WikiTableQuestions and what people ask, at a lower rate.

        scripts/train_default_model.sh WikiTableQuestions minilm last

    34,000 questions: WikiTableQuestions, people's and a few synthetic ones of the stage before.

    Hardware: one H100, through experiments.exported; not run on a CPU. Time: 148 seconds for three
    runs, of 2,000, 2,000 and 3,400 steps at 5e-5, 7e-5 and 5e-5, whose weights were averaged.
    Score: of the questions of default_everything 44.2, 77.5 and 71.7 %; one of the three alone at
    best 44.4, 75.9 and 69.7 %.
    """
    everything = default_everything()
    return dataclasses.replace(
        everything,
        # Of the written questions with an answer one in fifty is then called absent.
        task=dataclasses.replace(everything.task, absent_threshold=0.8),
        **steps(2_000, 5e-5, 0.05, eval_interval=2_000),
    )


def default_wordings() -> TableQATrainingConfig:
    """Stage 11 of the default model: four times as many wordings, biases for the rows next to one.

        scripts/train_default_model.sh WikiTableQuestions minilm wordings

    Up to 512 tokens: 10,300 of WikiTableQuestions' training questions, 9,500 of
    experiments/demo_data/people, and synthetic ones: 21,200 about OTT-QA's and TabFact's tables,
    11,300 about made ones and 7,000 about WikiTableQuestions'.

    Hardware: two cores of an EPYC with AVX512-BF16, other work beside. Time: 26 minutes, 27
    questions a second. Score: 59.8 % of 1,799 kept questions, 77.2 % of people/dev.jsonl; the mean
    with the weights before it, without the biases, which ships, 79.1 % of the latter (78.8 before)
    and 71.3 % of synthetic questions in words that no training has (65.7 before).
    """
    last = default_last()
    return dataclasses.replace(
        last,
        encoder=with_architecture(last.encoder, "mate_neighbours"),
        attention_bias_learning_rate_ratio=100.0,
        max_seq_length=512,
        length_buckets=(128, 192, 256, 384),
        batch_size=16,
        dtype="mixed_bfloat16",
        **steps(2_400, 4e-5, 0.05, eval_interval=2_400),
    )


def default_kinds() -> TableQATrainingConfig:
    r"""Yes and no, headers, shares and operators along a row, from the weights that ship.

        scripts/train_default_model.sh WikiTableQuestions minilm kinds

    81,590 records of up to 512 tokens of 84,019 questions: 10,341 of WikiTableQuestions, half of
    the older ones of experiments/demo_data/people and the 3,570 newer ones twice, 4,468 reworded
    (experiments.create_reworded), synthetic ones: 14,476 about made tables, 9,546 about OTT-QA's
    and TabFact's, 6,809 about WikiTableQuestions'; 16,855 statements of TabFact, half of them
    counterfactual (experiments.create_statements), to answer yes or no, and 4,911 of SQA. Its first
    weights are the mean of default_wordings, after 273 steps on data of which a few synthetic
    questions were wrongly called unanswerable.

    Hardware: two cores of an EPYC with AVX2, float32, other work beside; the first 593 steps on one
    of them, at the rates of a run of 3,200. Time: 4 hours. Score: 71.7 % of the 2,602 questions of
    people/dev.jsonl (67.2 before), 48.4 % of the 980 kept ones of WikiTableQuestions (49.8 before).
    """
    wordings = default_wordings()
    return dataclasses.replace(
        wordings,
        task=dataclasses.replace(wordings.task, operators=operators_by_id()),
        length_buckets=(96, 128, 192, 256, 384),
        dtype="float32",
        **steps(1_500, 5e-5, 0.05, eval_interval=750),
    )


def default_kinds_again() -> TableQATrainingConfig:
    r"""More of what default_kinds learned least, and then a mean with the weights before both.

        scripts/train_default_model.sh WikiTableQuestions minilm kinds_again

    69,799 records of 72,070 questions: WikiTableQuestions', the rest of the older written ones, the
    newer ones twice, 5,582 reworded, fewer of the other kinds; anew 8,603 about headers, shares and
    operators along a row, and 6,462 of which half have no answer in their table.

    Hardware: two cores of an EPYC with AVX2, float32, other work beside; the first 189 steps at the
    rates of a run of 1,600; ended at step 993. Time: 1 hour. Score: 48.7 % of the 980 kept
    questions of WikiTableQuestions, 58.1 % of 320 written ones of the new kinds (55.3 after
    default_kinds, 37.5 before both). The mean of these weights, by 0.7, and those before both,
    which ships: 50.2 % and 52.8 %.
    """
    return dataclasses.replace(default_kinds(), **steps(1_000, 4e-5, 0.05, eval_interval=500))


def default_conversations() -> TableQATrainingConfig:
    r"""Follow-ups, other headers, transposed tables, and what the stages before learned badly.

        scripts/train_default_model.sh WikiTableQuestions minilm conversations

    124,584 records: WikiTableQuestions' twice, half of the written ones, all of these under other
    headers, 12,276 of SQA, 16,800 synthetic follow-ups, parts of what default_kinds_again had, and
    3,898 three times with rows and columns exchanged. The first weights are those of
    default_kinds_again's mean.

    Hardware: two cores of a Xeon with AMX, other work beside; four runs, each from the weights of
    the one before: 1,030 steps and 1,300, the mean of these with the first weights, then 1,811 of
    a run of 4,400 at 4e-5, and 2,000 at 3e-5, which alone had the transposed tables. Time: four
    hours. What ships is the mean of the last weights and the first. Score: of the weights before,
    the last and the mean 259, 253 and 268 of 500 kept questions of WikiTableQuestions; 455, 468
    and 468 of 702 written ones; 137, 153 and 146 of 200 under other headers; 62, 106 and 95 of 129
    made ones about names of columns, shares and rows.
    """
    return dataclasses.replace(
        default_kinds(), dtype="mixed_bfloat16", **steps(6_000, 4e-5, 0.04, eval_interval=1_500)
    )


def mlm_minilm() -> MaskedLMTrainingConfig:
    r"""Pre-training on the tables of WikiTableQuestions from all-MiniLM-L6-v2, on a CPU.

        python -m experiments.create_pretraining_data --task=WTQ --input_dir=WikiTableQuestions \
          --output_dir=out/mlm_wtq --vocab_file=minilm/vocab.txt --dupe_factor=30
        python -m experiments.pretrain --config=mlm_minilm --data_dir=out/mlm_wtq \
          --init_checkpoint=minilm --model_dir=out/mlm_minilm

    The texts are the questions. None of the dev split's 346 tables is among the 1,333 of training.

    Hardware: 1 CPU core with AMX; without bfloat16 in hardware --config.dtype=float32 is faster.
    Time: 41 minutes beside other work. Score: 41.2 % of the masked tokens. Whether a table belongs
    to a text: 90.5 %.
    """
    return MaskedLMTrainingConfig(
        encoder=MINILM,
        max_seq_length=128,
        batch_size=16,
        **steps(1_600, 2e-4, 0.05, eval_interval=200, checkpoint_interval=50),
        # MiniLM has no head for masked words, and the pooler gets a new task.
        head_learning_rate_ratio=5.0,
        eval_examples=2_000,
        dtype="mixed_bfloat16",
    )


def statements_minilm() -> ClassificationTrainingConfig:
    r"""Intermediate pre-training on synthetic statements, after masked words, on a CPU.

        create="python -m experiments.create_statements --task=WTQ \
          --input_dir=WikiTableQuestions --output_dir=out/statements \
          --vocab_file=minilm/vocab.txt --excerpts_per_table=12 --max_rows=5 --max_columns=3 \
          --max_seq_length=96"
        $create --parts=train=100 && $create --splits=dev --parts=dev=25,test=75
        python -m experiments.create_data --task=JSONL --input_dir=out/statements \
          --output_dir=out/statements_96 --vocab_file=minilm/vocab.txt --max_seq_length=96
        python -m experiments.finetune --config=statements_minilm --data_dir=out/statements_96 \
          --init_checkpoint=out/mlm_minilm --model_dir=out/statements_minilm

    out/mlm_minilm is the run of mlm_minilm. Neither run has seen the tables of dev and test; half
    of their statements are true. tabfact_minilm can start from this run.

    Hardware: 1 CPU core with AMX. Time: 45 minutes beside other work, 23 without. Score: 73.0 % of
    the 16,760 test statements. Where the other excerpt has other rows 79.9 %, a replaced column
    83.2 %, a column's cells in another order 50.1 %: which cells form a row it has not learned.
    """
    return ClassificationTrainingConfig(
        encoder=MINILM,
        task=ClassificationConfig(class_names=("refuted", "entailed"), output_dropout=0.0),
        max_seq_length=96,
        length_buckets=(32, 48, 64),
        batch_size=32,
        # At five times this rate all tokens become alike before anything is learned.
        **steps(2_400, 2e-5, 0.05, eval_interval=300, checkpoint_interval=50),
        head_learning_rate_ratio=5.0,
        dtype="mixed_bfloat16",
        eval_batch_size=64,
    )


def questions_minilm() -> TableQATrainingConfig:
    r"""Intermediate pre-training on synthetic questions, to compare architectures, on a CPU.

        python -m experiments.create_questions --task=WTQ --input_dir=WikiTableQuestions \
          --output_dir=out/questions --vocab_file=minilm/vocab.txt --questions_per_table=12 \
          --max_seq_length=192 --parts=train=90,dev=10
        python -m experiments.create_data --task=JSONL --input_dir=out/questions \
          --output_dir=out/questions_256 --vocab_file=minilm/vocab.txt --max_seq_length=256
        python -m experiments.paper.compare_attention --config=questions_minilm \
          --data_dir=out/questions_256 --init_checkpoint=out/default/words_weights --reset_heads \
          --architectures=tapas,mate_exact --seeds=1 --output_dir=out/compare_questions

    out/default/words_weights is the run of default_words, of which this is a quarter of the steps.

    Hardware: 1 CPU core with AMX. Time: 15 to 25 minutes a run, TableETC 37. Score: in
    docs/results.md ("The papers' comparisons").
    """
    return dataclasses.replace(
        default_questions(),
        # Longer records, so that a Linformer with these weights reads WikiTableQuestions at 256.
        max_seq_length=256,
        length_buckets=(64, 96, 128, 160, 192),
        # TableFormer's biases start at zero; at the encoder's rate 400 steps leave them below 0.05.
        attention_bias_learning_rate_ratio=100.0,
        num_steps=400,
        eval_interval=400,
    )


def wtq_minilm() -> TableQATrainingConfig:
    r"""WikiTableQuestions from all-MiniLM-L6-v2, in three quarters of an hour on a CPU.

        python -m experiments.create_data --task=WTQ --input_dir=WikiTableQuestions \
          --output_dir=out/wtq_384 --vocab_file=minilm/vocab.txt --max_seq_length=384
        python -m experiments.finetune --config=wtq_minilm --data_dir=out/wtq_384 \
          --init_checkpoint=minilm --model_dir=out/wtq_minilm
        mate-tf predict --model=out/wtq_minilm --data=out/wtq_384/dev.jsonl \
          --drop-rows-to-fit --output=out/wtq_minilm_dev.jsonl
        mate-tf evaluate --predictions=out/wtq_minilm_dev.jsonl --data=out/wtq_384/dev.jsonl

    Evaluations during training ask the first 300 questions. Questions that do not fit into 384
    tokens count as wrong; predict answers all 2,831, with up to 512 tokens.

    Hardware: 2 CPU cores without bfloat16. Time: 45 minutes (79 CPU minutes) beside other work; the
    last evaluation takes 6 minutes. Score: 12.0 % denotation accuracy on dev. The best constant
    answer has 5.1 %.
    """
    return TableQATrainingConfig(
        encoder=MINILM,
        task=default_answers().task,
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


def wtq_minilm_2048() -> TableQATrainingConfig:
    r"""WikiTableQuestions read whole: 2,048 tokens, the MATE paper's window, MiniLM's weights.

        python -m experiments.create_data --task=WTQ --input_dir=WikiTableQuestions \
          --divide=train:train=90,calibration=10 --output_dir=out/wtq_2048 \
          --vocab_file=minilm/vocab.txt --max_seq_length=2048 --trim_cells
        python -m experiments.finetune --config=wtq_minilm_2048 --data_dir=out/wtq_2048 \
          --init_checkpoint=minilm --model_dir=out/wtq_minilm_2048

    Hardware: 1 CPU core with AMX (--config.dtype=mixed_bfloat16). Time: 27 minutes, 7 of them for
    the answers to all 2,831 dev questions. Score: 7.0 % denotation accuracy. MiniLM's weights do
    not know positions that restart in each cell, so this is less than the same 200 steps give at
    256 tokens.
    """
    return dataclasses.replace(
        wtq_minilm(),
        # MiniLM knows 512 positions, so for longer input they restart in each cell.
        encoder=dataclasses.replace(ENCODER, attention=MATE_WINDOW),
        **LONG,
        num_steps=200,
        eval_batch_size=8,
        eval_questions=None,
        eval_interval=200,
        checkpoint_interval=25,
    )


def sqa_minilm() -> TableQATrainingConfig:
    r"""SQA from all-MiniLM-L6-v2, small enough for a CPU.

        python -m experiments.create_data --task=SQA --input_dir=SQA --output_dir=out/sqa_384 \
          --vocab_file=minilm/vocab.txt --max_seq_length=384 --drop_rows_to_fit
        python -m experiments.finetune --config=sqa_minilm --data_dir=out/sqa_384 \
          --init_checkpoint=minilm --model_dir=out/sqa_minilm

    Hardware: 2 CPU cores. Time: about that of wtq_minilm for as many steps. Score: not run here.
    """
    return dataclasses.replace(
        wtq_minilm(),
        # As sqa_base.
        task=dataclasses.replace(sqa_base().task, temperature=0.1, output_dropout=0.0),
    )


def wikisql_minilm() -> TableQATrainingConfig:
    r"""WikiSQL from all-MiniLM-L6-v2, small enough for a CPU.

        python -m experiments.create_data --task=WIKISQL_SUPERVISED --input_dir=WikiSQL \
          --output_dir=out/wikisql_384 --vocab_file=minilm/vocab.txt --max_seq_length=384 \
          --drop_rows_to_fit
        python -m experiments.finetune --config=wikisql_minilm --data_dir=out/wikisql_384 \
          --init_checkpoint=minilm --model_dir=out/wikisql_minilm

    The queries are the supervision. To learn from answers alone: --task=WIKISQL and
    --config.task.use_answer_as_supervision=true.

    Hardware: 2 CPU cores. Time: about that of wtq_minilm for as many steps. Score: not run here.
    """
    return dataclasses.replace(
        wtq_minilm(),
        task=TableQAConfig(
            use_answer_as_supervision=False,
            allow_empty_column_selection=True,
            temperature=0.1,
            output_dropout=0.0,
        ),
    )


def tabfact_minilm() -> ClassificationTrainingConfig:
    r"""TabFact from all-MiniLM-L6-v2, on a CPU.

        python -m experiments.create_data --task=TABFACT --input_dir=tabfact --splits=dev \
          --divide=dev:train=72,calibration=8,dev=20 --output_dir=out/tabfact_256 \
          --vocab_file=minilm/vocab.txt --max_seq_length=256 --drop_rows_to_fit
        python -m experiments.paper.compare_attention --config=tabfact_minilm \
          --data_dir=out/tabfact_256 --init_checkpoint=minilm --output_dir=out/compare_tabfact

    divides the release's validation split by its tables. With the whole release leave out --splits
    and --divide.

    Hardware: 1 CPU core, with --config.dtype=mixed_bfloat16 one that has AMX. Time: 6 to 15 minutes
    a run, TableETC 21. Score: 49.4 % of 2,613 statements with each attention: 200 steps teach
    nothing. After synthetic questions and statements, with --config.learning_rate=5e-6
    --config.head_learning_rate_ratio=1, 53.0 % with mate_exact.
    """
    return ClassificationTrainingConfig(
        encoder=dataclasses.replace(MINILM, attention=AttentionConfig()),
        task=ClassificationConfig(class_names=("refuted", "entailed")),
        max_seq_length=256,
        length_buckets=(128, 192),
        batch_size=16,
        # At three times this rate all tokens become alike before anything is learned.
        **steps(200, 3e-5, 0.1, eval_interval=200, checkpoint_interval=50),
        head_learning_rate_ratio=5.0,
    )


def hybridqa_minilm() -> TableQATrainingConfig:
    r"""HybridQA's cells with MATE from all-MiniLM-L6-v2, small enough for a CPU.

        python -m experiments.create_data --task=HYBRIDQA --input_dir=HybridQA \
          --output_dir=out/hybridqa_minilm --vocab_file=minilm/vocab.txt --max_seq_length=2048 \
          --trim_cells
        python -m experiments.finetune --config=hybridqa_minilm --data_dir=out/hybridqa_minilm \
          --init_checkpoint=minilm --model_dir=out/hybridqa_minilm_run

    Encoder and window are those of wtq_minilm_2048. If you only have the dev split, divide it by
    its tables: --divide=dev:train=75,dev=25.

    Hardware: 2 CPU cores. Time: 16 s a step beside other work. Score: not measured on the whole
    data set.
    """
    return dataclasses.replace(wtq_minilm_2048(), task=_POINTING, batch_size=4, eval_batch_size=4)


def pointr_minilm() -> PointRConfig:
    r"""PointR on short tables, from the weights of a small encoder, on a CPU.

        python -m experiments.pointr --config=pointr_minilm --task=LINKED_JSONL \
          --input_dir=experiments/demo_data/linked --output_dir=out/pointr --eval_splits=test \
          --vocab_file=minilm/vocab.txt --point_checkpoint=out/mlm_minilm \
          --read_checkpoint=minilm

    out/mlm_minilm is the run of mlm_minilm. The baselines that know only the table or only the
    passages are --config.inputs.evidence=table and =passages.

    Hardware: 1 CPU core with AMX. Time: 40 minutes beside other work, half of them to train the
    pointer. Score: 93.5 % exact match on 1,800 questions about 2,000 generated tables, which were
    part of former versions; with the table alone 22.2 %, with the passages alone 35.6 %. The 20
    questions of the command show that it runs.
    """
    return PointRConfig(
        point=TableQATrainingConfig(
            encoder=MINILM,
            task=_POINTING,
            length_buckets=(128, 160, 192, 256),
            num_steps=900,
            eval_questions=300,
            eval_interval=300,
            **_BOTH_STAGES,
        ),
        read=SpanReadingTrainingConfig(
            encoder=dataclasses.replace(MINILM, attention=_FULL),
            task=SpanReadingConfig(hidden_size=384, output_dropout=0.0),
            length_buckets=(64, 96, 128, 256),
            num_steps=400,
            eval_interval=200,
            **_BOTH_STAGES,
        ),
    )


def point_minilm() -> TableQATrainingConfig:
    r"""PointR's first stage alone, to compare architectures by the cells that they point to.

        python -m experiments.pointr --config=pointr_minilm --stage=create --task=LINKED_JSONL \
          --input_dir=experiments/demo_data/linked --output_dir=out/pointr \
          --vocab_file=minilm/vocab.txt
        python -m experiments.paper.compare_attention --config=point_minilm \
          --data_dir=out/pointr/point_data --init_checkpoint=minilm \
          --output_dir=out/compare_pointing --architectures=tapas,mate_exact

    It is the pointer of pointr_minilm with a third of the steps.

    Hardware: 1 core of an EPYC server with bfloat16 in hardware. Time: 8 to 11 minutes a run;
    Linformer and TableETC 21 to 23. Score: Hits@1 on 300 questions about 2,000 generated tables,
    which were part of former versions: 91.3 % with mate_exact, 80.0 % with tapas.
    """
    return dataclasses.replace(pointr_minilm().point, num_steps=300, eval_interval=300)


def pointr_hybridqa_minilm() -> PointRConfig:
    r"""PointR on HybridQA from the default model: 640 tokens to point, 256 to read, on a CPU.

        python -m experiments.pointr --config=pointr_hybridqa_minilm --input_dir=HybridQA \
          --output_dir=out/pointr_hybridqa --vocab_file=mate_tf/default_model/vocab.txt \
          --point_checkpoint=mate_tf/default_model --read_checkpoint=mate_tf/default_model

    The lengths and the budget are for about 1,500 training questions. There is one evaluation,
    after the last step, so nothing is chosen on the dev split. Longer passages and tables lose the
    ends of their longest cells. At 1,024 tokens a step takes twice as long.

    The reader first fills gaps in sentences of the training tables' passages (--stage=clozes;
    --config.clozes=None leaves that out).

    Hardware: 1 CPU core with AMX. Time: 3 to 5 s a step of pointing, 1.5 s of reading. Score:
    30.7 % exact match, the mean of three seeds; more in docs/results.md ("Tables with passages").
    """
    short = pointr_minilm()
    read = dataclasses.replace(
        short.read,
        encoder=dataclasses.replace(ENCODER, attention=_FULL),
        max_seq_length=256,
        length_buckets=(128,),
        **steps(240, 1e-4, 0.05, eval_interval=240, checkpoint_interval=40),
    )
    clozes = steps(1500, 1e-4, 0.05, eval_interval=750, checkpoint_interval=100)
    return PointRConfig(
        point=dataclasses.replace(
            short.point,
            # Up to 640 tokens all pairs take less time than the pattern's tiles.
            encoder=dataclasses.replace(ENCODER, attention=MATE_DENSE),
            max_seq_length=640,
            length_buckets=(256, 448),
            **steps(160, 1e-4, 0.05, eval_interval=160, checkpoint_interval=40),
            eval_questions=None,
        ),
        clozes=dataclasses.replace(read, **clozes),
        read=read,
    )


def sst2_minilm() -> ClassificationTrainingConfig:
    r"""SST-2 from all-MiniLM-L6-v2: full and grammar-guided attention on a CPU.

        python -m experiments.create_data --task=SST2 --input_dir=sst2 --output_dir=out/sst2 \
          --vocab_file=minilm/vocab.txt --max_seq_length=128 --tagger=textblob
        python -m experiments.paper.compare_attention --config=sst2_minilm --data_dir=out/sst2 \
          --init_checkpoint=minilm --output_dir=out/grammar \
          --architectures=tapas,grammar_hard,grammar_soft

    sst2 is a folder with train.tsv and dev.tsv (6,920 and 872 sentences).

    Hardware: 2 CPU cores. Time: 6 minutes a run. Score: in docs/results.md ("Grammar-guided
    attention").
    """
    return ClassificationTrainingConfig(
        encoder=dataclasses.replace(
            MINILM, hidden_dropout=0.1, attention_dropout=0.1, attention=_FULL
        ),
        batch_size=32,
        **steps(432, 1e-4, 0.1, eval_interval=216, checkpoint_interval=108),
        head_learning_rate_ratio=10.0,
        **_SST2,
    )


def sst2_tiny() -> ClassificationTrainingConfig:
    r"""The grammar-guided attention paper's model on SST-2 (section 4).

        python -m experiments.paper.compare_attention --config=sst2_tiny --data_dir=out/sst2 \
          --init_checkpoint=bert-tiny --output_dir=out/grammar_tiny \
          --architectures=tapas,grammar_hard,grammar_soft

    with the data of sst2_minilm and the Hugging Face folder of prajjwal1/bert-tiny. Three epochs of
    the 6,920 sentences; the paper trained on 67,349: --config.num_steps=25256.

    Hardware: 2 CPU cores. Time: not run to its end here. Score: the paper's is in docs/results.md
    ("Grammar-guided attention").
    """
    return ClassificationTrainingConfig(
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
        # The paper uses Hugging Face's Trainer, which has no warm-up by default.
        **steps(2595, 2e-5, 0.0, eval_interval=865, checkpoint_interval=865),
        **_SST2,
    )


def demo() -> TableQATrainingConfig:
    r"""A small model from random weights that learns the demo's own questions by heart.

        python -m experiments.finetune --config=demo --data_dir=out/demo/data \
          --model_dir=out/demo/run

    Hardware: 2 CPU cores without bfloat16. Time: 1,600 steps in 3 minutes, the whole demo in 6.
    Score: 99.3 % of the training questions, 22.9 % of the dev questions.
    """
    return TableQATrainingConfig(
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
        # Once, at the end: the best evaluation is exported, and of few questions two can be equal.
        eval_interval=1600,
    )
