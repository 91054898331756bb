"""What several tables of results are made from."""

from collections.abc import Iterator

from experiments.paper.reproduction.setting import (
    FEW_STEPS,
    TABLE_TOKENS,
    Setting,
    Step,
    create_data,
    records,
)


def data_steps(setting: Setting) -> Iterator[Step]:
    """Records, and the weights that all architectures share."""
    fit = f"--max_seq_length={TABLE_TOKENS}", "--drop_rows_to_fit"
    divided = "--divide=train:train=90,calibration=10"
    parts = "train=4,calibration=95,dev=1" if setting.is_small else "train=72,calibration=8,dev=20"
    yield records(setting, "wtq_256", "WTQ", setting.wtq, divided, *fit)
    yield records(
        setting,
        "tabfact_256",
        "TABFACT",
        setting.tabfact,
        "--splits=dev",
        f"--divide=dev:{parts}",
        *fit,
    )
    whole = "--max_seq_length=2048", "--trim_cells"
    yield records(setting, "wtq_2048", "WTQ", setting.wtq, "--splits=train,dev", divided, *whole)
    yield records(
        setting, "sst2", "SST2", setting.sst2, "--max_seq_length=128", "--tagger=textblob"
    )
    texts = setting.at("questions_text")
    yield Step(
        "questions_256",
        "",
        (),
        (
            (
                "experiments.create_questions",
                "--task=WTQ",
                f"--input_dir={setting.wtq}",
                f"--output_dir={texts}",
                setting.vocab,
                "--questions_per_table=12",
                "--max_seq_length=192",
                "--parts=train=90,dev=10",
            ),
            create_data(
                setting, "questions_256", "JSONL", texts, f"--max_seq_length={TABLE_TOKENS}"
            ),
        ),
    )
    texts = setting.at("statements_text")
    stated = (
        "experiments.create_statements",
        "--task=WTQ",
        f"--input_dir={setting.wtq}",
        f"--output_dir={texts}",
        setting.vocab,
        f"--excerpts_per_table={1 if setting.is_small else 12}",
        "--max_rows=5",
        "--max_columns=3",
        "--max_seq_length=96",
    )
    yield Step(
        "statements_96",
        "",
        (),
        (
            (*stated, "--parts=train=100"),
            (*stated, "--splits=dev", "--parts=dev=25,test=75"),
            create_data(setting, "statements_96", "JSONL", texts, "--max_seq_length=96"),
        ),
    )
    # Longer records, so that a Linformer of these weights reads TabFact at 256.
    longer = create_data(
        setting, "statements_256", "JSONL", texts, f"--max_seq_length={TABLE_TOKENS}"
    )
    yield Step("statements_256", "", ("statements_96",), (longer,))
    words = setting.at("words_data")
    yield Step(
        "words",
        "",
        (),
        (
            (
                "experiments.create_pretraining_data",
                "--task=WTQ",
                f"--input_dir={setting.wtq}",
                "--splits=train",
                "--divide=train:train=90,dev=10",
                f"--output_dir={words}",
                setting.vocab,
                f"--dupe_factor={1 if setting.is_small else 24}",
            ),
            (
                "experiments.pretrain",
                "--config=default_words",
                f"--data_dir={words}",
                f"--init_checkpoint={setting.minilm}",
                f"--model_dir={setting.at('words')}",
                *(("--config.eval_examples=20", *FEW_STEPS) if setting.is_small else ()),
            ),
            (
                "experiments.export_weights",
                f"--model_dir={setting.at('words')}",
                f"--output_dir={setting.at('words_weights')}",
            ),
        ),
    )
    yield Step(
        "linked_corpus",
        "",
        (),
        (
            (
                "experiments.create_linked_corpus",
                f"--output_dir={setting.at('corpus')}",
                *(("--num_tables=40",) if setting.is_small else ()),
            ),
            (
                "experiments.pointr",
                "--config=pointr_minilm",
                "--stage=create",
                f"--input_dir={setting.at('corpus')}",
                f"--output_dir={setting.at('linked_corpus')}",
                setting.vocab,
            ),
        ),
    )
