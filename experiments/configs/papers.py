r"""The presets of the papers and of the TAPAS release. A preset is a function without arguments.

Nobody has trained them here. The tests train each for two steps at a tenth of its width, and
`python -m experiments.benchmarks.full_size` has taken two steps of each at full width, as they say.
Their scores are the published ones, medians of 5 runs. The papers trained on 32 cores of Cloud
TPU v3. If a batch does not fit into memory, --config.gradient_accumulation_steps=32 computes it in
parts. Weights in the commands:

- tapas_base: TAPAS after intermediate pre-training, tapas_inter_masklm_base_reset of the release,
  on the Hugging Face Hub google/tapas-base. Weights without "reset" need
  --config.encoder.position=absolute.
- bert_base, bert_large: BERT uncased, a Hugging Face folder.
- mate_large: MATE after pre-training on tables. It is not published; a run of mlm_mate_large makes
  one.

    python -m experiments.paper.chain --model=mate --size=large

makes the records of masked words, statements, SQA and WTQ, and runs their presets one after the
other, each from the weights of the one before. It goes on where it stopped, and its docstring names
the folders that it reads. Some settings of the papers are a preset and a flag:

- MATE on SQA, WTQ, WikiSQL, TabFact (MATE paper, tables 2 to 4, large models): sqa_base, wtq_base,
  ... --architecture=mate.
- TableFormer, --architecture=tableformer_pcp, which does not use the embeddings of rows and columns
  in TAPAS's weights. SQA, sqa_base: 69.4 % ALL, 43.5 % SEQ on test; 69.3 % ALL after perturbation,
  variation 0.1 %. WTQ, wtq_base, from the same on SQA: 46.7 % on dev, 46.5 % on test. TabFact,
  tabfact_base: 79.7 % on dev, 79.2 % on test.
- TAPAS on SQA with tables in other orders, from tapas_masklm_base_reset: sqa_base
  --config.perturbed_copies=8. 65.1 % ALL on test, 64.3 % after perturbation, variation 7.2 %
  (`python -m experiments.robustness` measures it).
- PointR with another first stage: pointr_mate_large --architecture=tapas, sat, linformer_256 or
  table_etc. Exact match on dev 63.3, 61.2, 60.8, 36.1 %. The first stages start from runs of
  mlm_mate_large with the same --architecture, mlm_linformer_large and mlm_table_etc_large, TAPAS
  from tapas_masklm_large_reset.
- PointR without passages, without the table: pointr_mate_large --config.inputs.evidence=table or
  passages. Exact match on dev 8.4, 19.5 % (other models).
"""

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
    return dict(
        num_steps=num_steps, learning_rate=learning_rate, warmup_ratio=warmup_ratio, **others
    )


def _large(config: Any) -> Any:
    """The same with the large encoder: the release trains both sizes alike."""
    return dataclasses.replace(config, encoder=dataclasses.replace(config.encoder, **_LARGE))


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


def sqa_base() -> TableQATrainingConfig:
    r"""SQA with TAPAS's base model and the release's values.

        python -m experiments.create_data --task=SQA --input_dir=SQA --output_dir=out/sqa \
          --vocab_file=tapas_base/vocab.txt --trim_cells --original_conversion
        python -m experiments.finetune --config=sqa_base --data_dir=out/sqa \
          --init_checkpoint=tapas_base --model_dir=out/sqa_base

    --architecture=mate trains MATE, --architecture=tableformer_pcp TableFormer. With mate,
    --config.encoder.attention.evaluator=dense is faster at this length.

    Hardware: an accelerator. Time: not measured. Score: release, dev, gold previous answers:
    68.7 %. On test: TableFormer paper, base, 67.5 % ALL, 38.8 % SEQ; MATE paper, large, 71.0 % and
    44.8 % for TAPAS, 71.7 % and 46.1 % for MATE.

    Two steps of 1 x 128 tokens on a busy core (full_size): 4.4 s the second, 2.8 GB.
    """
    return TableQATrainingConfig(
        encoder=BERT_BASE,
        # SQA's answers are cells; nothing is computed from them. A record may have none.
        task=TableQAConfig(operators=(), mask_examples_without_labels=True),
        **TAPAS_TRAINING | steps(200_000, 1.25e-5, 0.01, batch_size=128, max_gradient_value=None),
    )


