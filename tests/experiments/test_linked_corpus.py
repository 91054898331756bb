"""The generated corpus: what the questions need, and what splits do not share."""

import random
from collections import Counter

import pytest

from experiments.linked_corpus.drawing import draw_questions, draw_table
from experiments.linked_corpus.release import write_questions, write_table
from experiments.linked_corpus.words import words_of
from mate_tf.evaluation.official import read_official
from mate_tf.pointr.places import place_of_answer
from mate_tf.tables.datasets.tasks import read_split
from mate_tf.tables.linked_supervision import supervise_linked

SPLITS = ("train", "dev", "test")


def draw(split, count=60, seed=0):
    random_ = random.Random(seed)
    words = words_of(split)
    for number in range(count):
        drawn = draw_table(random_, words, split, f"{split}_{number}")
        yield drawn, draw_questions(random_, drawn, 6)


def test_splits_share_no_name_and_no_thing():
    words = {split: words_of(split) for split in SPLITS}
    for kind in words["train"]:
        everything = [word for split in SPLITS for word in words[split][kind]]
        assert len(set(everything)) == len(everything), kind
        assert all(words[split][kind] for split in SPLITS)
    with pytest.raises(ValueError, match=r"expected a split of .*, got 'small'"):
        words_of("small")


def test_the_test_split_is_asked_in_other_words():
    templates = {
        split: {asked.template for _, questions in draw(split) for asked in questions}
        for split in SPLITS
    }
    assert not templates["test"] & (templates["train"] | templates["dev"])
    assert all(len(of_split) >= 30 for of_split in templates.values())


@pytest.mark.parametrize("split", SPLITS)
def test_half_of_the_answers_are_in_cells_and_half_in_passages(split):
    places = Counter()
    for drawn, questions in draw(split):
        assert len(questions) == 6
        for asked in questions:
            place = place_of_answer(drawn.linked, asked.question)
            assert place == ("in table" if asked.in_table else "in passage")
            found = supervise_linked(
                drawn.linked,
                # Without the cell that it was drawn from.
                type(asked.question)(asked.question.text, "q", asked.question.answers),
            ).answer_coordinates
            assert {*asked.question.answer_coordinates} <= {*found}
            places[place] += 1
    assert places["in table"] == places["in passage"] == 180


def test_each_hop_alone_leaves_other_rows():
    for drawn, questions in draw("train"):
        for asked in questions:
            ((row, _),) = asked.question.answer_coordinates
            text = asked.question.text
            said = [
                relation
                for relation, value in drawn.values[row].items()
                if value in text and relation not in drawn.theme.own
            ]
            assert len(said) >= 2
            assert any(relation in drawn.theme.shared for relation in said)
            for relation in said:
                assert len(drawn.holds(relation, drawn.values[row][relation])) >= 2


def test_the_same_seed_draws_the_same():
    def everything(seed):
        return [
            (drawn.linked, [asked.question for asked in questions])
            for drawn, questions in draw("dev", 5, seed)
        ]

    assert everything(1) == everything(1) != everything(2)


def test_what_is_written_is_read_as_hybridqa_s_release(tmp_path):
    asked = []
    linked = {}
    for drawn, questions in draw("dev", 3):
        write_table(tmp_path, drawn.linked)
        linked[drawn.linked.table.table_id] = drawn.linked
        asked += [(drawn.linked.table, question) for question in questions]
    write_questions(tmp_path, "dev", asked)
    read = list(read_split("HYBRIDQA", str(tmp_path), "dev"))
    assert [question.text for _, question in read] == [a.question.text for _, a in asked]
    for table, _ in read:
        drawn = linked[table.table.table_id]
        assert (table.table, table.passages) == (drawn.table, drawn.passages)
    pairs = [(table.table, question) for table, question in read]
    parts = read_official("HYBRIDQA", tmp_path, "dev", pairs).parts
    assert parts["in_table"] == {a.question.question_id for _, a in asked if a.in_table}
    assert len(parts["in_passage"]) == 9
