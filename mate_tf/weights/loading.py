"""A checkpoint's tensors into a model's variables, under the names of the TF1 checkpoints.

Shapes: V rows of a table, D hidden.
"""

import dataclasses
import re
from collections.abc import Callable, Mapping, Sequence

import keras
import numpy as np

from mate_tf.layers.encoder import TableEncoder
from mate_tf.tables.operators import TAPAS_OPERATORS

Tensors = Mapping[str, Callable[[], np.ndarray]]

ENCODER = "bert/"
_TYPES = "bert/embeddings/token_type_embeddings"
_POSITIONS = "bert/embeddings/position_embeddings"
_WORDS = "bert/embeddings/word_embeddings"
_POOLER = "bert/pooler/dense/"
# The heads that read the pooled token. TapasForMaskedLM has none of them, and no pooler.
_OF_POOLED = {"output_weights_agg", "output_weights_cls", "cls/seq_relationship/output_weights"}
_OF_OPERATORS = ("output_weights_agg", "output_bias_agg")
_BIAS_OF_NEW_OPERATORS = -4.0
_LAYER = re.compile(r"bert/encoder/layer_(\d+)/")
# What TableFormer, Linformer and TableETC add to BERT; checkpoints to start from lack it.
_OF_AN_ARCHITECTURE = "/self/(relative_|proj_seq_length)|/global_embeddings$"
_RANDOM_STATE = "seed_generator_state"
_PATH_OF_WORDS = "embedding/word_embeddings"
# What makes the checkpoints' names of paths in an encoder, one after the other.
_RENAMED = (
    (r"^embedding/", "embeddings/"),
    (r"^layer_", "encoder/layer_"),
    (r"/attention/(?!output/)(?:relations/)?", "/attention/self/"),
    (r"/attention_layer_norm/", "/attention/output/LayerNorm/"),
    (r"/output_layer_norm/", "/output/LayerNorm/"),
    (r"/layer_norm/", "/LayerNorm/"),
    (r"(intermediate|output|pooler)/(kernel|bias)$", r"\1/dense/\2"),
    (r"proj_seq_length$", "proj_seq_length/kernel"),
)


@dataclasses.dataclass(frozen=True)
class LoadReport:
    """The names of variables that a checkpoint gave to a model, and of others."""

    source: str  # the checkpoint
    loaded: tuple[str, ...]  # took its values
    new: tuple[str, ...]  # of the model, left as they were, for the checkpoint lacks them
    ignored: tuple[str, ...]  # of the checkpoint, which the model lacks
    reset: tuple[str, ...] = ()  # of both, left as they were, for heads start anew
    moved_first_position: bool = False  # whether its embedding became part of [CLS]'s

    def __str__(self) -> str:
        lines = [f"loaded {len(self.loaded)} variables from {self.source}"]
        for kind, names in (
            ("heads among them", [name for name in self.loaded if not name.startswith(ENCODER)]),
            ("not in it, left at their initial value", self.new),
            ("in it, but left at their initial value", self.reset),
            ("in it, but not in the model", self.ignored),
        ):
            lines += [f"{kind}: {', '.join(names)}"] if names else []
        if self.moved_first_position:
            lines.append("what it says of the first position, where [CLS] stands, went to [CLS]")
        return "; ".join(lines)


def assign_variables(
    model: keras.layers.Layer,
    tensors: Tensors,
    source: str,
    *,
    reset_heads: bool = False,
    require_all: bool = False,
    cls_id: int | None = None,
    operators: Sequence[str] = TAPAS_OPERATORS,
) -> LoadReport:
    """Assigns tensors, by their TF1 checkpoint names, to a model's variables.

    BERT has one table of sentence types: its rows become the first rows of the segment table, and
    the six other type tables stay as they are. A position table longer than the model's is cut. A
    pooler may be missing: weights for masked words only have none.

    Tensors are functions that read one, by name; the source is named in messages. `reset_heads`
    leaves everything but the encoder at its initial value. `require_all` makes it an error that the
    checkpoint lacks a variable, unless it is a pooler that no head reads. With the index of [CLS]
    in the vocabulary, BERT's position of [CLS] is made fit for positions that restart in each cell
    (`_move_first_position`). The operators are those of the aggregation head's rows, which go to
    their places in the model.

    ValueError if a tensor of the encoder is missing, the checkpoint has more layers, a tensor has
    another shape than its variable, or, with `require_all`, a variable has no tensor.
    """
    variables = variables_by_name(model)
    _check_layers(encoder_of(model).config.num_layers, tensors, source)
    is_bert = _TYPES in tensors
    has_pooler = any(name.startswith(_POOLER) for name in tensors)
    loaded, new, reset, used = [], [], [], set()
    for name, variable in variables.items():
        stored = _TYPES if is_bert and name == f"{_TYPES}_0" else name
        if stored not in tensors:
            may_be_new = (
                re.search(_OF_AN_ARCHITECTURE, name)
                or (is_bert and name.startswith(_TYPES))
                or (not has_pooler and name.startswith(_POOLER))
            )
            if name.startswith(ENCODER) and not may_be_new:
                raise ValueError(f"expected variable {name!r} in {source}, which does not have it")
            new.append(name)
            continue
        used.add(stored)
        if reset_heads and not name.startswith(ENCODER):
            reset.append(name)
            continue
        value = np.asarray(tensors[stored](), np.float32)
        if name.endswith(_OF_OPERATORS) and len(value) == len(operators):
            value = _of_known_operators(model, value, operators, variable.numpy())
        variable.assign(_fitted(name, value, variable, is_bert, source))
        loaded.append(name)
    without = new + reset
    if not _OF_POOLED & set(variables):
        without = [name for name in without if not name.startswith(_POOLER)]
    if require_all and without:
        raise ValueError(
            f"expected every variable of the model in {source}, which has none for "
            f"{', '.join(without)}; they would be left at their initial value"
        )
    ignored = sorted(name for name in tensors if name not in used)
    moved = False
    if is_bert and cls_id is not None and encoder_of(model).config.position == "per_cell":
        _move_first_position(variables[_WORDS], variables[_POSITIONS], cls_id)
        moved = True
    return LoadReport(source, tuple(loaded), tuple(new), tuple(ignored), tuple(reset), moved)


