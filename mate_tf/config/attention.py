"""Configurations of attention: one frozen dataclass for each kind."""

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar

from mate_tf.dataclass_json import require, require_fields

RELATION_KINDS = ("scalar", "embedding")
GRAMMAR_RULES = ("paper", "extended")
NUM_RELATIONS = 13


@dataclasses.dataclass(frozen=True, init=False)
class AttentionConfig:
    """Who may attend to whom, and how the attention is computed (MATE paper, section 3).

    Each kind of attention has a class of its own, below. `AttentionConfig("sat")` makes the one of
    an architecture, with its options; `AttentionConfig()` is MATE's.

    Attributes:
        architecture: the name of the pattern.
    """

    architecture: str = "mate"

    architectures: ClassVar[tuple[str, ...]] = ()
    is_grammar_guided: ClassVar[bool] = False  # needs parts of speech of the question's words
    # Options of former versions with the value that no run changed; saved models name them.
    FORMER_FIELDS: ClassVar = {"scale_relations": False, "num_neighbours": 1}

    def __new__(cls, architecture: str = "mate", *_: Any, **__: Any) -> "AttentionConfig":
        kind = _kind_of(architecture) if cls is AttentionConfig else cls
        return object.__new__(kind)

    def __post_init__(self) -> None:
        require(
            self.architecture in self.architectures,
            f"expected architecture in {self.architectures}, got {self.architecture!r}",
        )

    @property
    def is_linear(self) -> bool:
        """Whether time and memory grow with the length of the sequence and not with its square."""
        return False

    @classmethod
    def kind_of_values(
        cls, values: Mapping[str, Any], current: "AttentionConfig | None"
    ) -> tuple[type["AttentionConfig"], Mapping[str, Any], "AttentionConfig | None"]:
        """The class of what JSON or overrides say, their values, and the config they change.

        Former versions had one class with the options of all kinds, and stored all of them: those
        of other kinds are left out. A change of the architecture keeps the options of both kinds.
        """
        kind = _kind_of(values.get("architecture", getattr(current, "architecture", "mate")))
        own = {field.name for field in dataclasses.fields(kind)}
        if current is None:
            others = {field.name for one in _KINDS for field in dataclasses.fields(one)} - own
            return kind, {key: values[key] for key in values if key not in others}, None
        if type(current) is kind:
            return kind, values, current
        kept = {name: value for name, value in vars(current).items() if name in own}
        return kind, kept | dict(values), None


@dataclasses.dataclass(frozen=True)
class AllPairsConfig(AttentionConfig):
    """Attention without a window.

    Attributes:
        architecture: "tapas": every token attends to every token; "sat": to its row, its column and
            the question, the same in all heads.
    """

    architecture: str = "tapas"
    architectures: ClassVar = ("tapas", "sat")


@dataclasses.dataclass(frozen=True)
class MateConfig(AttentionConfig):
    """The first heads attend within rows, the others within columns.

    Attributes:
        evaluator: "dense" computes all pairs; "multi_view" is linear in the sequence length. None
            chooses: dense up to `dense_up_to` tokens and linear beyond, with the same result.
        row_heads_ratio: share of the heads that attend within rows; the number is rounded down.
        bucket_size: tokens in a bucket, the paper's radius R. A token attends to its own bucket
            and to both neighbours. 0, for the dense evaluator only, lifts the restriction.
        global_size: the paper's global size G: the first tokens in each head's order, which attend
            to all tokens and are attended by all.
        original_bucketing: computes as the authors' release does. It joins the first and the last
            bucket. With fewer than three buckets it counts keys twice or three times. Its dense
            evaluator joins at a wrong distance if bucket_size and global_size differ.
        coverage: None computes the window. 1.0, not for the dense evaluator, computes all that the
            pattern allows, tile by tile. The cost then follows the sum of the squared lengths of
            rows or columns, bucket_size is the size of a tile, and there is no global part.
        dense_up_to: with evaluator None, the longest sequence of which all pairs are computed.
            None is about 500 tokens (mate_tf/layers/attention/kinds.py), measured on a CPU.
            original_bucketing never computes all pairs, for the result would differ.
    """

    evaluator: str | None = None
    row_heads_ratio: float = 0.5
    bucket_size: int = 42
    global_size: int = 116
    original_bucketing: bool = False
    coverage: float | None = None
    dense_up_to: int | None = None
    architectures: ClassVar = ("mate",)

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_evaluator(self, "dense", "multi_view")
        require_fields(self, lambda share: 0 <= share <= 1, "between 0 and 1", "row_heads_ratio")
        smallest = 1 if self.is_linear else 0
        evaluator = "multi_view" if self.is_linear else "dense"
        require_fields(
            self,
            lambda size: size >= smallest,
            f"of at least {smallest} with evaluator {evaluator!r}",
            "bucket_size",
            "global_size",
        )
        require(
            self.coverage is None
            or (self.coverage == 1.0 and self.is_linear and not self.original_bucketing),
            "expected coverage of None, or of 1.0 with evaluator 'multi_view' and without "
            f"original_bucketing, got {self.coverage}",
        )

    @property
    def is_linear(self) -> bool:
        """As of every attention."""
        return self.evaluator != "dense"


