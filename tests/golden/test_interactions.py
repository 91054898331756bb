"""Interactions of the release, in its binary and text formats, as its own JSON has them."""

import pytest

from mate_tf.datasets.interactions import message_class, read_messages, table_of
from tests.golden.comparison import GOLDEN
from tests.golden.interactions import answers, coordinates, load, to_table

NAMES = (
    *("interactions_raw", "interactions_annotated", "interactions_token_selection"),
    *("sqa_interactions_train", "tabfact_interactions_train", "wtq_interactions_train"),
    *("hybridqa_interactions_train", "hybridqa_rc_default_interactions_train"),
)


@pytest.mark.parametrize("name", NAMES)
def test_every_field_that_is_read_equals(name):
    (file, listed) = GOLDEN.require(f"data/{name}.tfrecord", f"data/{name}.json.gz")
    messages = [message for message, _ in read_messages(file)]
    expected = load(listed)
    assert len(messages) == len(expected) > 0
    for found, wanted in zip(messages, expected, strict=True):
        # What the message does not know, it keeps.
        assert message_class().FromString(found.SerializeToString()) == found
        assert found.id == wanted["id"] and len(found.questions) == len(wanted["questions"])
        if "columns" in wanted["table"]:
            assert table_of(found, "here") == to_table(wanted["table"])
        for question, asked in zip(found.questions, wanted["questions"], strict=True):
            answer, known = question.answer, asked.get("answer", {})
            pairs = [(pair.row_index, pair.column_index) for pair in answer.answer_coordinates]
            assert tuple(pairs) == coordinates(asked)
            assert tuple(answer.answer_texts) == answers(asked)
            assert answer.class_index == known.get("class_index", 0)
            assert answer.is_valid == known.get("is_valid", True)
            assert question.original_text == asked.get("original_text", "")
            assert question.text == asked.get("text", "")


def test_the_text_format_of_the_corpus_is_read():
    (file,) = GOLDEN.require("data/pretrain_interactions.txtpb")
    found = list(read_messages(file))
    assert [where for _, where in found][:2] == [f"(file '{file}', line {n})" for n in (1, 2)]
    assert table_of(*found[0]).header[0] == "Released"
    assert all(question.id and question.original_text for question in found[0][0].questions)
