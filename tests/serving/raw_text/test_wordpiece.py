"""The tokenizer of TensorFlow Text, in the graph, and the one in Python give the same ids."""

import unicodedata

import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

from mate_tf.features.wordpiece import Wordpiece
from mate_tf.weights.folder import DEFAULT_MODEL

pytest.importorskip("tensorflow_text", reason="this system has no package of tensorflow-text")

from mate_tf.serving.raw_text.features import graph_wordpiece

# All that Python knows of the basic plane, and beyond it those that all editions of Unicode have.
CHARACTERS = [
    chr(code)
    for code in range(1, 0x20000)
    if (unicodedata if code < 0x10000 else unicodedata.ucd_3_2_0).category(chr(code))
    not in ("Cn", "Cs")
]


@pytest.fixture(scope="module")
def plain():
    return Wordpiece(DEFAULT_MODEL / "vocab.txt")


@pytest.fixture(scope="module")
def in_graph(plain):
    spec = [tf.TensorSpec([None], tf.string)]
    tokenize = tf.function(graph_wordpiece(plain), input_signature=spec, autograph=False)
    return lambda texts: tokenize(tf.constant(texts)).to_list()


def test_the_pieces_of_the_vocabulary_are_the_same(plain, in_graph):
    for texts in (plain.vocabulary, [piece.upper() for piece in plain.vocabulary]):
        assert plain.ids(texts) == in_graph(texts)


@pytest.mark.parametrize("around", ["{}", "a{}b", "é{}b", "x {}9"])
def test_each_character_is_the_same(plain, in_graph, around):
    texts = [around.format(character) for character in CHARACTERS]
    assert len(texts) > 50_000
    assert plain.ids(texts) == in_graph(texts)


@given(
    st.lists(
        st.text(st.one_of(st.sampled_from(CHARACTERS), st.sampled_from("abn/A 1é.,-京\u0301\t"))),
        min_size=1,
    )
)
def test_any_texts_are_the_same(plain, in_graph, texts):
    assert plain.ids(texts) == in_graph(texts)


def test_long_words_are_the_same(plain, in_graph):
    texts = [letter * length for letter in "aд京" for length in (199, 200, 201, 1000)]
    assert plain.ids(texts) == in_graph(texts)


def test_invalid_bytes_are_ignored(plain, in_graph):
    assert in_graph([b"ci\xffty", b"\xff"]) == plain.ids(["city", ""])
