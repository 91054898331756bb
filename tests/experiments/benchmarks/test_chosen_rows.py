"""The questions about long tables have the answers that their cells say."""

import random

from experiments.benchmarks.chosen_rows import KINDS, asked, is_right
from tests.small import cases


def test_questions_of_each_kind_are_made_with_their_answers():
    rows = [
        {"Order": "1", "City": "Oslo", "Amount": "2.5", "Status": "shipped", "Customer": "Ada"},
        {"Order": "2", "City": "Oslo", "Amount": "4.5", "Status": "pending", "Customer": "Bea"},
    ]
    questions = asked("orders", rows, 3, random.Random(0))
    assert [one.kind for one in questions] == [kind for kind in KINDS for _ in range(3)]
    answers = {one.text: one.answer for one in questions}
    assert answers["which order has the highest amount?"] == "2"
    assert answers["how many orders are from Oslo?"] == "2"
    assert is_right("7", answers["what is the total amount of orders from Oslo?"])


@cases(
    "answer, expected, right",
    ("3.5", "3.50", True),
    ("3.52", "3.5", False),
    ("Ada", "Ada", True),
    ("", "3.5", False),
)
def test_numbers_are_right_to_a_hundredth(answer, expected, right):
    assert is_right(answer, expected) is right
