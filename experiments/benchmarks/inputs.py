"""What the benchmarks of the encoder share: the attentions, and made-up tables."""

from typing import Any

from mate_tf.config import ARCHITECTURES, AttentionConfig

QUESTION_TOKENS, _CELL_TOKENS = 16, 2


def attentions(length: int) -> dict[str, AttentionConfig]:
    """What can be timed, for examples of a length."""
    options: dict[str, dict[str, Any]] = {
        "linformer": dict(sequence_length=length),
        # Long examples have more rows than it has global tokens for.
        "table_etc": dict(share_global_tokens=True),
    }
    return {
        **{name: AttentionConfig(name, **options.get(name, {})) for name in ARCHITECTURES},
        "mate_64_128": AttentionConfig("mate", bucket_size=64, global_size=128),
        "mate_views": AttentionConfig("mate", "multi_view"),
        "mate_dense": AttentionConfig("mate", "dense"),
        "mate_exact": AttentionConfig("mate", bucket_size=64, coverage=1.0),
    }


def parse_lengths(texts: list[str]) -> list[int]:
    """The --lengths of a benchmark: each holds more than the question."""
    try:
        lengths = [int(text) for text in texts]
    except ValueError:
        raise ValueError(f"expected whole numbers as --lengths, got {texts}") from None
    if min(lengths) <= QUESTION_TOKENS:
        raise ValueError(f"expected --lengths above {QUESTION_TOKENS}, got {min(lengths)}")
    return lengths


def table_features(length: int, columns: int, batch_size: int):
    """Examples, all alike: a question and a table of cells of two tokens, as many rows as fit."""
    import numpy as np
    import tensorflow as tf

    from mate_tf.features.token_features import TokenFeatures

    cell = np.maximum(np.arange(length) - QUESTION_TOKENS, 0) // _CELL_TOKENS
    in_table = np.arange(length) >= QUESTION_TOKENS
    zeros = np.zeros(length, np.int32)
    fields = {
        "input_ids": np.random.default_rng(0).integers(1000, 30000, length),
        "input_mask": np.ones(length),
        "segment_ids": in_table,
        "column_ids": np.where(in_table, cell % columns + 1, 0),
        "row_ids": np.where(in_table, cell // columns, 0),
    }
    arrays = (np.asarray(fields.get(name, zeros), np.int32) for name in TokenFeatures._fields)
    return TokenFeatures(*(tf.constant([array] * batch_size) for array in arrays))
