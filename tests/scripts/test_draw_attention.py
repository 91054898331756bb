import numpy as np
import pytest

from mate_tf.config import AttentionConfig
from mate_tf.layers.attention.patterns import head_groups
from mate_tf.layers.attention.relations import pairwise_relation
from scripts.draw_attention import draw_head_group, draw_relations, table_tokens

FEATURES, LABELS = table_tokens(["[CLS]", "q"], ["a", "b"], [["a1", "b1"], ["a2", "b2"]])


@pytest.fixture
def axis():
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axis = plt.subplots()
    yield axis
    plt.close(figure)


def drawn(axis) -> np.ndarray:
    (image,) = axis.get_images()
    return np.asarray(image.get_array())


def test_column_heads_are_drawn_in_their_order(axis):
    config = AttentionConfig("mate", row_heads_ratio=0.0, bucket_size=2, global_size=2)
    (group,) = head_groups(config, 2)
    draw_head_group(axis, FEATURES, LABELS, group, config)
    names = [label.get_text() for label in axis.get_xticklabels()]
    assert names == ["[CLS]", "q", "a", "a1", "a2", "b", "b1", "b2"]
    shade = drawn(axis)
    assert (shade[:2] == 2).all() and (shade[:, :2] == 2).all()
    assert shade[2, 4] == 2  # a to a2: one column, neighbour buckets
    assert shade[2, 5] == 1  # a to b: computed, masked
    assert shade[2, 7] == 0  # a to b2: buckets too far apart


def test_an_architecture_without_order_is_drawn_as_it_stands_with_as_many_labels(axis):
    config = AttentionConfig("sat")
    (group,) = head_groups(config, 2)
    draw_head_group(axis, FEATURES, LABELS, group, config)
    shade = drawn(axis)
    assert shade[4, 5] == shade[4, 6] == shade[4, 2] == 2
    assert shade[4, 7] == 1  # a1 to b2: neither row nor column
    with pytest.raises(ValueError, match=r"features of shape \(1, 8\) and 3 labels"):
        draw_relations(axis, FEATURES, LABELS[:3])


def test_relations_are_drawn_with_a_legend(axis):
    draw_relations(axis, FEATURES, LABELS, disabled=(12,))
    relation = pairwise_relation(FEATURES, FEATURES, (12,)).numpy()[0]
    np.testing.assert_array_equal(drawn(axis), relation)
    texts = [text.get_text() for text in axis.get_legend().get_texts()]
    assert "1 same row" in texts and "12 sentence to sentence" not in texts
