"""The configuration of an encoder: a frozen dataclass, and bert_config.json in and out."""

import dataclasses
import json
import pathlib
from collections.abc import Mapping
from typing import Any

from mate_tf.config.attention import AttentionConfig, LinformerConfig
from mate_tf.dataclass_json import convert, from_dict, require, require_fields
from mate_tf.paths import as_path

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
        content = json.loads(as_path(path).read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"expected JSON in {path}: {error}") from None
    require(
        isinstance(content, dict),
        f"expected a JSON object in {path}, got {type(content).__name__}",
    )
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
            **{theirs: getattr(self, ours) for theirs, ours in _OF_BERT.items()},
            "hidden_act": "gelu",
            "type_vocab_size": list(self.type_vocab_sizes),
        }
