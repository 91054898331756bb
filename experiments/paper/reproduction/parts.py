"""Architectures without some of their parts, beside the whole."""

from collections.abc import Iterator

from experiments.paper.reproduction.comparison import (
    RESTARTING,
    TRAINED_BIASES,
    TRAINED_HEADS,
    comparison,
    wtq_flags,
)
from experiments.paper.reproduction.setting import Setting, Step

# Of TableFormer's relations (mate_tf/layers/attention/relations.py), those left out at once.
_RELATIONS_LEFT_OUT = (*map(str, range(1, 13)), "2,4,6")
# Of the many runs without some part.
_OF_PARTS = (
    "--config.num_steps=60",
    "--config.eval_interval=60",
    "--config.eval_questions=1000",
)
PERTURBED_COPIES = (0, 1, 2, 4, 8, 16)


def part_steps(setting: Setting) -> Iterator[Step]:
    """MATE and TableFormer without some of their parts, after intermediate pre-training."""

    def part(name: str, title: str, start: str, variants: tuple[str, ...]) -> Step:
        return comparison(
            setting,
            name,
            title,
            ("wtq_256", "questions"),
            *wtq_flags(setting),
            *(() if setting.is_small else _OF_PARTS),
            f"--init_checkpoint={setting.at(f'compare_questions/{start}_1')}",
            RESTARTING,
            *TRAINED_HEADS,
            TRAINED_BIASES,
            "--architectures=",
            *(f"--variant={variant}" for variant in setting.some(variants)),
        )

    yield part(
        "heads",
        "MATE's heads and window (MATE paper, table 6)",
        "mate_exact",
        (
            "mate_exact",
            "mate",
            "mate_exact encoder.attention.row_heads_ratio=1.0",
            "mate_exact encoder.attention.row_heads_ratio=0.0",
        ),
    )
    # Positions through the sequence in the place of those that restart, and structure taken away.
    absolute, without = "encoder.position=absolute", "encoder.disabled_features"
    yield part(
        "tableformer_variants",
        "TableFormer's parts (its paper's table 5), all from TAPAS with positions that restart",
        "tapas",
        (
            f"tapas {absolute}",
            f"tapas {absolute} {without}=row_ids",
            f"tapas {absolute} {without}=row_ids,column_ids",
            f"tapas {without}=row_ids,column_ids",
            f"sat {absolute}",
            *(f"tableformer_{of} {absolute}" for of in ("rc_gp", "c_gp", "gp")),
            "tableformer_pcp",
        ),
    )
    yield part(
        "perturbed_copies",
        "Training on tables in other orders (TableFormer paper, table 6)",
        "tapas",
        tuple(f"tapas perturbed_copies={number}" for number in PERTURBED_COPIES),
    )
    yield part(
        "relations",
        "TableFormer without some relations (its paper's table 7)",
        "tableformer_pcp",
        (
            "tableformer_pcp",
            *(
                f"tableformer_pcp encoder.attention.disabled_relations={numbers}"
                for numbers in _RELATIONS_LEFT_OUT
            ),
        ),
    )
