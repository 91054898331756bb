"""What an evaluation shows as tables."""

from mate_tf.evaluation.report import ShownAnswer, answers_table, confusion_table, evaluations_table


def test_a_row_is_what_was_right_and_a_column_what_was_said():
    table = confusion_table(["b", "a", "b", "c"], ["a", "a", "b", "no answer"], ["a", "b"])
    assert table.splitlines() == [
        r"| gold \ predicted | a | b | c | no answer |",
        "| --- | --- | --- | --- | --- |",
        "| a | 1 | 0 | 0 | 0 |",
        "| b | 1 | 1 | 0 | 0 |",
        "| c | 0 | 0 | 0 | 1 |",
        "| no answer | 0 | 0 | 0 | 0 |",
    ]


def test_an_answer_is_a_row_whatever_its_texts_hold():
    answers = [ShownAnswer("who |\n won?", "x", "y", [(2, 0), (3, 1)], False)]
    assert answers_table(answers).splitlines()[2:] == [
        r"| who \| won? | x | y | (2, 0), (3, 1) | no |"
    ]


def test_an_evaluation_is_a_row():
    evaluations = [{"step": 20, "loss": 1.5}, {"step": 40, "loss": 1, "f1": 0.33333}]
    assert evaluations_table(evaluations).splitlines() == [
        "| step | loss | f1 |",
        "| --- | --- | --- |",
        "| 20 | 1.5000 |  |",
        "| 40 | 1.0000 | 0.3333 |",
    ]