def sqa_large() -> TableQATrainingConfig:
    r"""SQA at the large size, with the release's values and the data of sqa_base.

        python -m experiments.finetune --config=sqa_large --data_dir=out/sqa \
          --init_checkpoint=out/statements_large --model_dir=out/sqa_large

    --architecture=mate trains MATE.

    Hardware: 32 cores of a TPU, or one accelerator with --config.gradient_accumulation_steps=32.
    Time: not measured. Score: MATE paper, test: 71.0 % ALL for TAPAS, 71.7 % for MATE, both after
    intermediate pre-training.

    Two steps of 1 x 128 tokens on a busy core (full_size): 11.8 s the second, 6.8 GB.
    """
    return _large(sqa_base())


def wikisql_base() -> TableQATrainingConfig:
    r"""WikiSQL from answers alone, with TAPAS's base model and the release's values.

        python -m experiments.create_data --task=WIKISQL --input_dir=WikiSQL \
          --output_dir=out/wikisql --vocab_file=tapas_base/vocab.txt --trim_cells \
          --original_conversion
        python -m experiments.finetune --config=wikisql_base --data_dir=out/wikisql \
          --init_checkpoint=out/sqa_base --model_dir=out/wikisql_base

    The release starts it from the run of sqa_base; tapas_base works too.

    Hardware: an accelerator. Time: not measured. Score: release, dev: 88.6 %, by its own reading
    of the queries.

    Two steps of 1 x 128 tokens on a busy core (full_size): 2.3 s the second, 2.9 GB.
    """
    return TableQATrainingConfig(
        encoder=BERT_BASE,
        task=TableQAConfig(
            select_one_column=False,
            temperature=0.107515,
            cell_select_pref=0.611754,
            answer_loss_cutoff=0.185567,
            huber_loss_delta=1265.74,
        ),
        **steps(50_000, 6.17164e-5, 0.1424),
        **TAPAS_TRAINING,
    )


def wikisql_large() -> TableQATrainingConfig:
    r"""WikiSQL by answers alone, at the large size, with the data of wikisql_base.

        python -m experiments.finetune --config=wikisql_large --data_dir=out/wikisql \
          --init_checkpoint=out/sqa_large --model_dir=out/wikisql_large

    --architecture=mate trains MATE.

    Hardware: as sqa_large. Time: not measured. Score: none published.

    Two steps of 1 x 128 tokens on a busy core (full_size): 5.8 s the second, 6.8 GB.
    """
    return _large(wikisql_base())


