"""Comparisons of architectures: their one command, and what several have in common."""

from experiments.paper.reproduction.setting import FEW_STEPS, TABLE_TOKENS, Setting, Step

_GLOBAL_TOKENS = 96  # TableETC's: no table here has more than 48 rows or columns
# Sizes and budget of all comparisons on tables.
OF_TABLES = (
    f"--config.max_seq_length={TABLE_TOKENS}",
    "--config.length_buckets=128,192",
    "--config.num_steps=200",
    "--config.eval_interval=200",
    "--config.dtype=mixed_bfloat16",
)
# All that is trained on tables before has positions that restart in each cell.
RESTARTING = "--config.encoder.position=per_cell"
# At the rates that new heads need, those that have been trained forget.
TRAINED_HEADS = "--config.learning_rate=5e-5", "--config.head_learning_rate_ratio=2"
# That of questions_minilm.
BIAS_RATE = "attention_bias_learning_rate_ratio=100"
TRAINED_BIASES = f"--config.{BIAS_RATE}"


def comparison(
    setting: Setting, name: str, title: str, needs: tuple[str, ...], *flags: str
) -> Step:
    """A step of experiments/paper/compare_attention.py."""
    few = (*FEW_STEPS, "--seeds=1") if setting.is_small else ()
    output = f"--output_dir={setting.at(f'compare_{name}')}"
    command = "experiments.paper.compare_attention", output, *flags, *few
    return Step(name, title, needs, (command,))


def architectures_flag(architectures: tuple[str, ...]) -> tuple[str, ...]:
    """The flag that names architectures."""
    return (f"--architectures={','.join(architectures)}",)


def sized_variants(length: int) -> tuple[str, ...]:
    """Architectures with sizes for sequences of a length.

    Linformer is of the paper's compression, 2,048 to 256; all of its batches have one length.
    """
    linformer = f"linformer_256 encoder.attention.projected_length={length // 8} length_buckets="
    table_etc = f"table_etc encoder.attention.num_global_tokens={_GLOBAL_TOKENS}"
    return f"--variant={linformer}", f"--variant={table_etc}"


def wtq_flags(setting: Setting) -> tuple[str, ...]:
    """Preset, data and budget of all comparisons on WikiTableQuestions."""
    return (
        "--config=wtq_minilm",
        f"--data_dir={setting.at('wtq_256')}",
        *OF_TABLES,
        f"--config.eval_questions={40 if setting.is_small else None}",
    )
