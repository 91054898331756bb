"""Configurations of encoders: frozen dataclasses, and bert_config.json in and out."""

import dataclasses
import json
import pathlib
from collections.abc import Mapping
from typing import Any, ClassVar

from mate_tf.dataclass_json import convert, from_dict, require

ARCHITECTURES = (
    "tapas",
    "sat",
    "mate",
    "tableformer",
    "mate_tableformer",
    "linformer",
    "grammar_hard",
    "grammar_soft",
    "table_etc",
)
EVALUATORS = ("dense", "multi_view")
# Architectures whose heads sort the tokens, so that tokens that attend to each other are close.
SORTED_ARCHITECTURES = ("mate", "mate_tableformer")
RELATION_KINDS = ("scalar", "embedding")
GRAMMAR_RULES = ("paper", "extended")
NUM_RELATIONS = 13
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
        content = json.loads(pathlib.Path(path).read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"expected JSON in {path}: {error}") from None
    require(
        isinstance(content, dict),
        f"expected a JSON object in {path}, got {type(content).__name__}",
    )
    return content


@dataclasses.dataclass(frozen=True)
class AttentionConfig:
    """Who may attend to whom, and how the attention is computed (MATE paper, section 3).

    Attributes:
        architecture: one of
            "tapas": every token attends to every token;
            "sat": to its row, its column and the question, the same in all heads;
            "mate": the first heads attend within rows, the others within columns;
            "tableformer": to every token, with a learned bias for each of 13 relations;
            "mate_tableformer": "mate" with these biases;
            "linformer": to a learned projection of the sequence;
            "grammar_hard", "grammar_soft": words of the question attend as their parts of speech
            allow, or favour;
            "table_etc": to its neighbours, and to global tokens for rows and columns.
        evaluator: "dense" computes all pairs, for every architecture. "multi_view" is linear in
            the sequence length, for "mate" and "mate_tableformer" only. None chooses: dense up to
            `dense_up_to` tokens and linear beyond, where there is a linear one, with the same
            result. "table_etc" then computes by blocks at any length.
        row_heads_ratio: share of MATE's heads that attend within rows; the number is rounded down.
        bucket_size: tokens in a bucket, the paper's radius R. A token attends to its own bucket
            and to both neighbours. 0, for the dense evaluator only, lifts the restriction.
        global_size: the paper's global size G: the first tokens in each head's order, which attend
            to all tokens and are attended by all.
        original_bucketing: computes as the authors' release does. It joins the first and the last
            bucket. With fewer than three buckets it counts keys twice or three times. Its dense
            evaluator joins at a wrong distance if bucket_size and global_size differ.
        num_neighbours: how many buckets on each side a token attends to; 1 in the paper.
        coverage: None computes the window. 1.0, for the multi-view evaluator, computes all that
            the pattern allows, tile by tile. The cost then follows the sum of the squared lengths
            of rows or columns, bucket_size is the size of a tile, and there is no global part.
        relation_kind: TableFormer's biases: "scalar" learns a number for each relation, head and
            layer; "embedding" learns a vector that is multiplied by the query.
        disabled_relations: relations from 1 to 12 (mate_tf/layers/attention/relations.py) that
            count as relation 0, "other" (TableFormer paper, table 7).
        sequence_length: the only length that a Linformer takes; 0 for all others.
        projected_length: how many keys a Linformer projects the sequence to.
        grammar_rules: "paper", or "extended" for more rules (mate_tf/layers/attention/grammar.py).
        grammar_bias: what "grammar_soft" adds to the scores of favoured pairs, after their division
            (grammar-guided attention paper, section 3.2, alpha).
        learn_grammar_bias: learns this number for each head and layer; it is the start value then.
        num_global_tokens: of TableETC. The first half stands for rows, the header row first; the
            second half stands for columns.
        local_radius: how far, before and after it, a token of TableETC attends; ETC's default.
        max_relative_distance: all larger distances between two tokens of TableETC count as this
            one; ETC's default.
        share_global_tokens: if a table has more rows or columns than TableETC has global tokens,
            the count begins again with the first of them; otherwise such a table is an error.
        dense_up_to: with evaluator None, the longest sequence of which all pairs are computed.
            None is about 500 tokens (mate_tf/layers/attention/by_length.py), measured on a CPU.
            original_bucketing never computes all pairs, for the result would differ.
    """

    architecture: str = "mate"
    evaluator: str | None = None
    row_heads_ratio: float = 0.5
    bucket_size: int = 42
    global_size: int = 116
    original_bucketing: bool = False
    num_neighbours: int = 1
    coverage: float | None = None
    relation_kind: str = "scalar"
    disabled_relations: tuple[int, ...] = ()
    sequence_length: int = 0
    projected_length: int = 256
    grammar_rules: str = "paper"
    grammar_bias: float = 5.0
    learn_grammar_bias: bool = False
    num_global_tokens: int = 256
    local_radius: int = 84
    max_relative_distance: int = 12
    share_global_tokens: bool = False
    dense_up_to: int | None = None

    # Options of former versions with the value that no run changed; saved models name them.
    FORMER_FIELDS: ClassVar = {"scale_relations": False}

    def __post_init__(self) -> None:
        require(
            self.architecture in ARCHITECTURES,
            f"expected architecture in {ARCHITECTURES}, got {self.architecture!r}",
        )
        require(
            self.evaluator is None or self.evaluator in EVALUATORS,
            f"expected evaluator in {EVALUATORS}, got {self.evaluator!r}",
        )
        require(
            0.0 <= self.row_heads_ratio <= 1.0,
            f"expected row_heads_ratio between 0 and 1, got {self.row_heads_ratio}",
        )
        if self.evaluator == "multi_view":
            require(
                self.architecture in SORTED_ARCHITECTURES,
                f"expected architecture in {SORTED_ARCHITECTURES} with evaluator 'multi_view', got "
                f"{self.architecture!r}; its heads share no order, use evaluator 'dense' or None",
            )
        smallest = 1 if self.is_multi_view else 0
        require(
            self.bucket_size >= smallest,
            f"expected bucket_size of at least {smallest} with evaluator "
            f"{'multi_view' if smallest else 'dense'!r}, got {self.bucket_size}",
        )
        require(
            self.global_size >= smallest,
            f"expected global_size of at least {smallest} with evaluator "
            f"{'multi_view' if smallest else 'dense'!r}, got {self.global_size}",
        )
        require(
            self.num_neighbours >= 1,
            f"expected num_neighbours of at least 1, got {self.num_neighbours}",
        )
        require(
            not self.original_bucketing or (self.num_neighbours == 1 and self.coverage is None),
            "expected original_bucketing with one neighbour and no coverage, got "
            f"num_neighbours {self.num_neighbours} and coverage {self.coverage}",
        )
        require(
            self.coverage is None or (self.coverage == 1.0 and self.is_multi_view),
            "expected coverage of None, or of 1.0 with evaluator 'multi_view', got "
            f"{self.coverage}",
        )
        require(
            self.relation_kind in RELATION_KINDS,
            f"expected relation_kind in {RELATION_KINDS}, got {self.relation_kind!r}",
        )
        wrong = [k for k in self.disabled_relations if not 0 < k < NUM_RELATIONS]
        require(
            not wrong, f"expected disabled_relations from 1 to {NUM_RELATIONS - 1}, got {wrong}"
        )
        require(
            self.grammar_rules in GRAMMAR_RULES,
            f"expected grammar_rules in {GRAMMAR_RULES}, got {self.grammar_rules!r}",
        )
        require(
            not self.learn_grammar_bias or self.architecture == "grammar_soft",
            "expected learn_grammar_bias with architecture 'grammar_soft' only, got "
            f"{self.architecture!r}",
        )
        require(
            self.num_global_tokens >= 2 and self.num_global_tokens % 2 == 0,
            "expected an even num_global_tokens of at least 2, half for rows and half for columns, "
            f"got {self.num_global_tokens}",
        )
        require(
            self.local_radius >= 1,
            f"expected local_radius of at least 1, got {self.local_radius}",
        )
        require(
            self.max_relative_distance >= 0,
            f"expected max_relative_distance of at least 0, got {self.max_relative_distance}",
        )
        if self.architecture == "linformer":
            require(
                self.sequence_length >= 1 and self.projected_length >= 1,
                "expected sequence_length and projected_length of at least 1 with architecture "
                f"'linformer', got {self.sequence_length} and {self.projected_length}",
            )

    @property
    def is_multi_view(self) -> bool:
        """Whether the linear evaluator is used."""
        if self.evaluator is None:
            return self.architecture in SORTED_ARCHITECTURES
        return self.evaluator == "multi_view"

    @property
    def is_linear(self) -> bool:
        """Whether time and memory grow with the length of the sequence and not with its square."""
        return self.is_multi_view or (self.has_global_tokens and self.evaluator is None)

    @property
    def has_global_tokens(self) -> bool:
        """Whether learned global tokens stand before the sequence."""
        return self.architecture == "table_etc"

    @property
    def has_relations(self) -> bool:
        """Whether TableFormer's relations are used."""
        return self.architecture in ("tableformer", "mate_tableformer")

    @property
    def is_grammar_guided(self) -> bool:
        """Whether parts of speech of the question's words are needed."""
        return self.architecture in ("grammar_hard", "grammar_soft")


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
        for name in ("vocab_size", "hidden_size", "num_layers", "num_heads", "intermediate_size"):
            value = getattr(self, name)
            require(value >= 1, f"expected {name} of at least 1, got {value}")
        require(
            self.hidden_size % self.num_heads == 0,
            f"expected hidden_size to be a multiple of num_heads, got {self.hidden_size} and "
            f"{self.num_heads}",
        )
        require(
            self.position in POSITIONS, f"expected position in {POSITIONS}, got {self.position!r}"
        )
        require(
            self.activation in ACTIVATIONS,
            f"expected activation in {ACTIVATIONS}, got {self.activation!r}",
        )
        require(
            len(self.type_vocab_sizes) == len(TYPE_FEATURES),
            f"expected {len(TYPE_FEATURES)} type_vocab_sizes, got {len(self.type_vocab_sizes)}",
        )
        unknown = sorted(set(self.disabled_features) - set(TYPE_FEATURES))
        require(not unknown, f"expected disabled_features among {TYPE_FEATURES}, got {unknown}")
        require(
            self.softmax_temperature > 0,
            f"expected softmax_temperature above 0, got {self.softmax_temperature}",
        )

    @property
    def head_size(self) -> int:
        """Units of one attention head."""
        return self.hidden_size // self.num_heads

    @property
    def fixed_length(self) -> int | None:
        """The only sequence length that a Linformer takes; None for all others."""
        is_linformer = self.attention.architecture == "linformer"
        return self.attention.sequence_length if is_linformer else None

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

        Args:
            source: the file, or its content.
            **overrides: fields that are not in such a file, for example attention and position.

        Raises:
            FileNotFoundError: if there is no such file.
            ValueError: if it is not a BERT configuration, or a value has another type than its
                field.
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
        # BERT's own configuration has a single type vocabulary, for sentences A and B.
        if isinstance(sizes, list | tuple):
            kind = kinds["type_vocab_sizes"]
            values["type_vocab_sizes"] = convert(sizes, kind, f"type_vocab_size in {name}")
        return cls(**(values | overrides))

    def to_bert_config(self) -> dict[str, Any]:
        """The content of a bert_config.json with this configuration's sizes."""
        return {
            "vocab_size": self.vocab_size,
            "hidden_size": self.hidden_size,
            "num_hidden_layers": self.num_layers,
            "num_attention_heads": self.num_heads,
            "intermediate_size": self.intermediate_size,
            "hidden_act": "gelu",
            "hidden_dropout_prob": self.hidden_dropout,
            "attention_probs_dropout_prob": self.attention_dropout,
            "max_position_embeddings": self.max_position_embeddings,
            "type_vocab_size": list(self.type_vocab_sizes),
            "initializer_range": self.initializer_range,
            "softmax_temperature": self.softmax_temperature,
        }
