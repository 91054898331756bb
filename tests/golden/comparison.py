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
from collections.abc import Mapping
from typing import Any, NoReturn

import numpy as np
import pytest
import tensorflow as tf

from mate_tf.config import TYPE_FEATURES, AttentionConfig, EncoderConfig, LinformerConfig
from mate_tf.weights.initial import load_tf1_checkpoint
from mate_tf.weights.loading import LoadReport, assign_variables, encoder_of
from tests.golden_tally import Tally

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
    """A golden's configuration that the project does not have."""


def attention_config(architecture: str, **options: Any) -> AttentionConfig:
    """The config of an architecture with those of the options that it has."""
    kind, *_ = AttentionConfig.kind_of_values({"architecture": architecture}, None)
    own = {field.name for field in dataclasses.fields(kind)}
    return kind(architecture, **{name: value for name, value in options.items() if name in own})


class Golden:
    """A golden folder and the tally of what was compared with it."""

    NotSupportedError = NotSupportedError

    def __init__(self, directory: pathlib.Path, tally: Tally):
        self.directory = directory
        self.tally = tally

    def load_index(self, part: str) -> dict:
        """The index of one part of the folder ("encoder", "heads", "data"), {} where absent."""
        path = self.directory / part / "index.json"
        if not path.exists():
            return {}
        return json.loads(path.read_text(encoding="utf-8"))

    def require(self, *names: str) -> list[pathlib.Path]:
        """Paths in the folder; skips the test, and counts it, where one is absent."""
        paths = [self.directory / name for name in names]
        for path in paths:
            if not path.exists():
                self.tally.absent.append(str(path.relative_to(self.directory)))
                pytest.skip(f"absent from the golden folder: {path.name}")
        return paths

    def skip_without(self, folder: pathlib.Path) -> NoReturn:
        """Skips the test because a folder is absent, which the tally says."""
        self.tally.absent_folders.add(str(folder))
        pytest.skip(f"no folder {folder}")

    def not_compared(self, family: str, name: str, reason: str) -> NoReturn:
        """Lists a golden that the project does not support, and skips the test."""
        self.tally.left_out.append((family, name, reason))
        pytest.skip(f"not compared: {reason}")

    def encoder_config(
        self, kwargs: dict, override: dict | None = None, sequence_length: int = 0
    ) -> EncoderConfig:
        """The configuration of the original's create_model arguments.

        Args:
            kwargs: arguments by the original's names; what is absent has its default.
            sequence_length: tokens in an example; for a Linformer.
            override: entries that replace those of the folder's bert_config.json.

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

    def compare(self, family: str, name: str, actual, expected, tolerance: float) -> None:
        """Asserts agreement within tolerance * max(1, max|expected|) and counts it.

        What is not finite must be the same at the same places; integers are compared as such.
        """
        actual, expected = np.asarray(actual), np.asarray(expected)
        assert actual.shape == expected.shape, f"{name}: {actual.shape} != {expected.shape}"
        if actual.dtype.kind in "iub" and expected.dtype.kind in "iub":
            wrong = actual != expected
            # As floats, large integers could be equal that are not.
            apart = np.abs(actual[wrong].astype(float) - expected[wrong].astype(float))
            difference = float(np.max(np.maximum(apart, 1.0), initial=0.0))
            scale = max(1.0, float(np.max(np.abs(expected.astype(float)), initial=0.0)))
        else:
            actual, expected = actual.astype(np.float64), expected.astype(np.float64)
            is_number = np.isfinite(expected)
            same = is_number == np.isfinite(actual)
            assert same.all(), f"{name}: NaN or infinite at other places, {_first(~same)}"
            others = zip(actual[~is_number], expected[~is_number], strict=True)
            assert all(np.array_equal(a, b, equal_nan=True) for a, b in others), (
                f"{name}: NaN and infinity are exchanged"
            )
            actual, expected = actual[is_number], expected[is_number]
            difference = float(np.max(np.abs(actual - expected), initial=0.0))
            scale = max(1.0, float(np.max(np.abs(expected), initial=0.0)))
        self.tally.compared[family].append((name, difference, difference / scale))
        assert difference <= tolerance * scale, (
            f"{family} {name}: largest difference {difference:.3g}, allowed {tolerance * scale:.3g}"
        )

    def compare_arrays(
        self,
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
        reasons = {
            key: reason
            for key in expected
            for pattern, reason in left_out.items()
            if re.fullmatch(pattern, key)
        }
        for key, reason in reasons.items():
            self.tally.left_out.append((family, f"{name} {key}", reason))
        compared = [key for key in expected if key not in reasons]
        absent = [key for key in compared if actual.get(key) is None]
        assert not absent, (
            f"{family} {name}: the golden file has {absent}, which is not computed here; "
            f"computed are {sorted(actual)}"
        )
        assert compared, f"{family} {name}: the golden file has no array to compare"
        for key in compared:
            found, value = np.asarray(actual[key]), expected[key]
            assert found.shape == value.shape, f"{name} {key}: {found.shape} != {value.shape}"
            if key in counts:
                which = counts[key]
                assert which.shape == value.shape[: which.ndim], (
                    f"{name} {key}: its mask {which.shape} does not fit {value.shape}"
                )
                if not which.any():
                    reason = "all of it is masked"
                    self.tally.left_out.append((family, f"{name} {key}", reason))
                    continue
                found, value = found[which], value[which]
            self.compare(family, f"{name} {key}", found, value, tolerances.get(key, tolerance))


def read_arrays(path: pathlib.Path) -> dict[str, np.ndarray]:
    """The arrays of an .npz file, by name."""
    with np.load(path) as arrays:
        return {name: arrays[name] for name in arrays.files}


def _first(where: np.ndarray) -> str:
    return f"first at {tuple(map(int, np.argwhere(where)[0]))}"
