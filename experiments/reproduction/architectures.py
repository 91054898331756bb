"""The architectures of the papers beside each other."""

from collections.abc import Iterator

from experiments.reproduction.comparison import (
    OF_TABLES,
    RESTARTING,
    TRAINED_HEADS,
    comparison,
    names,
    sized,
    wtq_flags,
)
from experiments.reproduction.setting import TABLE_TOKENS, Setting, Step

# Those whose sizes depend on the tables' are variants (`sized`).
_ARCHITECTURES = "tapas", "mate_exact", "sat", "tableformer_pcp", "mate_tableformer"
_POINT_TOKENS = 512


def architecture_steps(setting: Setting) -> Iterator[Step]:
    """All architectures on each task, with and without intermediate pre-training."""
    minilm = f"--init_checkpoint={setting.minilm}"
    trained = f"--init_checkpoint={setting.at('compare_questions')}"
    of_size = sized(TABLE_TOKENS)
    every = *names(_ARCHITECTURES), *of_size
    some = *names(setting.some(_ARCHITECTURES)), *of_size
    yield comparison(
        setting,
        "questions",
        "Intermediate pre-training: synthetic questions",
        ("questions_256", "words"),
        "--config=questions_minilm",
        *(("--config.eval_questions=40",) if setting.is_small else ()),
        f"--data_dir={setting.at('questions_256')}",
        f"--init_checkpoint={setting.at('words_weights')}",
        "--reset_heads",
        *every,
        "--seeds=1",
    )
    of_wtq = wtq_flags(setting)
    title = "Architectures on WikiTableQuestions"
    # MATE with its published sizes, and TableFormer with all of TAPAS's ids.
    others = "mate", "tableformer_rc_gp"
    yield comparison(
        setting,
        "wtq",
        title,
        ("wtq_256",),
        *of_wtq,
        minilm,
        *names(setting.some((*_ARCHITECTURES, *others))),
        *of_size,
    )
    yield comparison(
        setting,
        "wtq_after_questions",
        f"{title}, after intermediate pre-training",
        ("wtq_256", "questions"),
        *of_wtq,
        trained,
        RESTARTING,
        *TRAINED_HEADS,
        *every,
    )
    of_tabfact = _tabfact_flags(setting)
    title = "Architectures on TabFact"
    yield comparison(setting, "tabfact", title, ("tabfact_256",), *of_tabfact, minilm, *some)
    yield comparison(
        setting,
        "tabfact_after_questions",
        f"{title}, after intermediate pre-training",
        ("tabfact_256", "questions"),
        *of_tabfact,
        trained,
        RESTARTING,
        "--reset_heads",
        *some,
    )
    yield comparison(
        setting,
        "grammar",
        "Grammar-guided attention (its paper's tables I and II)",
        ("sst2",),
        "--config=sst2_minilm",
        f"--data_dir={setting.at('sst2')}",
        "--config.dtype=mixed_bfloat16",
        minilm,
        *names(setting.some(("tapas", "grammar_hard", "grammar_hard_extended", "grammar_soft"))),
    )
    yield comparison(
        setting,
        "pointing",
        "Cells to point to, of generated tables with passages (MATE paper, table 6)",
        ("linked_corpus",),
        "--config=point_minilm",
        f"--data_dir={setting.at('linked_corpus/point_data')}",
        minilm,
        *names(setting.some(_ARCHITECTURES)),
        *sized(_POINT_TOKENS),
    )


def _tabfact_flags(setting: Setting) -> tuple[str, ...]:
    return "--config=tabfact_minilm", f"--data_dir={setting.at('tabfact_256')}", *OF_TABLES
