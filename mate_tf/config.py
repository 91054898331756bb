"""Configurations of encoders and of their attention: frozen dataclasses, to JSON and back."""

import dataclasses
import json
import pathlib
from collections.abc import Mapping
from typing import Any, ClassVar

from mate_tf.dataclass_json import convert, from_dict, require, require_fields
from mate_tf.paths import as_path

RELATION_KINDS = ("scalar", "embedding")
GRAMMAR_RULES = ("paper", "extended")
# TableFormer's relations (figure 2 and section 4.1), in the order of published checkpoints.
RELATION_NAMES = (
    "other",
    "same row",
    "same column",
    "same cell",
    "cell to its column header",
    "cell to sentence",
    "header to cell of its column",
    "header to other header",
    "header to same header",
    "header to sentence",
    "sentence to cell",
    "sentence to header",
    "sentence to sentence",
)
POSITIONS = ("absolute", "per_cell", "none")
ACTIVATIONS = ("gelu", "gelu_tanh")
# TAPAS lists its seven type vocabularies in this order.
TYPE_FEATURES = (
    "segment_ids",
    "column_ids",
    "row_ids",
    "prev_label_ids",
    "column_ranks",
    "inv_column_ranks",
    "numeric_relations",
)


@dataclasses.dataclass(frozen=True, init=False)
class AttentionConfig:
    """Who may attend to whom, and how the attention is computed (MATE paper, section 3).

    Each kind of attention has a class of its own. `AttentionConfig("sat")` makes the one of an
    architecture, the name of a pattern, with its options; `AttentionConfig()` is MATE's.
    """

    architecture: str = "mate"

    is_grammar_guided: ClassVar[bool] = False  # needs parts of speech of the question's words

    def __new__(cls, architecture: str = "mate", *_: Any, **__: Any) -> "AttentionConfig":
        kind = _kind_of(architecture) if cls is AttentionConfig else cls
        return object.__new__(kind)

    def __post_init__(self) -> None:
        own = tuple(name for name, kind in _KINDS.items() if kind is type(self))
        expected = f"expected architecture in {own}, got {self.architecture!r}"
        require(self.architecture in own, expected)

    @property
    def is_linear(self) -> bool:
        """Whether time and memory grow with the length of the sequence and not with its square."""
        return False

    @classmethod
    def kind_of_values(
        cls, values: Mapping[str, Any], current: "AttentionConfig | None"
    ) -> tuple[type["AttentionConfig"], Mapping[str, Any], "AttentionConfig | None"]:
        """The class of what JSON or overrides say, their values, and the config they change.

        A change of the architecture keeps the options of both kinds.
        """
        kind = _kind_of(values.get("architecture", getattr(current, "architecture", "mate")))
        if current is None:
            return kind, values, None
        if type(current) is kind:
            return kind, values, current
        own = {field.name for field in dataclasses.fields(kind)}
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
            bucket, and never computes all pairs. With fewer than three buckets it counts keys twice
            or three times. Its dense evaluator joins at a wrong distance if bucket_size and
            global_size differ.
        coverage: None computes the window. 1.0, not for the dense evaluator, computes all that the
            pattern allows, tile by tile. The cost then follows the sum of the squared lengths of
            rows or columns, bucket_size is the size of a tile, and there is no global part.
        dense_up_to: with evaluator None, the longest sequence of which all pairs are computed.
            None is what was measured: about 500 tokens on a CPU; for inference on a GPU 2,048, or
            4,096 with full coverage.
    """

    evaluator: str | None = None
    row_heads_ratio: float = 0.5
    bucket_size: int = 42
    global_size: int = 116
    original_bucketing: bool = False
    coverage: float | None = None
    dense_up_to: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_evaluator(self, "dense", "multi_view")
        require_fields(self, lambda share: 0 <= share <= 1, "between 0 and 1", "row_heads_ratio")
        smallest, evaluator = (1, "multi_view") if self.is_linear else (0, "dense")
        expected = f"of at least {smallest} with evaluator {evaluator!r}"
        sizes = "bucket_size", "global_size"
        require_fields(self, lambda size: size >= smallest, expected, *sizes)
        require(
            self.coverage is None
            or (self.coverage == 1.0 and self.is_linear and not self.original_bucketing),
            "expected coverage of None, or of 1.0 with evaluator 'multi_view' and without "
            f"original_bucketing, got {self.coverage}",
        )

    @property
    def is_linear(self) -> bool:
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

    def __post_init__(self) -> None:
        super().__post_init__()
        require_fields(self, RELATION_KINDS.__contains__, f"in {RELATION_KINDS}", "relation_kind")
        most = len(RELATION_NAMES) - 1
        wrong = [k for k in self.disabled_relations if not 0 < k <= most]
        require(not wrong, f"expected disabled_relations from 1 to {most}, got {wrong}")


@dataclasses.dataclass(frozen=True)
class MateTableFormerConfig(TableFormerConfig, MateConfig):
    """MATE's heads, with TableFormer's biases."""

    architecture: str = "mate_tableformer"


@dataclasses.dataclass(frozen=True)
class MateNeighboursConfig(MateConfig):
    """MATE's heads. Those of columns learn biases for the rows above and below each cell's."""

    architecture: str = "mate_neighbours"


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
        grammar_rules: "paper", or "extended" for more (mate_tf/layers/attention/relations.py).
    """

    architecture: str = "grammar_hard"
    grammar_rules: str = "paper"
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
    """

    architecture: str = "grammar_soft"
    grammar_bias: float = 5.0


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
        return self.evaluator is None


_KINDS: dict[str, type[AttentionConfig]] = {
    "tapas": AllPairsConfig,
    "sat": AllPairsConfig,
    "mate": MateConfig,
    "tableformer": TableFormerConfig,
    "mate_tableformer": MateTableFormerConfig,
    "mate_neighbours": MateNeighboursConfig,
    "linformer": LinformerConfig,
    "grammar_hard": GrammarHardConfig,
    "grammar_soft": GrammarSoftConfig,
    "table_etc": TableETCConfig,
}
ARCHITECTURES = tuple(_KINDS)


def architectures_of(kind: type[AttentionConfig]) -> tuple[str, ...]:
    """The names of a kind's architectures."""
    return tuple(name for name, own in _KINDS.items() if issubclass(own, kind))


