"""Whole tables, asked of models that comparisons have trained."""

from collections.abc import Iterator

from experiments.paper.reproduction.parts import PERTURBED_COPIES
from experiments.paper.reproduction.setting import CUT, Setting, Step, by_length, predict

_ORDER_QUESTIONS = 1_000  # that are asked again in another order


def order_steps(setting: Setting) -> Iterator[Step]:
    """The share of answers that another order of rows and columns changes."""
    of_architectures = "wtq_after_questions", ("tapas", "tableformer_pcp", "mate_tableformer")
    copies = setting.some(PERTURBED_COPIES)
    of_copies = "perturbed_copies", tuple(f"tapas perturbed_copies={number}" for number in copies)
    for comparison, names in (of_architectures, of_copies):
        for name in names:
            run = name.replace(" ", "_")
            # Of positions that were learned up to 256 tokens the whole tables are asked all the
            # same: each cell begins at the first.
            yield Step(
                f"order_{run.replace('=', '_')}",
                f"The order of rows and columns: {name} (TableFormer paper, section 5.2, table 6)",
                (comparison, "wtq_2048"),
                (
                    (
                        "experiments.robustness",
                        f"--model={setting.at(f'compare_{comparison}/{run}_1')}",
                        *setting.questions,
                        "--max_tokens=2048",
                        f"--limit={40 if setting.is_small else _ORDER_QUESTIONS}",
                    ),
                ),
            )


def length_step(setting: Setting) -> Step:
    """Models that read the first 512 tokens beside MATE on the whole table."""
    readers: tuple[tuple[str, str, tuple[str, ...]], ...] = (
        ("MATE whole table", "mate_exact", ()),
        ("MATE 512 tokens", "mate_exact", CUT),
        ("TAPAS 512 tokens", "tapas", CUT),
        ("SAT 512 tokens", "sat", CUT),
        ("TableFormer 512 tokens", "tableformer_pcp", CUT),
    )
    files = {
        name: setting.at(f"lengths_{number}.jsonl") for number, (name, *_) in enumerate(readers)
    }
    asked = (
        predict(
            setting,
            setting.questions,
            files[name],
            f"--model={setting.at(f'compare_wtq_after_questions/{run}_1')}",
            *flags,
        )
        for name, run, flags in readers
    )
    return Step(
        "lengths",
        "Accuracy by the length of the table: MATE on all of it beside models that truncate it",
        ("wtq_after_questions", "wtq_2048"),
        (*asked, by_length(setting, files)),
    )
