"""The generated corpus: what the questions need, and what splits do not share."""

import random
from collections import Counter

import pytest

from experiments.demo_data.linked_corpus.drawing import draw_questions, draw_table
from experiments.demo_data.linked_corpus.release import write_questions, write_table
from experiments.demo_data.linked_corpus.themes import THEMES, WHO
from experiments.demo_data.linked_corpus.words import words_of
from mate_tf.datasets.supervision import supervise_linked
from mate_tf.datasets.tasks import read_split
from mate_tf.evaluation.official import read_official
from mate_tf.pointr.report import place_of_answer

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
        assert all(len(words[split][kind]) >= 8 for split in SPLITS), kind
    everything = [word for split in SPLITS for of_kind in words[split].values() for word in of_kind]
    assert len(set(everything)) == len(everything)
    with pytest.raises(ValueError, match=r"expected a split of .*, got 'small'"):
        words_of("small")


def test_the_test_split_is_asked_in_other_words():
    wordings = [WHO]
    for theme in THEMES:
        for relation in (theme.entity, *theme.shared, *theme.own, *theme.facts):
            wordings += [relation.asks, relation.conditions]
    for wording in wordings:
        assert not {*wording.train} & {*wording.test}
    assert sum(len(wording.test) for wording in wordings) > 30
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


def test_both_hops_are_needed():
    """Each of two values leaves other rows, none with the same answer; together they leave one."""
    for drawn, questions in draw("train"):
        for asked in questions:
            ((row, column),) = asked.question.answer_coordinates
            values, theme = drawn.values[row], drawn.theme
            known = (*theme.shared, *theme.facts)
            (answer,) = asked.question.answers
            told = [r for r in theme.facts if values[r] == answer]
            ask = told[0] if not asked.in_table else None
            said = [r for r in known if values[r] in asked.question.text and r != ask]
            assert len(said) == 2 and said[0] in theme.shared
            rows = [{*drawn.holds(relation, values[relation])} for relation in said]
            assert rows[0] & rows[1] == {row}
            assert all(len(of_value) > 1 for of_value in rows)
            for other in rows[0] | rows[1]:
                if other != row and ask is not None:
                    assert drawn.values[other][ask] != answer
                if other != row and ask is None:
                    assert drawn.linked.table.rows[other][column] != answer


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