def _kind_of(architecture: str) -> type[AttentionConfig]:
    if architecture not in _KINDS:
        raise ValueError(f"expected architecture in {tuple(_KINDS)}, got {architecture!r}")
    return _KINDS[architecture]


def _check_evaluator(config: MateConfig | TableETCConfig, *evaluators: str) -> None:
    expected = f"of None or in {evaluators} with architecture {config.architecture!r}"
    require_fields(config, evaluators.__contains__, expected, "evaluator")


# The keys of bert_config.json and our fields. The first five are required.
_OF_BERT = {
    "vocab_size": "vocab_size",
    "hidden_size": "hidden_size",
    "num_hidden_layers": "num_layers",
    "num_attention_heads": "num_heads",
    "intermediate_size": "intermediate_size",
    "hidden_dropout_prob": "hidden_dropout",
    "attention_probs_dropout_prob": "attention_dropout",
    "max_position_embeddings": "max_position_embeddings",
    "initializer_range": "initializer_range",
    "layer_norm_eps": "layer_norm_epsilon",
    "softmax_temperature": "softmax_temperature",
}
_SIZES = tuple(_OF_BERT)[:5]


def read_json_object(path: str | pathlib.Path) -> dict[str, Any]:
    """Reads the JSON object in a file; ValueError if the file holds something else."""
    try:
        content = json.loads(as_path(path).read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"expected JSON in {path}: {error}") from None
    got = type(content).__name__
    require(isinstance(content, dict), f"expected a JSON object in {path}, got {got}")
    return content


