import pytest

from mate_tf.datasets.tasks import TASKS
from mate_tf.features.builder import FeatureBuilder
from mate_tf.features.config import FeatureConfig
from mate_tf.records.conversion import Summary, convert_all, outcome_counts
from mate_tf.tables.table import Question, Table

A_CELL = "operator NONE (a cell)"
TABLE = Table.from_rows([["a", "b"], ["c", "1"], ["d", "1"], ["e", "3"]], table_id="t")
SHORT = {"drop_rows_to_fit": True, "max_seq_length": 8}


def question(text: str = "a", *answers: str) -> Question:
    return Question(text, "q", answers)


def convert(builder, table, asked: Question, is_training: bool, task: str = "WTQ"):
    (outcome,) = convert_all(TASKS[task], builder, [(table, asked)], is_training)
    return outcome


@pytest.mark.parametrize("is_training", [True, False])
@pytest.mark.parametrize(
    ("asked", "config", "reason", "notes"),
    [
        (question("a", "c"), {}, "", [A_CELL]),
        (question("a", "17"), {}, "", []),
        (question("a", "1"), {}, "ambiguous answer", []),
        (question("a", "k"), {}, "answer not found", ["no labels (answer not found)"]),
        (question("a " * 99, "c"), {}, "too long", None),
        (question("a", "c"), SHORT, "", [A_CELL, "rows dropped"]),
        (question("a", "e"), SHORT, "answer cut off", [A_CELL, "rows dropped", "answers cut off"]),
        (question("a", "c"), {"max_column_id": 2}, "too many columns", None),
        (question("a", "c"), {"max_row_id": 2}, "too many rows", None),
    ],
)
def test_training_leaves_out_what_evaluation_notes(
    wordpiece, is_training, asked, config, reason, notes
):
    """Notes are of evaluation; None where the question is left out there too."""
    builder = FeatureBuilder(wordpiece, FeatureConfig(**{"max_seq_length": 32, **config}))
    outcome = convert(builder, TABLE, asked, is_training)
    counts = outcome_counts(outcome)
    assert counts["read"] == 1
    if reason and (is_training or notes is None):
        assert outcome.features is None
        assert outcome.reason == reason
        assert "'t'" in outcome.message
        assert counts == {"read": 1, f"left out: {reason}": 1}
    else:
        assert outcome.features is not None and not outcome.reason
        assert list(outcome.notes) == ([] if reason and is_training else notes)
        assert counts["kept"] == 1
        assert counts["tokens"] == outcome.features["input_mask"].sum() == outcome.num_tokens
        assert counts["positions"] == len(outcome.features["input_ids"])
        for note in outcome.notes:
            assert counts[f"kept with {note}"] == 1


def test_a_task_of_given_cells_looks_for_no_others(wordpiece):
    builder = FeatureBuilder(wordpiece, FeatureConfig(max_seq_length=32))
    asked = question("a", "c")
    assert convert(builder, TABLE, asked, True, "SQA").reason == "no answer given"
    kept = convert(builder, TABLE, asked, False, "SQA")
    assert list(kept.notes) == ["no labels (no answer given)"]


def test_classification_looks_for_no_answer_and_sentences_need_no_table(wordpiece):
    builder = FeatureBuilder(wordpiece, FeatureConfig(max_seq_length=32))
    for table in (TABLE, None):
        outcome = convert(builder, table, Question("a", class_index=1), True, "TABFACT")
        assert outcome.features is not None and not outcome.notes


def test_a_summary_counts_names_the_first_of_each_reason_and_tells_the_padding(wordpiece):
    builder = FeatureBuilder(wordpiece, FeatureConfig(max_seq_length=256))
    summary = Summary()
    for number in range(5):
        asked = Question("a", f"q{number}", ("k",))
        summary.add(convert(builder, TABLE, asked, is_training=True))
    summary.add(convert(builder, TABLE, question("a", "c"), is_training=True))
    lines = str(summary).split("\n")
    assert lines[:2] == ["1 of 6 questions kept", "  left out: 5 answer not found"]
    assert [f"'q{number}'" in lines[2 + number] for number in range(3)] == [True] * 3
    # [CLS] a [SEP] and eight cells are 11 tokens of 256, or of 64 in a batch of its length.
    padding = "  padding: 96% of the records, 83% batched by length"
    assert lines[5:] == [f"  kept with {A_CELL}: 1", padding]
    # Counters of several workers come to the same, but for the messages.
    again = str(Summary(counts=summary.counts)).split("\n")
    assert again == [line for line in lines if not line.startswith("    ")]
