"""Other names for headers mean the same column, and a typing error is one edit of one word."""

import json
import pathlib
import random
import string

import pytest

from experiments.synthesis import rewording
from experiments.synthesis.rewording import mistyped, other_header, synonym
from tests.small import cases, run_binary, write_lines

SYNONYMS = pathlib.Path(rewording.__file__).with_name("synonyms.txt").read_text(encoding="utf-8")


def test_each_header_is_in_one_line_and_once_in_it():
    lines = [[name.strip() for name in line.split("|")] for line in SYNONYMS.splitlines()]
    assert len(lines) >= 500
    names = [name.lower() for line in lines for name in line]
    assert all(names) and len(set(names)) == len(names)
    assert min(map(len, lines)) >= 2


def draws(function, *arguments, number=60):
    return {function(*arguments, random.Random(seed)) for seed in range(number)}


@cases(
    "name, others",
    ("Price", {"Cost", "Unit price", "Prc"}),
    ("price", {"cost", "unit price", "prc"}),
    (" Price", {"Cost", "Unit price", "Prc"}),
    ("Prc", {"Cost", "Unit price", "Price"}),
    ("No such header", {"No such header"}),
    ("", {""}),
)
def test_another_name_is_of_the_same_line(name, others):
    assert draws(synonym, name) == others


def test_every_name_may_be_said_by_another_of_its_line():
    for line in SYNONYMS.splitlines():
        names = [name.strip().lower() for name in line.split("|")]
        for seed, name in enumerate(names):
            assert synonym(name, random.Random(seed)).lower() in {*names} - {name}


@cases(
    "header",
    ("Price", "Cost", "Town"),  # of one line: neither may be called as the other
    ("Price", "Unit price", "Prc"),
    ("price", "Price", "x"),
    ("Price", "Discount", "Fare", "Name"),
)
def test_no_column_is_called_as_another_one_is_or_was(header):
    found = draws(lambda rng: tuple(other_header(header, rng)))
    before = [name.lower() for name in header]
    for other in found:
        after = [name.lower() for name in other]
        if len(set(before)) == len(before):
            assert len(set(after)) == len(after)
        for index, name in enumerate(after):
            assert name == before[index] or name not in before
    assert len(found) > 1 or set(before) == {"price", "unit price", "prc", "cost"}


def edits(word: str) -> set[str]:
    """All words that are one edit away: a letter less, another, one twice, or two swapped."""
    parts = [(word[:at], word[at:]) for at in range(len(word))]
    return {
        *(a + b[1:] for a, b in parts),
        *(a + b[0] + b for a, b in parts),
        *(a + letter + b[1:] for a, b in parts for letter in string.ascii_lowercase),
        *(a + b[1] + b[0] + b[2:] for a, b in parts if len(b) > 1),
    }


def test_a_typing_error_is_one_edit_of_one_word():
    text, changed = "which of the 3 cities has most people ?", 0
    for seed in range(200):
        words = zip(text.split(), mistyped(text, random.Random(seed)).split(), strict=True)
        different = [pair for pair in words if pair[0] != pair[1]]
        changed += len(different)
        for word, typed in different:
            assert len(word) >= 4 and typed in edits(word) and typed[0] == word[0]
        assert len(different) <= 1
    assert changed > 180  # at times a letter is replaced by itself
    assert mistyped("a 2024 b-c of", random.Random(0)) == "a 2024 b-c of"


QUESTIONS = [
    {
        "id": f"t#{number}",
        "question": f"What Price has Tea {number}?",
        "table": {"id": "t", "header": ["Item", "Price"], "rows": [["Tea", "5"], ["Rum", "7"]]},
        "aggregation": "HEADER" if number == 0 else "NONE",
        "answers": ["Price"] if number == 0 else ["5"],
        "answer_coordinates": [[0, 1]],
    }
    for number in range(40)
]


@pytest.mark.medium
def test_questions_are_reworded_and_keep_their_answers(tmp_path):
    given = write_lines(tmp_path / "train.jsonl", *QUESTIONS)
    written = {}
    for name, share in (("one", 1.0), ("again", 1.0), ("half", 0.5)):
        output = tmp_path / "out" / f"{name}.jsonl"
        flags = f"--input_file={given}", f"--output_file={output}", f"--share={share}"
        run = run_binary("experiments.create_reworded", *flags)
        written[name] = output.read_text(encoding="utf-8")
        assert f"{len(written[name].splitlines())} questions" in run.stdout
    assert written["one"] == written["again"]
    found = [json.loads(line) for line in written["one"].splitlines()]
    assert 8 < len(written["half"].splitlines()) < 32
    assert [it["id"] for it in found] == [f"reworded-t#{number}" for number in range(1, 40)]
    for question, old in zip(found, QUESTIONS[1:], strict=True):
        kept = ("aggregation", "answers", "answer_coordinates")
        assert [question[name] for name in kept] == [old[name] for name in kept]
        assert question["table"]["rows"] == old["table"]["rows"]
    headers = {tuple(question["table"]["header"]) for question in found}
    assert len(headers) > 3
    texts = [question["question"] for question in found]
    assert {text == text.lower() for text in texts} == {True, False}
