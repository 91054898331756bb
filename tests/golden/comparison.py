"""The golden folders, and how arrays are compared with theirs.

A comparison holds when max|a - b| <= tolerance * max(1, max|b|) over the entries that count.
Nothing is left out in silence: an array that the project does not compute fails by its name, or is
listed with a reason, and so is one of which no entry counts.
"""

import dataclasses
import functools
import json
import pathlib
import re
import zlib
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from mate_tf.config import TYPE_FEATURES, AttentionConfig, EncoderConfig, LinformerConfig
from mate_tf.weights.initial import (
    LoadReport,
    assign_variables,
    encoder_of,
    load_tf1_checkpoint,
    variables_by_name,
)
from tests import data_folders
from tests import golden_tally as tally

# The original's attention modes: our architecture and evaluator.
MODES = {
    "full": ("tapas", "dense"),
    "same_colum_or_row": ("sat", "dense"),
    "headwise_same_colum_or_row": ("mate", "dense"),
    "headwise_efficient": ("mate", "multi_view"),
    "table_attention": ("tableformer", "dense"),
}
# The length and the projected length of the Linformer in the checkpoint itself.
KERNEL_OF_CHECKPOINT = (128, 32)


class NotSupportedError(Exception):
    """A golden's configuration that the project does not have; skips the test, and is listed."""


def attention_config(architecture: str, **options: Any) -> AttentionConfig:
    """The config of an architecture with those of the options that it has."""
    kind, *_ = AttentionConfig.kind_of_values({"architecture": architecture}, None)
    own = {field.name for field in dataclasses.fields(kind)}
    return kind(architecture, **{name: value for name, value in options.items() if name in own})