def _move_first_position(words: keras.Variable, positions: keras.Variable, cls_id: int) -> None:
    """Moves what is special about the first position into the embedding of [CLS].

    In BERT only [CLS] stands there, with an embedding several times as large as the others, which
    would drown the first word of each cell. BERT's own sequences come out the same. [V, D] each.
    """
    word_vectors, position_vectors = words.numpy(), positions.numpy()
    word_vectors[cls_id] += position_vectors[0] - position_vectors[1]
    position_vectors[0] = position_vectors[1]
    words.assign(word_vectors)
    positions.assign(position_vectors)


def check_num_heads(model: keras.layers.Layer, num_heads: int | None, file: object) -> None:
    """Refuses weights with another number of attention heads (None: unknown); no shape shows it."""
    expected = encoder_of(model).config.num_heads
    if num_heads not in (None, expected):
        raise ValueError(
            f"expected {expected} attention heads (num_heads of the model), got {num_heads} in "
            f"{file}"
        )


def _check_layers(num_layers: int, tensors: Tensors, source: str) -> None:
    layers = {name: int(match[1]) for name in sorted(tensors) if (match := _LAYER.match(name))}
    if beyond := [name for name, layer in layers.items() if layer >= num_layers]:
        raise ValueError(
            f"expected {num_layers} layers (num_layers of the model), got "
            f"{len(set(layers.values()))} in {source}, with variable {beyond[0]!r}"
        )


def _fitted(
    name: str, value: np.ndarray, variable: keras.Variable, is_bert: bool, source: str
) -> np.ndarray:
    """The value in the variable's shape: tables [V, D] may be cut or filled up."""
    expected = tuple(variable.shape)
    if value.shape == expected:
        return value
    same_rows = value.ndim and value.shape[1:] == expected[1:]
    if same_rows and len(value) > expected[0] and name == _POSITIONS:
        return value[: expected[0]]
    if same_rows and is_bert and name == f"{_TYPES}_0":
        filled = variable.numpy()
        filled[: len(value)] = value[: len(filled)]
        return filled
    hint = "" if name.startswith(ENCODER) else "; reset_heads leaves the heads out"
    raise ValueError(
        f"expected shape {expected} for variable {name!r}, got {value.shape} in {source}{hint}"
    )


def _of_known_operators(
    model: keras.layers.Layer, value: np.ndarray, operators: Sequence[str], start: np.ndarray
) -> np.ndarray:
    """The rows of an aggregation head, [A] or [A, D], in the order of the model's operators.

    One that is new to the weights keeps its own, and a bias with which it is unlikely.
    """
    names = model.task_config.operators
    if lost := [name for name in operators if name not in names]:
        raise ValueError(
            f"expected a model with the operators of the weights, {', '.join(operators)}, got one "
            f"without {', '.join(lost)}; reset_heads leaves the heads out"
        )
    rows = start if start.ndim > 1 else np.full_like(start, _BIAS_OF_NEW_OPERATORS)
    rows[[names.index(name) for name in operators]] = value
    return rows


def variables_by_name(model: keras.layers.Layer) -> dict[str, keras.Variable]:
    """The variables of an encoder, or of a model that has one, by their checkpoint names.

    Those of heads have their own names, or those of the model's `checkpoint_variables`. ValueError
    if the variables do not exist yet, or two would have one name.
    """
    encoder = encoder_of(model)
    if not encoder.built:
        raise ValueError(f"expected a built model, got {model.name!r} without variables")
    root = encoder.embedding.word_embeddings.path.removesuffix(_PATH_OF_WORDS)
    names = {}
    for variable in encoder.weights:
        if not variable.path.endswith(_RANDOM_STATE):
            name = variable.path.removeprefix(root)
            for pattern, replacement in _RENAMED:
                name = re.sub(pattern, replacement, name)
            names[f"{ENCODER}{name}"] = variable
    if hasattr(model, "checkpoint_variables"):
        names |= model.checkpoint_variables()
    known = {id(variable) for variable in names.values()}
    for variable in model.weights:
        if id(variable) in known or variable.path.endswith(_RANDOM_STATE):
            continue
        if variable.name in names:
            raise ValueError(f"two variables are named {variable.name!r} in model {model.name!r}")
        names[variable.name] = variable
    return names


def encoder_of(model: keras.layers.Layer) -> TableEncoder:
    """The model itself where it is an encoder, or else its `.encoder`."""
    return model if isinstance(model, TableEncoder) else model.encoder
