"""Grammar-guided attention: the rules, and what hard and soft models make of them."""

import numpy as np
import pytest
import tensorflow as tf

from mate_tf.config import AttentionConfig
from mate_tf.features.token_features import TokenFeatures
from mate_tf.layers.attention.kinds import SelfAttention
from mate_tf.layers.attention.patterns import group_mask, head_groups
from mate_tf.layers.attention.relations import allowed_tags, favoured_tags
from mate_tf.tables.part_of_speech import UNIVERSAL_TAGS, tag_id
from tests.layers import small_layers as small
from tests.small import cases

HEADS, HEAD_SIZE = 2, 4
# "[CLS] the good film moved her quickly [SEP]", a table cell, padding.
TAGS = [None, "DET", "ADJ", "NOUN", "VERB", "PRON", "ADV", None, None, None]
REAL = [1] * 9 + [0]


def sentence(tags=TAGS, real=REAL) -> TokenFeatures:
    ids = [0 if tag is None else tag_id(tag) for tag in tags]
    return small.token_features(input_mask=real, part_of_speech_ids=ids)


def mask_of(rules: str, features: TokenFeatures) -> np.ndarray:
    (group,) = head_groups(AttentionConfig("grammar_hard", grammar_rules=rules), HEADS)
    return group_mask(group, features)[0].numpy()


def test_the_paper_s_rules_are_these_and_extensions_only_add():
    allowed, favoured = allowed_tags("paper"), favoured_tags("paper")

    def pairs(table):
        return {
            (UNIVERSAL_TAGS[query], UNIVERSAL_TAGS[key])
            for query, key in np.argwhere(table[1:, 1:]).tolist()
        }

    assert pairs(allowed) == {
        *(("ADJ", key) for key in ("NOUN", "PROPN")),
        *(("DET", key) for key in ("NOUN", "PROPN")),
        *(("VERB", key) for key in ("NOUN", "PROPN", "PRON", "ADV")),
        *(("ADP", key) for key in ("NOUN", "PROPN", "PRON")),
    }
    assert {pair for pair in pairs(favoured) if pair[0] not in ("CCONJ", "SCONJ")} == {
        *(("ADV", key) for key in ("VERB", "ADJ", "ADV")),
        *((query, "VERB") for query in ("NOUN", "PROPN", "PRON")),
    }
    for rules in ("paper", "extended"):
        assert not (favoured_tags(rules) & allowed_tags("paper")).any()
    assert (allowed_tags("extended") >= allowed_tags("paper")).all()
    assert allowed_tags("extended").sum() > allowed_tags("paper").sum()
    assert (favoured_tags("extended") >= favoured_tags("paper")).all()


def test_a_hard_model_attends_along_the_rules_to_itself_and_to_what_has_no_tag():
    mask = mask_of("paper", sentence())
    always = {0, 7, 8}  # [CLS], [SEP] and the table
    expected = {
        0: set(range(9)),
        1: always | {1, 3},
        2: always | {2, 3},
        3: always | {3},
        4: always | {3, 4, 5, 6},
        5: always | {5},
        6: always | {6},
        7: set(range(9)),
        8: set(range(9)),
    }
    found = {query: set(np.flatnonzero(mask[query]).tolist()) for query in expected}
    assert found == expected


def layer_and_inputs(attention: AttentionConfig):
    layer = small.random_weights(SelfAttention(HEADS, HEAD_SIZE, attention))
    return layer, small.hidden_states(1, len(TAGS))


def expected_output(layer, hidden: tf.Tensor, scores_added: np.ndarray) -> np.ndarray:
    """The layer's output, with an addition [H or 1, F, T] to the scaled scores."""
    query, key, value = (np.transpose(one[0], [1, 0, 2]) for one in layer.heads(hidden))
    scores_added = np.where(np.array(REAL, bool), scores_added, -np.inf)
    context = small.attention_in_float64(query, key, value, scores_added)
    return layer.output_projection(context.transpose(1, 0, 2).reshape(len(TAGS), -1))


@cases(
    "architecture, options, bias",
    ("grammar_hard", {}, None),
    ("grammar_soft", {}, 5.0),  # the paper's
    *(
        ("grammar_soft", {"grammar_rules": rules, "grammar_bias": 1.5}, 1.5)
        for rules in ("paper", "extended")
    ),
)
def test_rules_leave_pairs_out_or_add_a_bias_after_scaling(architecture, options, bias):
    layer, hidden = layer_and_inputs(AttentionConfig(architecture, **options))
    if bias is None:
        added = np.where(mask_of("paper", sentence()), 0.0, -np.inf)
    else:
        ids = sentence().part_of_speech_ids[0].numpy()
        rules = options.get("grammar_rules", "paper")
        added = bias * favoured_tags(rules)[ids[:, None], ids[None]]
    np.testing.assert_allclose(
        layer(hidden, sentence())[0, :9],
        expected_output(layer, hidden, added)[:9],
        atol=small.TOLERANCE,
    )


def test_features_need_parts_of_speech():
    layer, hidden = layer_and_inputs(AttentionConfig("grammar_hard"))
    with pytest.raises(ValueError, match="expected token features with part_of_speech_ids"):
        layer(hidden, TokenFeatures(*sentence()[:9]))
