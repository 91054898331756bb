import pytest

from mate_tf.answers.answer import Answer, SelectedCell
from mate_tf.evaluation.predictions import answer_sequences
from mate_tf.tables.table import Question, Table

TABLE = Table(("a", "b"), (("1", "2"), ("3", "4")), "t")
OTHER = Table(("a", "b"), (("1", "2"), ("3", "4")), "other")
GOLD = ((1, 1),)


class Model:
    """Answers each question with the cell that its text names, and keeps what it was asked."""

    def __init__(self):
        self.rounds = []

    def answer_all(self, pairs):
        self.rounds.append([])
        for table, question in pairs:
            self.rounds[-1].append(question)
            yield table, question, self.answer(table, question.text)

    def answer(self, table, text):
        if text == "too long":
            return ValueError("expected at most 4 tokens, got 9")
        if text == "unsure":
            return Answer(score=0.1)
        row, column = map(int, text)
        item = table.rows[row][column]
        cell = SelectedCell(row, column, item, 0.9)
        return Answer((item,), (cell,), score=0.9)


def asked(*questions, table=TABLE):
    """Questions by id and text, all with gold history."""
    return [
        (table, Question(text, id_, previous_coordinates=GOLD, previous_answers=("4",)))
        for id_, text in questions
    ]


def histories(pairs):
    """What each question was asked with, by its id."""
    model = Model()
    for _ in answer_sequences(model.answer_all, pairs):
        pass
    questions = [question for round_ in model.rounds for question in round_]
    return {q.question_id: (q.previous_coordinates, q.previous_answers) for q in questions}


def test_the_history_is_the_predicted_answer_before_and_not_the_gold_one():
    found = histories(asked(("s-0_0", "01"), ("s-0_1", "10"), ("s-0_2", "00")))
    assert found == {
        "s-0_0": ((), ()),
        "s-0_1": (((0, 1),), ("2",)),
        "s-0_2": (((1, 0),), ("3",)),
    }


def test_questions_of_one_place_in_their_sequences_are_asked_together():
    model = Model()
    # In no order, with a position left out, and one sequence shorter than the other.
    pairs = asked(("s-0_3", "10"), ("s-1_0", "11"), ("s-0_0", "01"), ("s-0_1", "00"))
    answered = list(answer_sequences(model.answer_all, pairs))
    ids = [[question.question_id for question in round_] for round_ in model.rounds]
    assert ids == [["s-0_0", "s-1_0"], ["s-0_1"], ["s-0_3"]]
    assert [answer.text for _, _, answer in answered] == ["2", "4", "1", "3"]
    assert histories(pairs)["s-0_3"] == (((0, 0),), ("1",))


@pytest.mark.parametrize("before", ["too long", "unsure"])
def test_what_follows_no_answer_has_no_history(before):
    found = histories(asked(("s-0_0", "01"), ("s-0_1", before), ("s-0_2", "00")))
    assert found["s-0_2"] == ((), ())


def test_no_questions_have_no_answers():
    assert not list(answer_sequences(Model().answer_all, []))


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        (asked(("s", "00")), "such as 'nt-639-0_1', got 's'"),
        (asked(("s_1", "00"), ("s_1", "01")), r"once, got one again \(question 's_1'\)"),
        (asked(("s_01", "00"), ("s_1", "01")), r"once, got one again \(question 's_1'\)"),
        (
            [*asked(("s_0", "00")), *asked(("s_1", "01"), table=OTHER)],
            r"about one table, 't', got 'other' \(question 's_1'\)",
        ),
    ],
)
def test_what_is_no_sequence_is_refused(pairs, message):
    with pytest.raises(ValueError, match=message):
        list(answer_sequences(Model().answer_all, pairs))
