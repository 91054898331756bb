"""The generated corpus: what the questions need, and what splits do not share."""

import dataclasses
import random
from collections import Counter

import pytest

from experiments.demo_data import linked_corpus as corpus
from mate_tf.datasets.supervision import supervise_linked
from mate_tf.datasets.tasks import read_split
from mate_tf.evaluation.official import read_official
from mate_tf.pointr.pipeline import place_of_answer

SPLITS = ("train", "dev", "test")


def draw(split, count=60, seed=0):
    rng, words = random.Random(seed), corpus.words_of(split)
    for number in range(count):
        drawn = corpus.draw_table(rng, words, f"{split}_{number}")
        yield drawn, corpus.draw_questions(rng, drawn, 6, split)


def test_splits_share_no_name_and_no_thing_and_the_test_split_is_asked_in_other_words():
    words = {split: corpus.words_of(split) for split in SPLITS}
    for kind in words["train"]:
        assert all(len(words[split][kind]) >= 8 for split in SPLITS), kind
    everything = [word for split in SPLITS for of_kind in words[split].values() for word in of_kind]
    assert len(set(everything)) == len(everything)
    for theme in corpus.themes():
        for relation in (theme.entity, *theme.shared, *theme.own, *theme.facts):
            assert relation.asks or relation.conditions, relation.name
            for of in filter(None, (relation.asks, relation.conditions)):
                assert len(corpus.wordings(of, "train")) == 2
                assert len({*of}) == 3
    # Whom a question is about, in no other split: "not only ... but also".
    for split in SPLITS:
        texts = {asked.question.text for _, questions in draw(split) for asked in questions}
        assert len(texts) >= 330
        assert {" not only " in text for text in texts} == {split == "test"}


@pytest.mark.parametrize("split", SPLITS)
def test_half_of_the_answers_are_in_cells_and_half_in_passages(split):
    places = Counter()
    for drawn, questions in draw(split):
        assert len(questions) == 6
        for question, _, in_table in questions:
            place = place_of_answer(drawn.linked, question)
            assert place == ("in table" if in_table else "in passage")
            # Without the cell that it was drawn from.
            alone = dataclasses.replace(question, answer_coordinates=())
            found = supervise_linked(drawn.linked, alone).answer_coordinates
            assert {*question.answer_coordinates} <= {*found}
            places[place] += 1
    assert places["in table"] == places["in passage"] == 180


def test_both_hops_are_needed():
    """Each of two values leaves other rows, none with the same answer; together they leave one."""
    for drawn, questions in draw("train"):
        theme = drawn.theme
        for question, _, in_table in questions:
            ((row, column),) = question.answer_coordinates
            values, (answer,) = drawn.values[row], question.answers
            relations = (*theme.shared, *theme.facts)
            asked = [r for r in theme.facts if values[r.name] == answer and not in_table]
            said = [r for r in relations if values[r.name] in question.text and r not in asked]
            assert len(said) == 2 and said[0] in theme.shared
            rows = [drawn.like(row, relation) for relation in said]
            assert rows[0] & rows[1] == {row}
            assert all(len(of_value) > 1 for of_value in rows)
            for other in (rows[0] | rows[1]) - {row}:
                name = drawn.linked.table.header[column] if in_table else asked[0].name
                assert drawn.values[other][name] != answer


def test_what_is_written_is_read_as_hybridqa_s_release(tmp_path):
    said = list(corpus.write_corpus(tmp_path, num_tables=20, questions_per_table=4, seed=0))
    assert [text.split(":")[0] for text in said] == list(SPLITS)
    assert said[2] == ("test: 3 tables, 12 questions, 6 with the answer in a cell, 6 in a passage")
    rng, words = random.Random("dev 0"), corpus.words_of("dev")
    drawn = corpus.draw_table(rng, words, "dev_0")
    asked = corpus.draw_questions(rng, drawn, 4, "dev")
    pairs = list(read_split("HYBRIDQA", str(tmp_path), "dev"))
    assert [question.text for _, question in pairs] == [one.question.text for one in asked]
    for linked, _ in pairs:
        assert (linked.table, linked.passages) == (drawn.linked.table, drawn.linked.passages)
    tables = [(linked.table, question) for linked, question in pairs]
    parts = read_official("HYBRIDQA", tmp_path, "dev", tables).parts
    assert parts["in_table"] == {one.question.question_id for one in asked if one.in_table}
    assert len(parts["in_passage"]) == 2
    one, same, other = ([drawn.linked for drawn, _ in draw("dev", 5, seed)] for seed in (1, 1, 2))
    assert one == same != other
