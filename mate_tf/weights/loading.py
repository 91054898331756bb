"""Assigns the tensors of a checkpoint to a model and says what became of each.

Shapes: V rows of a table, D hidden.
"""

import dataclasses
import re
from collections.abc import Callable, Mapping

import keras
import numpy as np

from mate_tf.weights.names import variables_by_name

_TYPES = "bert/embeddings/token_type_embeddings"
_POSITIONS = "bert/embeddings/position_embeddings"
# What TableFormer, Linformer, TableETC and a learned grammar bias add to BERT; all start from
# checkpoints without.
_OF_AN_ARCHITECTURE = "/self/(relative_|proj_seq_length|grammar_bias)|/global_embeddings$"


@dataclasses.dataclass(frozen=True)
class LoadReport:
    """What a checkpoint gave to a model.

    Attributes:
        source: the checkpoint.
        loaded: names of the variables that took its values.
        new: names of the model's variables that it does not have, left as they were.
        ignored: names of its variables that the model does not have.
    """

    source: str
    loaded: tuple[str, ...]
    new: tuple[str, ...]
    ignored: tuple[str, ...]

    def __str__(self) -> str:
        lines = [f"loaded {len(self.loaded)} variables from {self.source}"]
        if self.new:
            lines.append(f"not in it, left at their initial value: {', '.join(self.new)}")
        if self.ignored:
            lines.append(f"in it, but not in the model: {', '.join(self.ignored)}")
        return "; ".join(lines)


def assign_variables(
    model: keras.layers.Layer, tensors: Mapping[str, Callable[[], np.ndarray]], source: str
) -> LoadReport:
    """Assigns tensors, by their TF1 checkpoint names, to a model's variables.

    A BERT checkpoint has one table of sentence types: its rows become the first of the segment
    table, and the six other type tables are left as they are. A position table longer than the
    model's is cut.

    Args:
        model: a built `TableEncoder` or a model with one as `.encoder`.
        tensors: functions that read a tensor, by name.
        source: what to call the checkpoint in messages.

    Raises:
        ValueError: if a tensor of the encoder is missing or has another shape than the variable.
    """
    variables = variables_by_name(model)
    is_bert = _TYPES in tensors
    loaded, new, used = [], [], set()
    for name, variable in variables.items():
        stored = _TYPES if is_bert and name == f"{_TYPES}_0" else name
        if stored not in tensors:
            may_be_new = re.search(_OF_AN_ARCHITECTURE, name) or (
                is_bert and name.startswith(_TYPES)
            )
            if name.startswith("bert/") and not may_be_new:
                raise ValueError(f"expected variable {name!r} in {source}, which does not have it")
            new.append(name)
            continue
        used.add(stored)
        value = np.asarray(tensors[stored](), np.float32)
        variable.assign(_fitted(name, value, variable, is_bert, source))
        loaded.append(name)
    ignored = tuple(sorted(name for name in tensors if name not in used))
    return LoadReport(source, tuple(loaded), tuple(new), ignored)


def _fitted(
    name: str, value: np.ndarray, variable: keras.Variable, is_bert: bool, source: str
) -> np.ndarray:
    """The value in the variable's shape: [V, D] tables may be cut or filled up, nothing else."""
    expected = tuple(variable.shape)
    if value.shape == expected:
        return value
    if name == _POSITIONS and value.shape[1:] == expected[1:] and len(value) > expected[0]:
        return value[: expected[0]]
    if is_bert and name == f"{_TYPES}_0" and value.shape[1:] == expected[1:]:
        filled = variable.numpy()
        rows = min(len(value), len(filled))
        filled[:rows] = value[:rows]
        return filled
    raise ValueError(
        f"expected shape {expected} for variable {name!r}, got {value.shape} in {source}"
    )
