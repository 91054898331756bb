"""One model at a time, with what is taught before: words, statements, questions, passages."""

from collections.abc import Iterator

from experiments.paper.reproduction.setting import (
    FEW_STEPS,
    Setting,
    Step,
    evaluate,
    predict,
    records,
)

# What PointR is told, as --config.inputs.evidence has it.
_EVIDENCE = {
    "both": "table and passages",
    "table": "the table alone",
    "passages": "the passages alone",
}


def single_run_steps(setting: Setting) -> Iterator[Step]:
    """Pre-training on masked words, and what follows it; fine-tuning without it."""
    yield from _words(setting)
    yield from _statements(setting)
    yield from _questions(setting)
    for evidence in setting.some(tuple(_EVIDENCE)):
        yield _passages(setting, evidence)


def _trained(setting: Setting, preset: str, data: str, start: str) -> tuple[str, ...]:
    """The flags of a run, in the folder of its preset's name."""
    return (
        f"--config={preset}",
        f"--data_dir={setting.at(data)}",
        f"--init_checkpoint={start}",
        f"--model_dir={setting.at(preset)}",
        *(FEW_STEPS if setting.is_small else ()),
    )


def _words(setting: Setting) -> Iterator[Step]:
    data = setting.at("mlm_data")
    yield Step(
        "mlm_data",
        "",
        (),
        (
            (
                "experiments.create_pretraining_data",
                "--task=WTQ",
                f"--input_dir={setting.wtq}",
                f"--output_dir={data}",
                setting.vocab,
                f"--dupe_factor={1 if setting.is_small else 30}",
            ),
        ),
    )
    yield Step(
        "mlm_baselines",
        "Masked words of tables held out: what simple rules get",
        ("mlm_data",),
        (("experiments.paper.masked_lm_baselines", f"--data_dir={data}", "--num_examples=2000"),),
    )
    yield Step(
        "mlm_minilm",
        "Masked words of tables held out, by steps of pre-training",
        ("mlm_data",),
        (
            (
                "experiments.pretrain",
                *_trained(setting, "mlm_minilm", "mlm_data", setting.minilm),
                *(("--config.eval_examples=20",) if setting.is_small else ()),
            ),
        ),
    )


def _statements(setting: Setting) -> Iterator[Step]:
    data = "statements_96"
    preset = "statements_minilm"
    tested = (f"--data={setting.at(data)}/test.jsonl",)
    answers = setting.at(f"{preset}.jsonl")
    yield Step(
        preset,
        "True and false statements about tables that no training has seen",
        (data, "mlm_minilm"),
        (
            (
                "experiments.finetune",
                *_trained(setting, preset, data, setting.at("mlm_minilm")),
            ),
            predict(setting, tested, answers, f"--model={setting.at(preset)}"),
            (
                "experiments.paper.statement_accuracy",
                f"--predictions={answers}",
                *tested,
                *setting.limit,
            ),
        ),
    )


def _questions(setting: Setting) -> Iterator[Step]:
    yield records(setting, "wtq_384", "WTQ", setting.wtq, "--max_seq_length=384")
    preset = "wtq_minilm"
    few_questions = ("--config.eval_questions=20",) if setting.is_small else ()
    asked = (f"--data={setting.at('wtq_384')}/dev.jsonl",)
    answers = setting.at(f"{preset}.jsonl")
    yield Step(
        preset,
        "WikiTableQuestions from MiniLM's weights, the first 512 tokens of a table",
        ("wtq_384",),
        (
            (
                "experiments.finetune",
                *_trained(setting, preset, "wtq_384", setting.minilm),
                *few_questions,
            ),
            predict(setting, asked, answers, f"--model={setting.at(preset)}", "--drop_rows_to_fit"),
            evaluate(setting, asked, answers),
        ),
    )
    whole = "wtq_minilm_2048"
    yield Step(
        whole,
        "WikiTableQuestions from MiniLM's weights, whole tables in the published window",
        ("wtq_2048",),
        (
            (
                "experiments.finetune",
                *_trained(setting, whole, "wtq_2048", setting.minilm),
                "--config.dtype=mixed_bfloat16",
                *few_questions,
            ),
        ),
    )


def _passages(setting: Setting, evidence: str) -> Step:
    few = (
        flag.replace("--config.", f"--config.{stage}.")
        for stage in ("point", "read")
        for flag in FEW_STEPS
    )
    flags = (
        "--config=pointr_minilm",
        f"--config.inputs.evidence={evidence}",
        f"--input_dir={setting.at('corpus')}",
        f"--output_dir={setting.at(f'pointr_{evidence}')}",
        "--eval_splits=test",
        setting.vocab,
        f"--point_checkpoint={setting.at('mlm_minilm')}",
        f"--read_checkpoint={setting.minilm}",
        *(few if setting.is_small else ()),
    )
    return Step(
        f"pointr_{evidence}",
        f"Questions in two hops about generated tables, by what is known: {_EVIDENCE[evidence]}",
        ("linked_corpus", "mlm_minilm"),
        # The second prints the scores alone.
        (("experiments.pointr", *flags), ("experiments.pointr", *flags, "--stage=evaluate")),
    )
