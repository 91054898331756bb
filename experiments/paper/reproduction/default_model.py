"""What the default model answers, and where it looks."""

from collections.abc import Iterator

from experiments.paper.reproduction.setting import CUT, Setting, Step, by_length, evaluate, predict


def default_model_steps(setting: Setting) -> Iterator[Step]:
    """The model that comes with the package."""
    whole = setting.at("default_whole.jsonl")
    yield Step(
        "default_wtq",
        "The default model on WikiTableQuestions' dev split",
        ("wtq_2048",),
        (
            predict(setting, setting.questions, whole),
            evaluate(setting, setting.questions, whole),
        ),
    )
    yield Step(
        "default_baselines",
        "The least to beat on WikiTableQuestions' dev split",
        ("wtq_2048",),
        (
            (
                "experiments.paper.answer_baselines",
                f"--train={setting.at('wtq_2048/train.jsonl')}",
                *setting.questions,
            ),
        ),
    )

    def beside_whole(name: str, title: str, names: tuple[str, str], file: str, *flags: str) -> Step:
        """The model on whole tables, under the first name, beside it with some flags."""
        other = setting.at(file)
        return Step(
            name,
            title,
            ("default_wtq",),
            (
                predict(setting, setting.questions, other, *flags),
                by_length(setting, {names[0]: whole, names[1]: other}),
            ),
        )

    yield beside_whole(
        "default_by_length",
        "Accuracy by the length of the table, whole and cut to 512 tokens",
        ("whole", "512 tokens"),
        "default_512.jsonl",
        *CUT,
    )
    yield beside_whole(
        "default_coverage",
        "MATE's window of the published sizes, 42 and 116, beside full coverage, by the length",
        ("full coverage", "42 and 116"),
        "default_42_116.jsonl",
        "--architecture=mate",
    )
    look_up = setting.at("look_up")
    asked = f"--data={look_up}/test.jsonl", "--task=JSONL"
    answers = f"{look_up}/predictions.jsonl"
    yield Step(
        "default_look_up",
        "Single cells to look up, in words and tables that no training has seen",
        (),
        (
            (
                "experiments.create_questions",
                "--task=WTQ",
                f"--input_dir={setting.wtq}",
                "--splits=dev",
                "--parts=test=100",
                f"--output_dir={look_up}",
                setting.vocab,
                "--operations=look_up",
                "--held_out_forms",
                "--whole_tables",
                "--max_seq_length=2048",
                "--questions_per_table=4",
            ),
            predict(setting, asked, answers),
            evaluate(setting, asked, answers),
        ),
    )
    yield Step(
        "default_flow",
        "Where the default model's attention flows (MATE paper, table 7)",
        ("wtq_2048",),
        (
            (
                "experiments.paper.attention_flow",
                f"--data_dir={setting.at('wtq_2048')}",
                f"--output_dir={setting.at('default_flow')}",
                f"--num_examples={20 if setting.is_small else 120}",
            ),
        ),
    )
