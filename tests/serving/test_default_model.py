"""The model that comes with the package: what is in its folder, and that it answers."""

import hashlib
import pathlib
import re
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import numpy as np
import pytest
import safetensors
from safetensors import safe_open

import mate_tf
from mate_tf.records.conversion_file import check_vocabulary
from mate_tf.tables.table import Table
from mate_tf.weights.folder import DEFAULT_MODEL
from tests.data_folders import FIELD
from tests.small import stored_cases

PACKAGE = pathlib.Path(mate_tf.__file__).parent
MOST_BYTES = 50_000_000
BOATS = Table.from_rows(
    [
        ["Boat", "Harbour", "Crew", "Built"],
        ["Albatross", "Genoa", "12", "1931"],
        ["Petrel", "Ostend", "7", "1948"],
        ["Gannet", "Cork", "25", "1926"],
        ["Puffin", "Bergen", "4", "1955"],
    ],
    table_id="boats",
)


def files_entered(function: Callable[[], Any]) -> tuple[Any, set[str]]:
    """What a function returns, and the files of mate_tf with a function that it calls."""
    entered: set[str] = set()

    def note(frame: FrameType, event: str, _: Any) -> None:
        file = frame.f_code.co_filename
        if event == "call" and file.startswith(str(PACKAGE)):
            entered.add(file)

    sys.setprofile(note)
    try:
        return function(), entered
    finally:
        sys.setprofile(None)


@pytest.fixture(scope="module")
def loaded():
    """The model, the files of mate_tf that loading it enters, and the weight files it opens."""
    mate_tf.from_pretrained()  # what runs because a module is imported does not count
    opened = []

    def opening(*args, **options):
        opened.append(args)
        return safe_open(*args, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(safetensors, "safe_open", opening)
        model, entered = files_entered(mate_tf.from_pretrained)
    return model, entered, opened


@pytest.fixture(scope="module")
def model(loaded):
    return loaded[0]


def test_the_weights_are_small_and_of_half_precision():
    file = DEFAULT_MODEL / "model.safetensors"
    assert file.stat().st_size < MOST_BYTES
    with safe_open(file, framework="numpy") as tensors:
        values = [tensors.get_tensor(name) for name in list(tensors.keys())]
    assert all(value.dtype == np.float16 and np.isfinite(value).all() for value in values)
    check_vocabulary(DEFAULT_MODEL)
    # The card says which weights they are.
    card = (DEFAULT_MODEL / "README.md").read_text(encoding="utf-8")
    assert hashlib.sha256(file.read_bytes()).hexdigest() in card
    assert re.search(r"scripts/train_default_model\.sh", card)


def test_it_looks_cells_up_in_a_table_it_has_never_seen(model):
    questions = {
        "what is the harbour of Petrel?": "Ostend",
        "which boat was built in 1926?": "Gannet",
        "which boat has the largest crew?": "Gannet",
        "how many boats are there?": "4",
    }
    answers = model.answer(BOATS, list(questions))
    pairs = zip(answers, questions.values(), strict=True)
    right = [answer.text == expected for answer, expected in pairs]
    assert right[0] and right[1] and sum(right) >= 3
    assert all(0.0 < answer.score < 1.0 for answer in answers)


@stored_cases("name, question, answer")
def test_it_answers_questions_about_files_that_people_bring(model, name, question, answer):
    if not FIELD.is_dir():
        pytest.skip("no folder of cases: set MATE_TF_FIELD_DIR")
    (path,) = FIELD.glob(f"inputs/*/{name}")
    assert model.answer(path, question).text == answer


def test_few_files_are_entered_and_the_weights_are_opened_once(loaded):
    model, entered_by_loading, opened = loaded
    assert len(opened) == 1
    assert len(entered_by_loading) <= 18
    model.answer(BOATS, ["which boat is the oldest?", "where is Petrel?"])
    _, entered = files_entered(lambda: model.answer(BOATS, "what is the crew of Gannet?"))
    assert 5 < len(entered) <= 18


@pytest.mark.medium
def test_a_long_table_is_read_whole(model):
    rows = [[f"boat {n}", f"harbour {n % 90}", str(n * 7 % 400)] for n in range(400)]
    table = Table.from_rows(rows, ["Boat", "Harbour", "Crew"], "long")
    answer = model.answer(table, "what is the crew of boat 399?")
    assert answer.rows_dropped == 0 and answer.answered