@dataclasses.dataclass(frozen=True)
class TableFormerConfig(AttentionConfig):
    """Every token attends to every token, with a learned bias for each of 13 relations.

    Attributes:
        relation_kind: "scalar" learns a number for each relation, head and layer; "embedding"
            learns a vector that is multiplied by the query.
        disabled_relations: relations from 1 to 12 (mate_tf/layers/attention/relations.py) that
            count as relation 0, "other" (TableFormer paper, table 7).
    """

    architecture: str = "tableformer"
    relation_kind: str = "scalar"
    disabled_relations: tuple[int, ...] = ()
    architectures: ClassVar = ("tableformer",)

    def __post_init__(self) -> None:
        super().__post_init__()
        require_fields(self, RELATION_KINDS.__contains__, f"in {RELATION_KINDS}", "relation_kind")
        wrong = [k for k in self.disabled_relations if not 0 < k < NUM_RELATIONS]
        require(
            not wrong, f"expected disabled_relations from 1 to {NUM_RELATIONS - 1}, got {wrong}"
        )


@dataclasses.dataclass(frozen=True)
class MateTableFormerConfig(TableFormerConfig, MateConfig):
    """MATE's heads, with TableFormer's biases."""

    architecture: str = "mate_tableformer"
    architectures: ClassVar = ("mate_tableformer",)


@dataclasses.dataclass(frozen=True)
class LinformerConfig(AttentionConfig):
    """Every token attends to a learned projection of the sequence.

    Attributes:
        sequence_length: the only length that it takes.
        projected_length: how many keys it projects the sequence to.
    """

    architecture: str = "linformer"
    sequence_length: int = 0
    projected_length: int = 256
    architectures: ClassVar = ("linformer",)

    def __post_init__(self) -> None:
        super().__post_init__()
        require(
            self.sequence_length >= 1 and self.projected_length >= 1,
            "expected sequence_length and projected_length of at least 1 with architecture "
            f"'linformer', got {self.sequence_length} and {self.projected_length}",
        )


@dataclasses.dataclass(frozen=True)
class GrammarHardConfig(AttentionConfig):
    """Words of the question attend as their parts of speech allow.

    Attributes:
        grammar_rules: "paper", or "extended" for more rules (mate_tf/layers/attention/grammar.py).
    """

    architecture: str = "grammar_hard"
    grammar_rules: str = "paper"
    architectures: ClassVar = ("grammar_hard",)
    is_grammar_guided: ClassVar = True

    def __post_init__(self) -> None:
        super().__post_init__()
        require_fields(self, GRAMMAR_RULES.__contains__, f"in {GRAMMAR_RULES}", "grammar_rules")


@dataclasses.dataclass(frozen=True)
class GrammarSoftConfig(GrammarHardConfig):
    """Words of the question attend everywhere, and favour what their parts of speech allow.

    Attributes:
        grammar_bias: what is added to the scores of favoured pairs, after their division
            (grammar-guided attention paper, section 3.2, alpha).
        learn_grammar_bias: learns this number for each head and layer; it is the start value then.
    """

    architecture: str = "grammar_soft"
    grammar_bias: float = 5.0
    learn_grammar_bias: bool = False
    architectures: ClassVar = ("grammar_soft",)


@dataclasses.dataclass(frozen=True)
class TableETCConfig(AttentionConfig):
    """A token attends to its neighbours, and to global tokens for rows and columns.

    Attributes:
        evaluator: None computes by blocks, linear in the length; "dense" computes all pairs.
        num_global_tokens: the first half stands for rows, the header row first; the second half
            stands for columns.
        local_radius: how far, before and after it, a token attends; ETC's default.
        max_relative_distance: all larger distances count as this one; ETC's default.
        share_global_tokens: if a table has more rows or columns than there are global tokens, the
            count begins again with the first of them; otherwise such a table is an error.
    """

    architecture: str = "table_etc"
    evaluator: str | None = None
    num_global_tokens: int = 256
    local_radius: int = 84
    max_relative_distance: int = 12
    share_global_tokens: bool = False
    architectures: ClassVar = ("table_etc",)

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_evaluator(self, "dense")
        require(
            self.num_global_tokens >= 2 and self.num_global_tokens % 2 == 0,
            "expected an even num_global_tokens of at least 2, half for rows and half for columns, "
            f"got {self.num_global_tokens}",
        )
        require_fields(self, lambda radius: radius >= 1, "of at least 1", "local_radius")
        require_fields(self, lambda far: far >= 0, "of at least 0", "max_relative_distance")

    @property
    def is_linear(self) -> bool:
        """As of every attention."""
        return self.evaluator is None


_KINDS = (
    AllPairsConfig,
    MateConfig,
    TableFormerConfig,
    MateTableFormerConfig,
    LinformerConfig,
    GrammarHardConfig,
    GrammarSoftConfig,
    TableETCConfig,
)
ARCHITECTURES = tuple(name for kind in _KINDS for name in kind.architectures)


def _kind_of(architecture: str) -> type[AttentionConfig]:
    kind = next((kind for kind in _KINDS if architecture in kind.architectures), None)
    if kind is None:
        raise ValueError(f"expected architecture in {ARCHITECTURES}, got {architecture!r}")
    return kind


def _check_evaluator(config: MateConfig | TableETCConfig, *evaluators: str) -> None:
    expected = f"of None or in {evaluators} with architecture {config.architecture!r}"
    require_fields(config, evaluators.__contains__, expected, "evaluator")