@dataclasses.dataclass(frozen=True)
class EncoderConfig:
    """A Transformer encoder over a question and its table (TAPAS paper, section 3).

    The default sizes are BERT base's. Sizes are in units; dropout rates are probabilities.

    Attributes:
        activation: "gelu" is exact (Hugging Face); "gelu_tanh" is the approximation in the
            published TAPAS and MATE checkpoints.
        type_vocab_sizes: rows of the seven type embeddings, in the order of TYPE_FEATURES. Larger
            ids share the last row: of 256 rows it stands for the 256th table row and all after
            it. Attention and answers still tell those rows apart.
        position: "per_cell" restarts the position index in each cell. "absolute" counts through
            the sequence, which max_position_embeddings then limits. "none" leaves positions out.
        disabled_features: type features that are left out.
        softmax_temperature: attention scores are divided by it.
        original_ids: treats ids that are too large as the authors' release does, for its
            checkpoints. Such an id adds nothing to the embedding. With position "per_cell", row
            r >= 256 of a column shares its counter with row r - 256 of the next column. (The
            release also limits cells to 64 rows and 32 columns: see TableQAConfig.)
    """

    vocab_size: int = 30522
    hidden_size: int = 768
    num_layers: int = 12
    num_heads: int = 12
    intermediate_size: int = 3072
    activation: str = "gelu_tanh"
    hidden_dropout: float = 0.1
    attention_dropout: float = 0.1
    max_position_embeddings: int = 512
    type_vocab_sizes: tuple[int, ...] = (3, 256, 256, 2, 256, 256, 10)
    position: str = "per_cell"
    disabled_features: tuple[str, ...] = ()
    initializer_range: float = 0.02
    layer_norm_epsilon: float = 1e-12
    softmax_temperature: float = 1.0
    original_ids: bool = False
    attention: AttentionConfig = dataclasses.field(default_factory=AttentionConfig)

    def __post_init__(self) -> None:
        sizes = [_OF_BERT[name] for name in _SIZES]
        require_fields(self, lambda size: size >= 1, "of at least 1", *sizes)
        require_fields(self, POSITIONS.__contains__, f"in {POSITIONS}", "position")
        require_fields(self, ACTIVATIONS.__contains__, f"in {ACTIVATIONS}", "activation")
        require_fields(self, lambda value: value > 0, "above 0", "softmax_temperature")
        require(
            self.hidden_size % self.num_heads == 0,
            f"expected hidden_size to be a multiple of num_heads, got {self.hidden_size} and "
            f"{self.num_heads}",
        )
        require(
            len(self.type_vocab_sizes) == len(TYPE_FEATURES),
            f"expected {len(TYPE_FEATURES)} type_vocab_sizes, got {len(self.type_vocab_sizes)}",
        )
        unknown = sorted(set(self.disabled_features) - set(TYPE_FEATURES))
        require(not unknown, f"expected disabled_features among {TYPE_FEATURES}, got {unknown}")

    @property
    def head_size(self) -> int:
        """Units of one attention head."""
        return self.hidden_size // self.num_heads

    @property
    def fixed_length(self) -> int | None:
        """The only sequence length that a Linformer takes; None for all others."""
        attention = self.attention
        return attention.sequence_length if isinstance(attention, LinformerConfig) else None

    @property
    def longest_sequence(self) -> int | None:
        """The largest number of tokens; None if there is no limit."""
        limits = [self.fixed_length] if self.fixed_length else []
        if self.position == "absolute":
            limits.append(self.max_position_embeddings)
        return min(limits, default=None)

    def to_dict(self) -> dict[str, Any]:
        """The configuration as plain values, for JSON and for Keras's get_config."""
        return dataclasses.asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "EncoderConfig":
        """The inverse of to_dict, as `dataclass_json.from_dict`."""
        return from_dict(cls, values, "encoder")

    @classmethod
    def from_bert_config(
        cls, source: str | pathlib.Path | Mapping[str, Any], **overrides: Any
    ) -> "EncoderConfig":
        """Reads the sizes from a bert_config.json of the TAPAS or BERT release.

        The source is the file, or its content; the overrides are fields that are not in such a
        file, such as attention and position. FileNotFoundError if there is no such file, ValueError
        if it is no BERT configuration or a value is not of its field's type.
        """
        name = "the given values" if isinstance(source, Mapping) else str(source)
        content = source if isinstance(source, Mapping) else read_json_object(source)
        kinds = {field.name: field.type for field in dataclasses.fields(cls)}
        given = {key: content[key] for key in _OF_BERT if content.get(key) is not None}
        missing = [key for key in _SIZES if key not in given]
        require(not missing, f"expected a BERT configuration in {name}, missing {missing}")
        hidden_act = content.get("hidden_act", "gelu")
        require(hidden_act == "gelu", f"expected hidden_act 'gelu' in {name}, got {hidden_act!r}")
        values = {
            _OF_BERT[key]: convert(value, kinds[_OF_BERT[key]], f"{key} in {name}")
            for key, value in given.items()
        }
        sizes = content.get("type_vocab_sizes", content.get("type_vocab_size"))
        if isinstance(sizes, list | tuple):  # BERT's own is one number, for sentences A and B
            kind = kinds["type_vocab_sizes"]
            values["type_vocab_sizes"] = convert(sizes, kind, f"type_vocab_size in {name}")
        return cls(**(values | overrides))
