"""Parts of speech: ids, alignment with wordpieces, taggers, and features made from them."""

import json
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mate_tf.features.builder import FeatureBuilder
from mate_tf.features.config import FeatureConfig
from mate_tf.tables.part_of_speech import (
    NUM_TAG_IDS,
    PENN_TO_UNIVERSAL,
    UNIVERSAL_TAGS,
    TaggedWord,
    load_tagger,
    piece_tag_ids,
    tag_id,
    words_with_tags,
)
from mate_tf.tables.table import Question, Table
from tests.data_folders import HYBRIDQA_SAMPLE
from tests.small import cases

HYBRIDQA = HYBRIDQA_SAMPLE / "dev.json"
TABLE = Table.from_rows([["name"], ["york"]])


def names(ids: list[int]) -> list[str]:
    return ["-" if id_ == 0 else UNIVERSAL_TAGS[id_ - 1] for id_ in ids]


@cases(
    "tag, universal",
    *((tag, tag) for tag in UNIVERSAL_TAGS),
    *PENN_TO_UNIVERSAL.items(),
    *((sign, "PUNCT") for sign in (".", ",", ":", "``", "''", "(", ")", '"', "--")),
)
def test_universal_and_penn_tags_have_ids(tag, universal):
    assert names([tag_id(tag)]) == [universal]
    assert 1 <= tag_id(tag) < NUM_TAG_IDS


@cases(
    "text, words, expected",
    # A word's pieces have its tag, whatever the wordpieces split.
    ("don't", [(0, 2, "VBP"), (2, 5, "RB")], "VERB VERB ADV ADV ADV"),
    # What the tagger passes over is "other".
    ("new.", [(0, 3, "JJ")], "ADJ X"),
    # Accents, blanks in a row and dropped characters move no word.
    ("Né\u0301  \t\u200bw ø", [(0, 3, "NN"), (7, 8, "VB"), (9, 10, "JJ")], "NOUN NOUN VERB ADJ"),
)
def test_pieces_have_the_tag_of_the_word_they_begin_in(wordpiece, text, words, expected):
    ids, starts = wordpiece.ids_and_starts(text)
    tags = names(piece_tag_ids([TaggedWord(*word) for word in words], starts))
    assert tags == expected.split() and len(ids) == len(tags)


@given(st.text(max_size=30))
def test_pieces_of_any_text_begin_in_it_and_in_order(wordpiece, text):
    ids, starts = wordpiece.ids_and_starts(text)
    assert ids == wordpiece.ids([text])[0]
    assert starts == sorted(starts)
    valid = text.encode("utf-8", "ignore").decode()
    assert all(0 <= start < max(1, len(valid)) for start in starts)


@given(st.lists(st.sampled_from(["york", "city", "é", "京", "ab12", "!"]), max_size=6))
def test_a_piece_that_begins_a_word_stands_at_its_first_character(wordpiece, words):
    text = "  ".join(["new", *words])
    _, starts = wordpiece.ids_and_starts(text)
    assert {word.start() for word in re.finditer(r"\S+", text)} <= set(starts)


def test_a_sentence_has_no_table_and_its_special_tokens_no_part_of_speech(wordpiece):
    builder = FeatureBuilder(wordpiece, FeatureConfig(max_seq_length=8), load_tagger("textblob"))
    features, report = builder.build(None, Question("the new city", class_index=1))
    assert report.num_tokens == 7  # [CLS] t h e new city [SEP]
    assert names(features["part_of_speech_ids"]) == "- DET DET DET ADJ NOUN - -".split()
    assert not features["segment_ids"].any() and not features["row_ids"].any()
    assert features["classification_class_index"] == [1]


def no_words(text: str) -> list[TaggedWord]:
    return []


@pytest.mark.parametrize("tagger", [None, no_words])
def test_all_examples_of_a_builder_have_tags_or_none_has(wordpiece, tagger):
    builder = FeatureBuilder(wordpiece, FeatureConfig(max_seq_length=6), tagger)
    questions = [Question("new", "tagged", part_of_speech_tags=("ADJ",)), Question("new", "not")]
    for question in questions + questions[::-1]:
        features = builder.build(TABLE, question).features
        assert ("part_of_speech_ids" in features) == (tagger is not None)
        if tagger is not None:
            expected = "ADJ" if question.part_of_speech_tags else "X"
            assert names(features["part_of_speech_ids"])[1] == expected


@cases(
    "question, expected",
    (Question("new york"), "- ADJ NOUN - - -"),  # [CLS] new york [SEP] name york
    # A question's own tags come before the tagger's.
    (Question("new york", part_of_speech_tags=("UH", "CD")), "- INTJ NUM - - -"),
    # The unknown piece is a special token.
    (Question("new ж", part_of_speech_tags=("ADJ", "NOUN")), "- ADJ - - - -"),
)
def test_tokens_of_the_table_have_no_part_of_speech(wordpiece, question, expected):
    builder = FeatureBuilder(wordpiece, FeatureConfig(max_seq_length=6), load_tagger("textblob"))
    features = builder.build(TABLE, question).features
    assert names(features["part_of_speech_ids"]) == expected.split()


@given(st.text(alphabet=st.characters(codec="utf-8"), max_size=40))
def test_textblob_tags_any_text_in_order(text):
    words = load_tagger("textblob")(text)
    for word in words:
        assert text[word.start : word.end].strip()
        assert 1 <= tag_id(word.tag) < NUM_TAG_IDS
    assert [word.start for word in words] == sorted(word.start for word in words)


def test_one_s_own_tagger_is_found_by_its_name():
    assert load_tagger("tests.tables.test_part_of_speech:names") is names


@cases(
    "call, message",
    (lambda: tag_id("NONSENSE"), "or one of the Penn Treebank, got 'NONSENSE'"),
    (lambda: piece_tag_ids([TaggedWord(3, 5, "NN"), TaggedWord(0, 2, "NN")], [0]), "in order"),
    (lambda: words_with_tags("new york", ["NN"]), r"each of 2 words, got 1 \(text 'new york'\)"),
    (lambda: load_tagger("unknown"), "expected a tagger 'textblob'"),
    (lambda: load_tagger(""), "expected a tagger 'textblob'"),
)
def test_what_cannot_be_tagged_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.skipif(not HYBRIDQA.is_file(), reason=f"HybridQA's sample is not at {HYBRIDQA}")
def test_hybridqa_s_own_tags_fit_its_questions(wordpiece):
    questions = json.loads(HYBRIDQA.read_text(encoding="utf-8"))
    assert questions
    builder = FeatureBuilder(wordpiece, FeatureConfig(max_seq_length=None), no_words)
    for question in questions:
        tags = tuple(question["question_postag"].split())
        asked = Question(question["question"], part_of_speech_tags=tags)
        ids = builder.build(TABLE, asked).features["part_of_speech_ids"]
        assert set(names(ids)) - {"-"} <= {names([tag_id(tag)])[0] for tag in tags}
        assert np.count_nonzero(ids) >= len(tags)  # each word has a piece, and its tag
