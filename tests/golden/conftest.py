"""Compares with the golden files, and counts each comparison (tests/golden_tally.py).

A comparison holds when max|a - b| <= tolerance * max(1, max|b|). The folders come from the
environment: MATE_TF_GOLDEN_DIR, by default ../shared/golden beside the repository, whose index.json
files say what there is, and MATE_TF_GOLDEN_REAL_DIR, by default ../shared/golden_real, the same for
real tables.
"""

import json
import pathlib
from typing import NoReturn

import numpy as np
import pytest

from tests import data_folders
from tests.golden_tally import TALLY, Tally


class NotSupportedError(Exception):
    """A golden's configuration that the project does not have yet."""


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
        """Skips the test for want of a folder, and lets a run fail that is to compare it all."""
        self.tally.absent_folders.add(str(folder))
        pytest.skip(f"no folder {folder}")

    def not_compared(self, family: str, name: str, reason: str) -> None:
        """Lists a golden that the project does not support yet, and skips the test."""
        self.tally.left_out.append((family, name, reason))
        pytest.skip(f"not compared: {reason}")

    def encoder_config(self, kwargs: dict, override: dict | None = None, sequence_length: int = 0):
        """The configuration of the original's create_model arguments.

        Args:
            kwargs: arguments by the original's names; what is absent has its default.
            sequence_length: tokens in an example; for a Linformer.
            override: entries that replace those of the folder's bert_config.json.

        Raises:
            NotSupportedError: if the project has no such model yet.
        """
        from mate_tf.config import AttentionConfig, EncoderConfig

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
        kwargs.pop("token_weights", None)  # an argument of the call here
        for key, value in kwargs.items():
            raise NotSupportedError(f"{key}={value}")
        architectures = {
            "full": ("tapas", "dense"),
            "same_colum_or_row": ("sat", "dense"),
            "headwise_same_colum_or_row": ("mate", "dense"),
            "headwise_efficient": ("mate", "multi_view"),
            "table_attention": ("tableformer", "dense"),
        }
        if mode not in architectures:
            raise NotSupportedError(f"attention mode {mode}")
        architecture, evaluator = architectures[mode]
        if projected_length:  # whatever the mode: the original projects past every mask
            architecture, evaluator = "linformer", "dense"
        names = {
            "row_ids",
            "column_ids",
            "segment_ids",
            "prev_label_ids",
            "column_ranks",
            "inv_column_ranks",
            "numeric_relations",
        }
        if set(disabled) - names:
            raise NotSupportedError(f"disabled_features {disabled}")
        bert = json.loads((self.directory / "bert_config.json").read_text(encoding="utf-8"))
        bert |= override or {}
        if bert.get("hidden_act", "gelu") != "gelu":
            raise NotSupportedError(f"hidden_act {bert['hidden_act']}")
        return EncoderConfig.from_bert_config(
            bert,
            position=position,
            disabled_features=disabled,
            original_ids=True,
            attention=AttentionConfig(
                architecture=architecture,
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

    def compare(self, family: str, name: str, actual, expected, tolerance: float) -> None:
        """Asserts agreement within tolerance * max(1, max|expected|) and counts it."""
        actual = np.asarray(actual, np.float64)
        expected = np.asarray(expected, np.float64)
        assert actual.shape == expected.shape, f"{name}: {actual.shape} != {expected.shape}"
        same_nan = np.isnan(actual) == np.isnan(expected)
        assert same_nan.all(), f"{name}: NaN at other places"
        difference = float(np.max(np.abs(np.nan_to_num(actual - expected)), initial=0.0))
        scale = max(1.0, float(np.max(np.abs(np.nan_to_num(expected)), initial=0.0)))
        self.tally.compared[family].append((name, difference, difference / scale))
        assert difference <= tolerance * scale, (
            f"{family} {name}: largest difference {difference:.3g}, allowed {tolerance * scale:.3g}"
        )


_GOLDEN = Golden(data_folders.GOLDEN, TALLY)
_GOLDEN_REAL = Golden(data_folders.GOLDEN_REAL, TALLY)


@pytest.fixture(scope="session")
def golden() -> Golden:
    if not _GOLDEN.directory.is_dir():
        pytest.skip(f"no golden folder at {_GOLDEN.directory}")
    return _GOLDEN


@pytest.fixture(scope="session")
def golden_real() -> Golden:
    if not _GOLDEN_REAL.directory.is_dir():
        _GOLDEN_REAL.skip_without(_GOLDEN_REAL.directory)
    return _GOLDEN_REAL


def pytest_configure(config) -> None:
    # For pytest_generate_tests in the test modules, which fixtures do not reach.
    config.golden, config.golden_real = _GOLDEN, _GOLDEN_REAL
