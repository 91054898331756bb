"""docs/mate_in_one_file.py, MATE on one page, against the library."""

import dataclasses
import runpy

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mate_tf.config import MateConfig
from mate_tf.features.token_features import TAPAS_FEATURES
from mate_tf.layers.encoder import TableEncoder
from mate_tf.weights.initial import variables_by_name
from tests.layers import small_layers as small
from tests.small import ROOT

PAGE = runpy.run_path(str(ROOT / "docs/mate_in_one_file.py"))
HEADS = small.ENCODER.num_heads


@pytest.mark.medium
@settings(max_examples=25)
@given(
    tokens=small.TABLES | small.ANY_TOKENS,
    more=st.integers(1, 6),
    ratio=st.sampled_from([0.0, 0.25, 0.5, 1.0]),
    bucket_size=st.integers(1, 9),
    global_size=st.integers(1, 12),
)
def test_it_is_what_the_library_computes(tokens, more, ratio, bucket_size, global_size):
    window = MateConfig("mate", "multi_view", ratio, bucket_size, global_size)
    encoder = TableEncoder(
        dataclasses.replace(small.ENCODER, attention=window, position="per_cell")
    )
    small.random_weights(encoder)
    length = len(tokens) + more
    random = np.random.default_rng(length)
    structure = small.features_of([tokens], length)
    features = structure._replace(
        input_ids=random.integers(0, small.ENCODER.vocab_size, (1, length)).astype(np.int32),
        column_ranks=random.integers(0, 12, (1, length)).astype(np.int32),  # beyond its table too
        numeric_relations=random.integers(0, 8, (1, length)).astype(np.int32),
    )
    found = PAGE["encode"](
        {name: weight.numpy() for name, weight in variables_by_name(encoder).items()},
        {name: np.asarray(getattr(features, name))[0] for name in TAPAS_FEATURES},
        small.ENCODER.num_layers,
        HEADS,
        int(HEADS * ratio),
        bucket_size,
        global_size,
    )
    expected = encoder(features).sequence_output
    small.assert_same_where(features.input_mask, found[None], expected)
