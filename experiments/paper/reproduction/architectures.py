"""The architectures of the papers beside each other."""

from collections.abc import Iterator

from experiments.paper.reproduction.comparison import (
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
from experiments.paper.reproduction.setting import TABLE_TOKENS, Setting, Step

# Those whose sizes depend on the tables' are variants (`sized_variants`).
_ARCHITECTURES = "tapas", "mate_exact", "sat", "tableformer_pcp", "mate_tableformer"
# From MiniLM's weights also MATE with its published sizes, and TableFormer with all of TAPAS's ids.
_FROM_MINILM = (*_ARCHITECTURES, "mate", "tableformer_rc_gp")
_WITH_BIASES = "tableformer_pcp", "mate_tableformer"
_OF_SENTENCES = "tapas", "grammar_hard", "grammar_hard_extended", "grammar_soft"
# The MATE paper's table 6 has no TableFormer.
_OF_CELLS = "tapas", "mate_exact", "sat"
_POINT_TOKENS = 512
# A quarter of statements_minilm's steps, and records as long as those of questions_minilm.
_STATEMENTS_BUDGET = (
    f"--config.max_seq_length={TABLE_TOKENS}",
    "--config.length_buckets=48,64,96",
    "--config.num_steps=600",
    "--config.eval_interval=600",
    "--config.learning_rate=3e-5",
)
# At the preset's rates TabFact takes from a model what it knows of synthetic statements.
_SLOWLY = "--config.learning_rate=5e-6", "--config.head_learning_rate_ratio=1"


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
    title = "Architectures on WikiTableQuestions"
    yield comparison(setting, "wtq", title, ("wtq_256",), *wtq_flags(setting), *from_minilm, *fast)
    yield comparison(
        setting,
        "wtq_after_questions",
        f"{title}, after intermediate pre-training",
        ("wtq_256", "questions"),
        *wtq_flags(setting),
        trained,
        RESTARTING,
        TRAINED_BIASES,
        *TRAINED_HEADS,
        *every,
    )
    yield comparison(
        setting,
        "statements",
        "Intermediate pre-training: synthetic statements, after the questions",
        ("statements_256", "questions"),
        "--config=statements_minilm",
        f"--data_dir={setting.at('statements_256')}",
        *_STATEMENTS_BUDGET,
        trained,
        RESTARTING,
        TRAINED_BIASES,
        "--reset_heads",
        *some,
        "--seeds=1",
    )
    tabfact = "--config=tabfact_minilm", f"--data_dir={setting.at('tabfact_256')}", *OF_TABLES
    title = "Architectures on TabFact"
    yield comparison(setting, "tabfact", title, ("tabfact_256",), *tabfact, *from_minilm)
    yield comparison(
        setting,
        "tabfact_after_statements",
        f"{title}, after intermediate pre-training",
        ("tabfact_256", "statements"),
        *tabfact,
        f"--init_checkpoint={setting.at('compare_statements')}",
        RESTARTING,
        TRAINED_BIASES,
        *_SLOWLY,
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
