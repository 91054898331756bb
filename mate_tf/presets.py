"""The papers' architectures by name, as changes of an encoder's configuration.

A preset replaces the whole attention, and says which ids are embedded. Sizes and dropout stay as
they are, and positions, unless the architecture depends on them. (MATE and the models that its
paper compares it with restart positions in each cell beyond 512 tokens: section 3.2.)
"""

import dataclasses
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from mate_tf.config import ARCHITECTURES, AttentionConfig, EncoderConfig

_STRUCTURE_IDS = ("row_ids", "column_ids")
_RANKS = ("column_ranks", "inv_column_ranks")
# Architectures that have no preset of their defaults.
_WITH_OPTIONS = ("linformer", "tableformer", "mate_tableformer", "mate_neighbours")
# The length of the MATE paper's Linformer (section 6). A run replaces it by its own length.
_LINFORMER_LENGTH = 2048


def _preset(
    architecture: str,
    disabled_features: tuple[str, ...] = (),
    position: str | None = None,
    **options: Any,
) -> dict[str, Any]:
    """An attention with its options, which ids are left out, and the positions if they matter."""
    attention = AttentionConfig(architecture, **options)
    preset = {"attention": attention, "disabled_features": disabled_features}
    return preset if position is None else preset | {"position": position}


# Fields of EncoderConfig. Fields that are not named keep their values.
ARCHITECTURE_PRESETS: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {
        # The defaults are the papers': MATE's G = 116 and R = 42 (appendix); TableETC's 256 global
        # tokens (MATE paper, section 5.1), with ETC's radius and distances; the rules and the bias
        # of 5 of grammar-guided attention (section 3.2). SAT has TAPAS's embeddings, for comparison
        # at equal pre-training.
        **{name: _preset(name) for name in ARCHITECTURES if name not in _WITH_OPTIONS},
        # MATE's pattern without a window: every pair that it allows, tile by tile.
        "mate_exact": _preset("mate", coverage=1.0),
        # SAT itself, which reads a table as plain text (MATE paper, section 2), for records with a
        # histogram row.
        "sat_text_only": _preset("sat", (*_STRUCTURE_IDS, *_RANKS)),
        # 256 was the best of the three. Row, column and rank embeddings stay (MATE paper, 5.1).
        **{
            f"linformer_{length}": _preset(
                "linformer", sequence_length=_LINFORMER_LENGTH, projected_length=length
            )
            for length in (128, 256, 512)
        },
        # With more rules than the paper's (mate_tf/layers/attention/relations.py).
        "grammar_hard_extended": _preset("grammar_hard", grammar_rules="extended"),
        "grammar_soft_extended": _preset("grammar_soft", grammar_rules="extended"),
        # TableFormer paper, section 5.4 and table 5. Row ids, column ids and global positions are
        # taken away one by one. Positions that restart in each cell are its final choice. Ranks
        # stay throughout (section 3).
        "tableformer_rc_gp": _preset("tableformer", (), "absolute"),
        "tableformer_c_gp": _preset("tableformer", ("row_ids",), "absolute"),
        "tableformer_gp": _preset("tableformer", _STRUCTURE_IDS, "absolute"),
        "tableformer_pcp": _preset("tableformer", _STRUCTURE_IDS, "per_cell"),
        # In neither paper: TableFormer's relations in MATE's pattern. At full coverage it does not
        # depend on the order of rows and columns, like tableformer_pcp.
        "mate_tableformer": _preset("mate_tableformer", _STRUCTURE_IDS, "per_cell", coverage=1.0),
        # In no paper: "the next one" is hard to see in row ids alone.
        "mate_neighbours": _preset("mate_neighbours", coverage=1.0),
    }
)


def with_architecture(encoder: EncoderConfig, name: str) -> EncoderConfig:
    """The same encoder with the architecture of a preset; ValueError if there is none.

    A Linformer's sequence_length is the MATE paper's 2,048; training makes it the run's.

    Example:
        >>> with_architecture(EncoderConfig(num_layers=2), "tableformer_pcp").disabled_features
        ('row_ids', 'column_ids')
    """
    if name not in ARCHITECTURE_PRESETS:
        known = ", ".join(ARCHITECTURE_PRESETS)
        raise ValueError(f"expected an architecture among {known}, got {name!r}")
    return dataclasses.replace(encoder, **ARCHITECTURE_PRESETS[name])
