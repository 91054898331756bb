"""The integer features that describe one token of a question and its table."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple


class TokenFeatures(NamedTuple):
    """Each token's id and indices; all fields are integer arrays of the same shape.

    The shape is [B, S] in the model and [S] for a single example. The names of the first nine
    fields are keys of the TAPAS TFRecord schema (Herzig et al., 2020, section 3).

    Attributes:
        input_ids: wordpiece ids.
        input_mask: 1 for a real token, 0 for padding.
        segment_ids: 0 for [CLS], question, [SEP] and padding; 1 for the table.
        column_ids: 0 for question and padding, 1 to the number of columns in the table.
        row_ids: 0 for question, padding and column headers, 1 to the number of rows in the body.
        prev_label_ids: 1 if the cell answered the previous question of a conversation.
        column_ranks: rank of the cell's number within its column, from 1; 0 without a number.
        inv_column_ranks: the same, counted from the largest.
        numeric_relations: bits that say how the question's numbers compare with the cell's (1
            equal, 2 less, 4 greater).
        part_of_speech_ids: of the question's words (tables/part_of_speech.py), 0 for all other
            tokens; None if nothing reads it.
    """

    input_ids: Any
    input_mask: Any
    segment_ids: Any
    column_ids: Any
    row_ids: Any
    prev_label_ids: Any
    column_ranks: Any
    inv_column_ranks: Any
    numeric_relations: Any
    part_of_speech_ids: Any = None

    def map(self, function: Callable[[Any], Any]) -> "TokenFeatures":
        """Applies a function to each field that is not None."""
        return TokenFeatures(*(None if field is None else function(field) for field in self))

    def structure(self) -> "TokenFeatures":
        """The fields of STRUCTURE alone: the others, which only the embedding reads, are None."""
        return self._replace(**{name: None for name in self._fields if name not in STRUCTURE})

    @classmethod
    def of(cls, features: "TokenFeatures | Mapping[str, Any] | Sequence[Any]") -> "TokenFeatures":
        """Token features as int32 tensors, of integers of any type.

        They may also be a mapping or a sequence of fields, as Keras passes the inputs of a
        functional model. A mapping may lack those that only the embedding reads: they are zeros.
        ValueError if one of STRUCTURE is missing, has no integers, or differs in shape.
        """
        import tensorflow as tf

        if isinstance(features, Mapping):
            if missing := [name for name in STRUCTURE if name not in features]:
                raise ValueError(f"expected the token features {STRUCTURE}, missing {missing}")
            absent = [name for name in TAPAS_FEATURES if name not in features]
            zeros = tf.zeros_like(features["input_mask"]) if absent else None
            features = cls.from_dict(dict.fromkeys(absent, zeros) | dict(features))
        elif not len(TAPAS_FEATURES) <= len(features) <= len(cls._fields):
            raise ValueError(
                f"expected {len(TAPAS_FEATURES)} or {len(cls._fields)} token features, got "
                f"{len(features)}"
            )
        named = zip(cls._fields, features, strict=False)
        tensors = cls(*(None if field is None else _int32(name, field) for name, field in named))
        expected = tensors.input_mask.shape
        for name, field in tensors._asdict().items():
            if field is not None and not expected.is_compatible_with(field.shape):
                raise ValueError(
                    f"expected token features of one shape, got {name} of {tuple(field.shape)} and "
                    f"input_mask of {tuple(expected)}"
                )
        return tensors

    @classmethod
    def from_dict(cls, features: Mapping[str, Any]) -> "TokenFeatures":
        """Takes the fields out of a mapping that may hold more; ValueError if one is missing."""
        if missing := [name for name in TAPAS_FEATURES if name not in features]:
            raise ValueError(f"expected the token features {TAPAS_FEATURES}, missing {missing}")
        return cls(**{name: features[name] for name in cls._fields if name in features})


def _int32(name: str, field: Any) -> Any:
    import tensorflow as tf

    field = tf.convert_to_tensor(field)
    if field.dtype == tf.int32:
        return field
    # Keras builds and exports models with floats where it does not know better.
    if field.dtype.is_bool or field.dtype.is_floating:
        return tf.cast(field, tf.int32)
    if not field.dtype.is_integer:
        raise ValueError(f"expected token features of integers, got {name} of {field.dtype.name}")
    # A number that is too large stays too large, so that the model refuses it.
    if field.dtype.is_unsigned:
        field = tf.minimum(field, tf.cast(min(field.dtype.max, tf.int32.max), field.dtype))
        return tf.cast(field, tf.int32)
    return tf.saturate_cast(field, tf.int32)


PART_OF_SPEECH = "part_of_speech_ids"
# What says where each token is.
STRUCTURE = ("input_mask", "segment_ids", "column_ids", "row_ids")
# The features that every model reads.
TAPAS_FEATURES = tuple(name for name in TokenFeatures._fields if name != PART_OF_SPEECH)