def wikisql_supervised_base() -> TableQATrainingConfig:
    r"""WikiSQL with its queries as supervision, TAPAS's base model and the release's values.

        python -m experiments.create_data --task=WIKISQL_SUPERVISED --input_dir=WikiSQL \
          --output_dir=out/wikisql_supervised --vocab_file=tapas_base/vocab.txt --trim_cells \
          --original_conversion
        python -m experiments.finetune --config=wikisql_supervised_base \
          --data_dir=out/wikisql_supervised --init_checkpoint=tapas_base \
          --model_dir=out/wikisql_supervised_base

    Hardware: an accelerator. Time: not measured. Score: the release gives none for this model.

    Two steps of 1 x 128 tokens on a busy core (full_size): 1.4 s the second, 2.9 GB.
    """
    return TableQATrainingConfig(
        encoder=BERT_BASE,
        task=TableQAConfig(
            use_answer_as_supervision=False,
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


def wikisql_supervised_large() -> TableQATrainingConfig:
    r"""WikiSQL with known cells and aggregations, at the large size.

        python -m experiments.finetune --config=wikisql_supervised_large \
          --data_dir=out/wikisql_supervised --init_checkpoint=out/sqa_large \
          --model_dir=out/wikisql_supervised_large

    The data are those of wikisql_supervised_base. --architecture=mate trains MATE.

    Hardware: as sqa_large. Time: not measured. Score: none published.

    Two steps of 1 x 128 tokens on a busy core (full_size): 3.1 s the second, 6.7 GB.
    """
    return _large(wikisql_supervised_base())


def wtq_base() -> TableQATrainingConfig:
    r"""WikiTableQuestions with TAPAS's base model and the release's values.

        python -m experiments.create_data --task=WTQ --input_dir=WikiTableQuestions \
          --output_dir=out/wtq --vocab_file=tapas_base/vocab.txt --trim_cells \
          --original_conversion
        python -m experiments.finetune --config=wtq_base --data_dir=out/wtq \
          --init_checkpoint=out/wikisql_base --model_dir=out/wtq_base

    The release's chain is intermediate pre-training, SQA, WikiSQL, WTQ: run sqa_base, wikisql_base
    and this one, each from the run before. The TableFormer and MATE papers go from SQA to WTQ:
    --init_checkpoint=out/sqa_base. --architecture=mate in each run of the chain trains MATE.

    Hardware: an accelerator. Time: not measured. Score: release, dev: 46.4 % after its chain.
    TableFormer paper, base, after SQA: 44.8 % on dev, 45.1 % on test. MATE paper, large, test:
    46.6 % for TAPAS, 51.5 % for MATE.

    Two steps of 1 x 128 tokens on a busy core (full_size): 1.8 s the second, 2.9 GB.
    """
    return TableQATrainingConfig(
        encoder=BERT_BASE,
        task=TableQAConfig(
            init_cell_selection_weights_to_zero=True,
            temperature=0.0352513,
            cell_select_pref=0.207951,
            answer_loss_cutoff=0.664694,
            huber_loss_delta=0.121194,
        ),
        **steps(50_000, 1.93581e-5, 0.12896),
        **TAPAS_TRAINING,
    )


def wtq_large() -> TableQATrainingConfig:
    r"""WikiTableQuestions at the large size, with the release's values and the data of wtq_base.

        python -m experiments.finetune --config=wtq_large --data_dir=out/wtq \
          --init_checkpoint=out/sqa_large --model_dir=out/wtq_large

    --architecture=mate trains MATE.

    Hardware: as sqa_large. Time: not measured. Score: MATE paper, test: 46.6 % for TAPAS, 51.5 %
    for MATE, both after intermediate pre-training.

    Two steps of 1 x 128 tokens on a busy core (full_size): 11.4 s the second, 6.9 GB.
    """
    return _large(wtq_base())


def wtq_mate_base_2048() -> TableQATrainingConfig:
    r"""WikiTableQuestions with the MATE paper's base model and window, and TAPAS's training.

        python -m experiments.create_data --task=WTQ --input_dir=WikiTableQuestions \
          --output_dir=out/wtq_mate_2048 --vocab_file=mate_base/vocab.txt \
          --max_seq_length=2048 --trim_cells --original_conversion
        python -m experiments.finetune --config=wtq_mate_base_2048 \
          --data_dir=out/wtq_mate_2048 --init_checkpoint=mate_base/model.ckpt \
          --model_dir=out/wtq_mate_base_2048

    Hardware: an accelerator, with --config.gradient_accumulation_steps=128 on a single device.
    Time: not measured. Score: none.

    Two steps of 1 x 2,048 tokens on a busy core (full_size): 10.5 s the second, 3.5 GB.
    """
    encoder = dataclasses.replace(BERT_BASE, attention=MATE_WINDOW)
    return dataclasses.replace(wtq_base(), encoder=encoder, **LONG)


def tabfact_base() -> ClassificationTrainingConfig:
    r"""TabFact with TAPAS's base model and the release's values.

        python -m experiments.create_data --task=TABFACT --input_dir=Table-Fact-Checking \
          --output_dir=out/tabfact --vocab_file=tapas_base/vocab.txt --trim_cells \
          --original_conversion
        python -m experiments.finetune --config=tabfact_base --data_dir=out/tabfact \
          --init_checkpoint=tapas_base --model_dir=out/tabfact_base

    --architecture=mate trains MATE, --architecture=tableformer_pcp TableFormer.

    Hardware: an accelerator. Time: not measured. Score: release, dev: 79.2 %. TableFormer paper,
    base: 78.4 % on dev, 77.9 % on test. MATE paper, large, test: 81.0 % for TAPAS, 81.4 % for MATE.

    Two steps of 1 x 128 tokens on a busy core (full_size): 1.0 s the second, 2.9 GB.
    """
    return ClassificationTrainingConfig(
        encoder=dataclasses.replace(BERT_BASE, attention_dropout=0.0, hidden_dropout=0.07),
        # The release has no dropout on the pooled output.
        task=ClassificationConfig(class_names=("refuted", "entailed"), output_dropout=0.0),
        **steps(80_000, 2e-5, 0.05),
        **TAPAS_TRAINING,
    )


def tabfact_large() -> ClassificationTrainingConfig:
    r"""TabFact at the large size, with the release's values and the data of tabfact_base.

        python -m experiments.finetune --config=tabfact_large --data_dir=out/tabfact \
          --init_checkpoint=out/statements_large --model_dir=out/tabfact_large

    --architecture=mate trains MATE.

    Hardware: as sqa_large. Time: not measured. Score: MATE paper, test: 81.0 % for TAPAS, 81.4 %
    for MATE, both after intermediate pre-training.

    Two steps of 1 x 128 tokens on a busy core (full_size): 3.6 s the second, 6.7 GB.
    """
    return _large(tabfact_base())


def statements_base() -> ClassificationTrainingConfig:
    r"""Intermediate pre-training of the base size: true and false statements about tables.

        python -m experiments.create_statements --task=TEXTS --kinds=synthetic,counterfactual \
          --input_dir=my_tables --output_dir=out/statements --vocab_file=bert_base/vocab.txt
        python -m experiments.create_data --task=JSONL --input_dir=out/statements \
          --output_dir=out/statements_512 --vocab_file=bert_base/vocab.txt
        python -m experiments.finetune --config=statements_base --data_dir=out/statements_512 \
          --init_checkpoint=out/mlm_mate_base --model_dir=out/statements_base

    It starts from a run of masked words, and the other tasks start from it. --architecture=mate
    trains MATE.

    Hardware: as sqa_large. Time: not measured. Score: with it the MATE paper's MATE gains 4.4
    points on TabFact.

    Two steps of 1 x 128 tokens on a busy core (full_size): 0.9 s the second, 2.8 GB.
    """
    # The release names no values of its own; these are TabFact's.
    return dataclasses.replace(tabfact_base(), eval_interval=10_000)


def statements_large() -> ClassificationTrainingConfig:
    r"""The same of the large size, with bert_large's vocabulary in the commands for the data.

        python -m experiments.finetune --config=statements_large --data_dir=out/statements_512 \
          --init_checkpoint=out/mlm_mate_large --model_dir=out/statements_large

    Hardware: as sqa_large. Time: not measured. Score: as statements_base.

    Two steps of 1 x 128 tokens on a busy core (full_size): 3.0 s the second, 6.8 GB.
    """
    return _large(statements_base())


def hybridqa_mate_large() -> TableQATrainingConfig:
    r"""HybridQA's cells with MATE: the first stage of the MATE paper's PointR (section 4.1).

        python -m experiments.create_data --task=HYBRIDQA --input_dir=HybridQA \
          --output_dir=out/hybridqa --vocab_file=tapas_large/vocab.txt --max_seq_length=2048 \
          --trim_cells --original_conversion
        python -m experiments.finetune --config=hybridqa_mate_large --data_dir=out/hybridqa \
          --init_checkpoint=mate_large --model_dir=out/hybridqa_mate_large

    The values are the paper's (appendix A.2). The release has the same values, with another loss.

    Hardware: 32 cores of Cloud TPU v3 in the paper. Time: one day in the paper. Score: MATE paper,
    table 6, dev: 80.1 % Hits@1, 89.2 % Hits@3, 91.5 % Hits@5; from TAPAS's weights 75.5 %, 86.5 %
    and 89.9 %.

    Two steps of 1 x 2,048 tokens on a busy core (full_size): 80.1 s the second, 7.8 GB.
    """
    return TableQATrainingConfig(
        encoder=dataclasses.replace(BERT_LARGE, attention=MATE_WINDOW),
        task=TableQAConfig(operators=(), select_one_column=False, cell_cross_entropy=True),
        **TAPAS_TRAINING
        | LONG
        | steps(80_000, 1e-5, 0.05, length_buckets=(512, 1024), batch_size=128, eval_batch_size=8),
    )


def hybridqa_reader_large() -> SpanReadingTrainingConfig:
    r"""HybridQA's reader: the second stage of the MATE paper's PointR (section 4.2).

        python -m experiments.create_data --task=JSONL --input_dir=hybridqa_cells \
          --output_dir=out/hybridqa_cells --vocab_file=bert_large/vocab.txt --trim_cells \
          --label_answer_spans
        python -m experiments.finetune --config=hybridqa_reader_large \
          --data_dir=out/hybridqa_cells --init_checkpoint=bert_large \
          --model_dir=out/hybridqa_reader_large

    Each table in hybridqa_cells is one cell, which the first stage chose, followed by the sentences
    of its links; experiments.pointr makes such records. The values are the paper's (appendix A.2).
    A span's score is linear, as in the release; --config.task.hidden_size=1024 makes a perceptron.

    Hardware: 32 cores of Cloud TPU v3 in the paper. Time: six hours in the paper. Score: MATE
    paper, table 5, dev: 63.4 % exact match and 71.0 % F1 with the cells of hybridqa_mate_large.

    Two steps of 1 x 128 tokens on a busy core (full_size): 3.3 s the second, 6.7 GB.
    """
    return SpanReadingTrainingConfig(
        # BERT's weights count positions through the whole sequence.
        encoder=dataclasses.replace(BERT_LARGE, position="absolute"),
        task=SpanReadingConfig(),
        **steps(25_000, 5e-5, 0.01),
        **TAPAS_TRAINING,
    )


def pointr_mate_large() -> PointRConfig:
    r"""PointR on HybridQA as in the MATE paper: MATE points, BERT reads (section 4).

        python -m experiments.pointr --config=pointr_mate_large --input_dir=HybridQA \
          --output_dir=out/pointr_mate_large --vocab_file=bert_large/vocab.txt \
          --point_checkpoint=mate_large --read_checkpoint=bert_large

    The stages are hybridqa_mate_large and hybridqa_reader_large, the reader with a perceptron. The
    paper's ablations (table 6) are flags: --config.point.encoder.attention.row_heads_ratio=0 (no
    row heads) or 1 (no column heads), and TAPAS's weights as --point_checkpoint (no sparse
    pre-training). Its baselines are at the top of this file.

    Hardware: 32 cores of Cloud TPU v3 in the paper. Time: a day to point and six hours to read in
    the paper. Score: MATE paper, dev: 63.4 % exact match, 71.0 % F1 (table 5), 80.1 % Hits@1
    (table 6); without row heads 78.3 %, column heads 77.8 %, sparse pre-training 75.5 %.

    Two steps of 1 x 2,048 tokens to point, and of 1 x 128 to read, on a busy core (full_size):
    20.6 s the second and 7.8 GB, 3.8 s and 6.9 GB.
    """
    read = hybridqa_reader_large()
    # The paper does not give the size of its perceptron. This is the encoder's.
    task = dataclasses.replace(read.task, hidden_size=1024)
    return PointRConfig(point=hybridqa_mate_large(), read=dataclasses.replace(read, task=task))


def mlm_mate_base() -> MaskedLMTrainingConfig:
    r"""MATE's pre-training on tables and texts (MATE paper, appendix A.1), base size.

        python -m experiments.create_pretraining_data --task=TEXTS --input_dir=my_tables \
          --output_dir=out/mlm_data --vocab_file=bert_base/vocab.txt --num_shards=64
        python -m experiments.pretrain --config=mlm_mate_base --data_dir=out/mlm_data \
          --init_checkpoint=bert_base --model_dir=out/mlm_mate_base

    The paper's data, 6.2 million tables of Wikipedia with their texts, are not published. At 128
    tokens dense attention is the fastest. It computes all pairs that row heads and column heads
    allow, so linear attention can use the weights too.

    Hardware: 32 cores of Cloud TPU v3 in the paper. Time: not measured. Score: none of the
    pre-training itself is published.

    Two steps of 1 x 128 tokens on a busy core (full_size): 1.2 s the second, 3.1 GB.
    """
    return _pretraining(BERT_BASE, MATE_DENSE)


def mlm_mate_large() -> MaskedLMTrainingConfig:
    r"""MATE's pre-training at the large size, with bert_large's vocabulary in the data's command.

        python -m experiments.pretrain --config=mlm_mate_large --data_dir=out/mlm_data \
          --init_checkpoint=bert_large --model_dir=out/mlm_mate_large

    mlm_mate_base says more about data and values. hybridqa_mate_large starts from the run.

    Hardware: 32 cores of Cloud TPU v3 in the paper. Time: 2 days in the paper. Score: in the MATE
    paper (table 6) it adds 4.6 points of Hits@1 on HybridQA.

    Two steps of 1 x 128 tokens on a busy core (full_size): 3.3 s the second, 7.0 GB.
    """
    return _pretraining(BERT_LARGE, MATE_DENSE)


def mlm_mate_base_2048() -> MaskedLMTrainingConfig:
    r"""MATE with linear attention, pre-trained at the length at which it is used. In no paper.

        python -m experiments.create_pretraining_data --task=TEXTS --input_dir=my_tables \
          --output_dir=out/mlm_lengths --vocab_file=bert_base/vocab.txt --max_seq_length=2048 \
          --num_shards=64
        python -m experiments.pretrain --config=mlm_mate_base_2048 --data_dir=out/mlm_lengths \
          --init_checkpoint=bert_base --model_dir=out/mlm_mate_base_2048

    The examples of a batch have up to 128, 512 or 2,048 tokens.

    Hardware: as mlm_mate_base. Time: not measured. Score: none.

    Two steps of 1 x 2,048 tokens on a busy core (full_size): 10.5 s the second, 3.6 GB.
    """
    return _pretraining(
        BERT_BASE,
        AttentionConfig("mate", evaluator="multi_view"),
        **LONG | dict(length_buckets=(128, 512), batch_size=32),
    )


def mlm_linformer_large() -> MaskedLMTrainingConfig:
    r"""The pre-training of the MATE paper's Linformer (appendix A.1).

        python -m experiments.create_pretraining_data --task=TEXTS --input_dir=my_tables \
          --output_dir=out/mlm_2048 --vocab_file=bert_large/vocab.txt --max_seq_length=2048 \
          --num_shards=64
        python -m experiments.pretrain --config=mlm_linformer_large --data_dir=out/mlm_2048 \
          --init_checkpoint=bert_large --model_dir=out/mlm_linformer_large

    Its projections have one length, so it is pre-trained at the 2,048 tokens of its use. Length,
    batch and steps are the paper's.

    Hardware: 32 cores of Cloud TPU v3 in the paper. Time: 12 days in the paper. Score: none of the
    pre-training itself is published.

    Two steps of 1 x 2,048 tokens on a busy core (full_size): 31.0 s the second, 7.6 GB.
    """
    return _pretraining(
        BERT_LARGE,
        AttentionConfig("linformer", sequence_length=2048, projected_length=256),
        batch_size=128,
        max_seq_length=2048,
        num_steps=2_000_000,
    )


def mlm_table_etc_large() -> MaskedLMTrainingConfig:
    r"""The pre-training of the MATE paper's TableETC (appendix A.1).

        python -m experiments.pretrain --config=mlm_table_etc_large --data_dir=out/mlm_2048 \
          --init_checkpoint=bert_large --model_dir=out/mlm_table_etc_large

    with the data of mlm_linformer_large. Batch and steps are the paper's. It does not give the
    length; the small batch suggests the Linformer's 2,048 tokens. Rows beyond the 127 that have a
    global token share them.

    Hardware: 32 cores of Cloud TPU v3 in the paper. Time: not measured. Score: none of the
    pre-training itself is published.

    Two steps of 1 x 2,048 tokens on a busy core (full_size): 48.7 s the second, 8.6 GB.
    """
    return _pretraining(
        BERT_LARGE,
        AttentionConfig("table_etc", share_global_tokens=True),
        batch_size=32,
        max_seq_length=2048,
        num_steps=2_000_000,
    )
