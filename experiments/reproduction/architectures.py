"""The architectures of the papers beside each other."""

from collections.abc import Iterator

from experiments.reproduction.comparison import (
    BIAS_RATE,
    OF_TABLES,
    RESTARTING,
    TRAINED_BIASES,
    TRAINED_HEADS,
    architectures_flag,
    comparison,
    sized_variants,
    wtq_flags,
)
from experiments.reproduction.setting import TABLE_TOKENS, Setting, Step

# Those whose sizes depend on the tables' are variants (`sized_variants`).
_ARCHITECTURES = "tapas", "mate_exact", "sat", "tableformer_pcp", "mate_tableformer"
# From MiniLM's weights also MATE with its published sizes, and TableFormer with all of TAPAS's ids.
_FROM_MINILM = (*_ARCHITECTURES, "mate", "tableformer_rc_gp")
_WITH_BIASES = "tableformer_pcp", "mate_tableformer"
_OF_SENTENCES = "tapas", "grammar_hard", "grammar_hard_extended", "grammar_soft"
# The MATE paper's table 6 has no TableFormer.
_OF_CELLS = "tapas", "mate_exact", "sat"
_POINT_TOKENS = 512


def architecture_steps(setting: Setting) -> Iterator[Step]:
    """All architectures on each task, with and without intermediate pre-training."""
    minilm = f"--init_checkpoint={setting.minilm}"
    trained = f"--init_checkpoint={setting.at('compare_questions')}"
    of_size = sized_variants(TABLE_TOKENS)
    # Biases at the encoder's rate too, and from MiniLM's weights at the higher one.
    slow, fast = (
        tuple(f"--variant={name} {rate}" for name in _WITH_BIASES if not setting.is_small)
        for rate in ("attention_bias_learning_rate_ratio=1", BIAS_RATE)
    )
    every = *architectures_flag(_ARCHITECTURES), *of_size, *slow
    some = *architectures_flag(setting.some(_ARCHITECTURES)), *of_size
    from_minilm = minilm, *architectures_flag(setting.some(_FROM_MINILM)), *of_size
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
    tasks = (
        ("wtq", "WikiTableQuestions", wtq_flags(setting), fast, (*TRAINED_HEADS, *every)),
        ("tabfact", "TabFact", _tabfact_flags(setting), (), ("--reset_heads", *some)),
    )
    for name, of_task, flags, before, after in tasks:
        title, data = f"Architectures on {of_task}", f"{name}_{TABLE_TOKENS}"
        yield comparison(setting, name, title, (data,), *flags, *from_minilm, *before)
        yield comparison(
            setting,
            f"{name}_after_questions",
            f"{title}, after intermediate pre-training",
            (data, "questions"),
            *flags,
            trained,
            RESTARTING,
            TRAINED_BIASES,
            *after,
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
        *architectures_flag(setting.some(_OF_SENTENCES)),
    )
    yield comparison(
        setting,
        "pointing",
        "Cells to point to, of generated tables with passages (MATE paper, table 6)",
        ("linked_corpus",),
        "--config=point_minilm",
        f"--data_dir={setting.at('linked_corpus/point_data')}",
        minilm,
        *architectures_flag(setting.some(_OF_CELLS)),
        *sized_variants(_POINT_TOKENS),
    )


def _tabfact_flags(setting: Setting) -> tuple[str, ...]:
    return "--config=tabfact_minilm", f"--data_dir={setting.at('tabfact_256')}", *OF_TABLES
