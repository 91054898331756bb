"""Answers counted by the length of their tables, and what answers are worth without a model."""

import pytest

from experiments.paper.comparison_results import paired_interval
from mate_tf.answers.answer import Answer
from mate_tf.datasets.json_lines import write_json_lines
from mate_tf.evaluation.predictions import write_predictions
from mate_tf.tables.table import Question, Table
from tests.small import cases, succeeded, write_vocabulary

pytestmark = pytest.mark.medium

# [CLS] c d [SEP], then the header's two cells and two a row.
SHORT = Table.from_rows([["a", "b"], ["c", "d"]], table_id="short")  # 8 tokens
LONG = Table.from_rows([["a", "b"], *[["c", "d"]] * 5], table_id="long")  # 16 tokens
PAIRS = [
    (SHORT, Question("c d", "one", answers=("c",))),
    (SHORT, Question("c d", "two", answers=("d",))),
    (LONG, Question("c d", "three", answers=("c",))),
    (LONG, Question("c d", "four", answers=("a",))),
]

# Questions, those that the first and the second file have right, and how many more and fewer.
ALL, NONE = "4 | 3 (75.0%) | 3 (75.0%), +1 -1", "0 | 0 (0.0%) | 0 (0.0%), +0 -0"


@pytest.fixture
def data(tmp_path):
    write_json_lines(tmp_path / "dev.jsonl", PAIRS)
    write_json_lines(
        tmp_path / "train.jsonl",
        [(SHORT, Question("c", f"t{i}", answers=(text,))) for i, text in enumerate("ccda")],
    )
    return tmp_path / "dev.jsonl"


def answered(path, texts):
    """A file of predictions with these texts."""
    ids = [question.question_id for _, question in PAIRS]
    write_predictions(path, [(i, Answer((t,))) for i, t in zip(ids, texts, strict=True)])
    return path


@cases(
    "lengths, expected",
    ("8,12", ["2 | 2 (100.0%) | 1 (50.0%), +0 -1", NONE, "2 | 1 (50.0%) | 2 (100.0%), +1 -0"]),
    ("7,16", [NONE, ALL, NONE]),
)
def test_right_answers_are_counted_by_length(tmp_path, data, lengths, expected):
    vocab_file = write_vocabulary(tmp_path / "vocab.txt")
    first, second = answered(tmp_path / "1.jsonl", "cdcc"), answered(tmp_path / "2.jsonl", "ccca")
    done = succeeded(
        "experiments.paper.accuracy_by_length",
        *(f"--data={data}", f"--vocab_file={vocab_file}", f"--lengths={lengths}"),
        f"--predictions=whole={first},cut={second}",
    )
    low, high = map(int, lengths.split(","))
    names = (f"up to {low}", f"{low + 1} to {high}", f"beyond {high}", "all")
    rows = [f"| {name} | {row} |" for name, row in zip(names, [*expected, ALL], strict=True)]
    assert done.stdout.splitlines()[2:] == rows


def test_baselines_are_scored(data):
    done = succeeded(
        "experiments.paper.answer_baselines",
        *(f"--train={data.with_name('train.jsonl')}", f"--data={data}"),
    )
    # "c" is right for two of four. No header is like a question: of any cell half of those of
    # the body are "c", half "d"; the last question's answer is in the header alone.
    assert done.stdout.splitlines() == [
        "questions: 4",
        "best constant answer: 50.00%, c",
        "random cell of the column whose header is most like the question: 37.50%",
    ]


def test_the_difference_of_two_files_has_an_interval(tmp_path, data):
    first, second = answered(tmp_path / "1.jsonl", "cdca"), answered(tmp_path / "2.jsonl", "cccc")
    done = succeeded(
        "experiments.paper.compare_answers",
        *(f"--data={data}", f"--predictions=both={first},table={second}"),
    )
    assert done.stdout.splitlines() == [
        "| answers of | questions | right | both is above it by | 95 % interval |",
        "|---|---|---|---|---|",
        "| both | 4 | 100.0% |  |  |",
        "| table | 4 | 50.0% | 50.0 | 0.0 to 100.0 |",
    ]


@cases(
    "gained, lost, same, expected, within",
    (250, 250, 0, 0.0, 0.003),
    (40, 10, 200, 0.12, 0.003),
    (0, 0, 100, 0.0, 1e-9),
)
def test_the_interval_is_that_of_the_normal_approximation(gained, lost, same, expected, within):
    first = [True] * gained + [False] * lost + [True] * same
    second = [False] * gained + [True] * lost + [True] * same
    number = len(first)
    variance = (gained + lost) / number - expected**2
    half = 1.96 * (variance / number) ** 0.5
    low, high = paired_interval(first, second)
    assert low == pytest.approx(expected - half, abs=2 * within)
    assert high == pytest.approx(expected + half, abs=2 * within)