class Golden:
    """A golden folder; what is compared with it goes to the tally."""

    def __init__(self, directory: pathlib.Path):
        self.directory = directory

    def load_index(self, part: str) -> dict:
        """The index of one part of the folder ("encoder", "heads", "data"), {} where absent."""
        path = self.directory / part / "index.json"
        return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}

    def require(self, *names: str) -> list[pathlib.Path]:
        """Paths in the folder; skips the test, and lists it, where one is absent."""
        paths = [self.directory / name for name in names]
        for path in paths:
            if not path.exists():
                tally.absent(path)
        return paths

    def encoder_config(
        self, kwargs: dict, override: dict | None = None, sequence_length: int = 0
    ) -> EncoderConfig:
        """The configuration of the original's create_model arguments.

        Args:
            kwargs: arguments by the original's names; what is absent has its default.
            override: entries that replace those of the folder's bert_config.json.
            sequence_length: tokens in an example; for a Linformer.

        Raises:
            NotSupportedError: if the project has no such model.
        """
        kwargs = {key: value for key, value in kwargs.items() if value is not None}
        mode = kwargs.pop("restrict_attention_mode", "full")
        bucket_size = max(0, kwargs.pop("restrict_attention_bucket_size", 0))
        global_size = kwargs.pop("restrict_attention_header_size", bucket_size)
        ratio = kwargs.pop("restrict_attention_row_heads_ratio", 0.5)
        # Sorting before or after the projections gives the same numbers.
        kwargs.pop("restrict_attention_sort_after_projection", None)
        position = "per_cell" if kwargs.pop("reset_position_index_per_cell", False) else "absolute"
        if kwargs.pop("disable_position_embeddings", False):
            position = "none"
        disabled = tuple(kwargs.pop("disabled_features", ()))
        projected_length = max(0, kwargs.pop("proj_value_length", 0))
        disabled_relation = kwargs.pop("attention_bias_disabled", 0)
        scalar = kwargs.pop("attention_bias_use_relative_scalar_only", True)
        if kwargs:
            raise NotSupportedError(f"unknown arguments {kwargs}")
        if mode not in MODES:
            raise NotSupportedError(f"attention mode {mode}")
        architecture, evaluator = MODES[mode]
        if projected_length:  # whatever the mode: the original projects past every mask
            architecture, evaluator = "linformer", "dense"
        if unknown := set(disabled) - set(TYPE_FEATURES):
            raise NotSupportedError(f"disabled_features {sorted(unknown)}")
        (bert_file,) = self.require("bert_config.json")
        bert = json.loads(bert_file.read_text(encoding="utf-8")) | (override or {})
        if bert.get("hidden_act", "gelu") != "gelu":
            raise NotSupportedError(f"hidden_act {bert['hidden_act']}")
        return EncoderConfig.from_bert_config(
            bert,
            position=position,
            disabled_features=disabled,
            original_ids=True,
            attention=attention_config(
                architecture,
                evaluator=evaluator,
                row_heads_ratio=ratio,
                bucket_size=bucket_size,
                global_size=global_size,
                original_bucketing=bucket_size > 0,
                relation_kind="scalar" if scalar else "embedding",
                disabled_relations=(disabled_relation,) if disabled_relation else (),
                sequence_length=sequence_length,
                projected_length=projected_length or 256,
            ),
        )

    def load_weights(self, model, checkpoint: str = "classifier_all") -> LoadReport:
        """Loads a checkpoint of the folder into a built model.

        A Linformer of another length than the checkpoint's takes its kernels from a file of theirs.
        """
        (index,) = self.require(f"ckpt/{checkpoint}/model.ckpt.index")
        prefix = index.with_suffix("")
        attention = encoder_of(model).config.attention
        if not isinstance(attention, LinformerConfig):
            return load_tf1_checkpoint(model, prefix)
        size = attention.sequence_length, attention.projected_length
        if size == KERNEL_OF_CHECKPOINT:
            return load_tf1_checkpoint(model, prefix)
        (path,) = self.require("ckpt/linformer_extra_kernels.npz")
        reader = tf.train.load_checkpoint(str(prefix))
        tensors = {
            name: functools.partial(reader.get_tensor, name)
            for name in reader.get_variable_to_shape_map()
        }
        suffix = "__{}x{}".format(*size)
        found = {name: value for name, value in read_arrays(path).items() if name.endswith(suffix)}
        if not found:
            raise NotSupportedError(f"{path.name} has no kernel of {suffix.strip('_')}")
        for name, value in found.items():
            variable = name.removesuffix(suffix).replace("|", "/")
            tensors[variable] = functools.partial(np.array, value)
        return assign_variables(model, tensors, str(path))


class PublicGolden(Golden):
    """The numbers that are part of the repository (public/README.md says what they are)."""

    def load_weights(self, model, checkpoint: str = ""):
        variables = variables_by_name(model)
        shapes = {name: tuple(variable.shape) for name, variable in variables.items()}
        values = {name: (lambda n=name, s=shape: weight(n, s)) for name, shape in shapes.items()}
        return assign_variables(model, values, "a function of names and shapes")


# The scale of a variable's values in the public numbers; the first that matches its name counts.
SCALES = {
    r".*relative_bias_table": 1.0,
    r".*(bias.*|beta)": 0.1,
    r".*gamma": 0.2,
    r".*word_embeddings": 0.5,
    r".*(_embeddings.*|output_weights.*)": 0.3,
}


def weight(name: str, shape: tuple[int, ...]) -> np.ndarray:
    """The value of a variable in the original's runs for them, of its name and shape."""
    random = np.random.RandomState(zlib.crc32(f"{name}|{shape}".encode()))
    values = random.standard_normal(shape)
    if name.endswith("kernel"):
        steep = 1.5 if re.search("query|key", name) else 1.0
        return steep * values / np.sqrt(shape[0])
    scale = next(scale for pattern, scale in SCALES.items() if re.fullmatch(pattern, name))
    return scale * values + name.endswith("gamma")


GOLDEN = Golden(data_folders.GOLDEN)
GOLDEN_REAL = Golden(data_folders.GOLDEN_REAL)
PUBLIC = PublicGolden(pathlib.Path(__file__).parent / "public")


def each_of(part: str, wanted: Callable[[str, Any], bool], *goldens: Golden) -> Any:
    """Runs a test with each `golden` and `name` of the folders' index whose entry is wanted."""
    found = [
        pytest.param(golden, name, id=name if golden is GOLDEN else f"public-{name}")
        for golden in goldens or (GOLDEN,)
        for name, entry in golden.load_index(part).items()
        if wanted(name, entry)
    ]
    return pytest.mark.parametrize(("golden", "name"), found)


def compare(family: str, name: str, actual, expected, tolerance: float) -> None:
    """Asserts agreement within tolerance * max(1, max|expected|) and tells the tally.

    What is not finite must be the same at the same places; integers must be equal.
    """
    actual, expected = np.asarray(actual), np.asarray(expected)
    where = f"{family} {name}"
    assert actual.shape == expected.shape, f"{where}: {actual.shape} != {expected.shape}"
    if actual.dtype.kind in "iub" and expected.dtype.kind in "iub":
        np.testing.assert_array_equal(actual, expected, where)
        tally.compared(family, name, 0.0, 0.0)
        return
    actual, expected = actual.astype(np.float64), expected.astype(np.float64)
    numbers = np.isfinite(expected)
    scale = max(1.0, float(np.max(np.abs(expected[numbers]), initial=0.0)))
    np.testing.assert_allclose(actual, expected, rtol=0.0, atol=tolerance * scale, err_msg=where)
    apart = np.abs(actual[numbers] - expected[numbers])
    difference = float(np.max(apart, initial=0.0))
    tally.compared(family, name, difference, difference / scale)


def compare_arrays(
    family: str,
    name: str,
    actual: Mapping[str, Any],
    expected: Mapping[str, np.ndarray],
    tolerance: float,
    *,
    counts: Mapping[str, np.ndarray] | None = None,
    tolerances: Mapping[str, float] | None = None,
    left_out: Mapping[str, str] | None = None,
) -> None:
    """Compares every array of a golden file with the one that is computed here.

    Args:
        family, name: what is compared, for the tally and for messages.
        actual: what is computed here, by the names of the golden file.
        expected: the golden file's arrays.
        tolerance: as of `compare`.
        counts: of some arrays, which entries count: bool, of their first dimensions.
        tolerances: of some arrays, instead of `tolerance`.
        left_out: regular expressions of names that are not compared, each with the reason;
            such arrays are listed in the tally.

    Raises:
        AssertionError: if an array differs, is not computed here, or if none is compared.
    """
    counts, tolerances, left_out = counts or {}, tolerances or {}, left_out or {}
    num_compared = 0
    for key, value in expected.items():
        where = f"{family} {name} {key}"
        reasons = [left_out[pattern] for pattern in left_out if re.fullmatch(pattern, key)]
        if reasons:
            tally.left_out(family, f"{name} {key}", reasons[0])
            continue
        assert actual.get(key) is not None, f"{where} is not computed here: {sorted(actual)}"
        num_compared += 1
        found = np.asarray(actual[key])
        assert found.shape == value.shape, f"{where}: {found.shape} != {value.shape}"
        which = counts.get(key, np.True_)
        assert which.shape == value.shape[: which.ndim], (
            f"{where}: its mask {which.shape} does not fit {value.shape}"
        )
        if which.any():
            limit = tolerances.get(key, tolerance)
            compare(family, f"{name} {key}", found[which], value[which], limit)
        else:
            tally.left_out(family, f"{name} {key}", "all of it is masked")
    assert num_compared, f"{family} {name}: the golden file has no array to compare"


def read_arrays(path: pathlib.Path) -> dict[str, np.ndarray]:
    """The arrays of an .npz file, by name."""
    with np.load(path) as arrays:
        return {name: arrays[name] for name in arrays.files}
