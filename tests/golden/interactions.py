"""The original's interactions, as its JSON holds them, as tables and questions."""

import gzip
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from mate_tf.features.config import FeatureConfig
from mate_tf.features.numeric import Date, NumericValue
from mate_tf.tables.table import Question, Table
from tests.golden.comparison import GOLDEN, GOLDEN_REAL, Golden, compare

EMPTY_EXAMPLE = "EMPTY-0_0"
# The original's options by our names.
OPTIONS = {
    **{name: name for name in "max_seq_length max_column_id max_row_id cell_trim_length".split()},
    **{name: name for name in "drop_rows_to_fit strip_column_names use_document_title".split()},
    "use_context_title": "use_context_heading",
    "update_answer_coordinates": "label_answer_spans",
}
# trim_question_ids cuts identifiers to their last 64 characters, which is always done here;
# aggregation candidates are not made here, and the other features are the same without them.
OPTIONS_WITHOUT_A_NAME = {"vocab_file", "trim_question_ids", "add_aggregation_candidates"}


def load(path: Path) -> Any:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return json.load(file)


def to_table(table: dict[str, Any]) -> Table:
    """The table; one empty cell where it has no column, of which nothing is to be selected."""
    rows = [row.get("cells", ()) for row in table["rows"]] if "columns" in table else [[{}]]
    return Table(
        header=tuple(column.get("text", "") for column in table.get("columns", [{}])),
        rows=tuple(tuple(cell.get("text", "") for cell in cells) for cells in rows),
        table_id=table.get("table_id", ""),
        document_title=table.get("document_title", ""),
        context_heading=table.get("context_heading", ""),
    )


def coordinates(question: dict[str, Any]) -> tuple[tuple[int, int], ...]:
    return tuple(
        (pair.get("row_index", 0), pair.get("column_index", 0))
        for pair in question.get("answer", {}).get("answer_coordinates", ())
    )


def answers(question: dict[str, Any]) -> tuple[str, ...]:
    return tuple(question.get("answer", {}).get("answer_texts", ()))


def to_question(questions: list[dict[str, Any]], index: int) -> Question:
    question = questions[index]
    answer = question.get("answer", {})
    return Question(
        text=question.get("text") or question.get("original_text", ""),
        question_id=question["id"],
        answers=answers(question),
        answer_coordinates=coordinates(question),
        answer_number=answer.get("float_value"),
        # A statement has none.
        aggregation=answer.get("aggregation_function", "" if "class_index" in answer else "NONE"),
        previous_coordinates=coordinates(questions[index - 1]) if index else (),
        class_index=answer.get("class_index"),
        previous_answers=answers(questions[index - 1]) if index else (),
    )


def selected_tokens(
    table: dict[str, Any], question: dict[str, Any]
) -> list[tuple[int, int, int]] | None:
    """(row, column, token within the cell) of the tokens selected beforehand; None for all."""
    if "columns" not in table:
        return []
    selection = question.get("[language.tapas.TableSelection.table_selection_ext]", {})
    return [
        (token.get("row_index", 0), token.get("column_index", 0), token.get("token_index", 0))
        for token in selection.get("selected_tokens", ())
    ] or None


def values(feature: dict[str, Any]) -> np.ndarray:
    if feature["kind"] == "bytes_list":
        return np.array([text.encode() for text in feature["values"]], object)
    numbers = [np.nan if value is None else value for value in feature["values"]]
    return np.array(numbers, np.float32 if feature["kind"] == "float_list" else np.int64)


def feature_config(original: dict[str, Any]) -> FeatureConfig:
    unknown = original.keys() - OPTIONS - OPTIONS_WITHOUT_A_NAME
    assert not unknown, f"expected the original's options {list(OPTIONS)}, got {unknown}"
    return FeatureConfig(
        **{OPTIONS[name]: value for name, value in original.items() if name in OPTIONS},
        trim_cells="cell_trim_length" not in original,
        original_conversion=True,
    )


def compare_examples(name: str, actual: list[dict], expected: list[dict]) -> None:
    """Compares every feature of examples, all examples of a feature together."""
    assert len(actual) == len(expected), f"{name}: {len(actual)} examples, not {len(expected)}"
    for index, (example, wanted) in enumerate(zip(actual, expected, strict=True)):
        differing = sorted(example.keys() ^ wanted.keys())
        assert not differing, f"{name}: only one side has {differing} in example {index}"
    for feature in expected[0] if expected else ():
        got = [example[feature] for example in actual]
        want = [values(example[feature]) for example in expected]
        if want[0].dtype == object:
            same = [np.array_equal(a, b) for a, b in zip(got, want, strict=True)]
            assert all(same), f"{name} {feature}: first other at example {same.index(False)}"
            compare("data", f"{name} {feature}", sum(same), len(want), 0.0)
            continue
        lengths, right = list(map(len, got)), list(map(len, want))
        assert lengths == right, f"{name} {feature}: lengths {lengths}, not {right}"
        compare("data", f"{name} {feature}", np.concatenate(got), np.concatenate(want), 0.0)


def value(value: dict[str, Any]) -> NumericValue:
    if "date" in value:
        return Date(*(value["date"].get(field) for field in Date._fields))
    return float(np.float32(value["float_value"]))


def of_question(read: dict[str, Any], question_id: str) -> Any:
    """What was read of a question, which must have been read."""
    assert question_id in read, f"question {question_id!r} was not read, but {sorted(read)[:3]}"
    return read[question_id]


def paired(examples: list[dict], interactions: list[dict]) -> Iterator[tuple[dict, dict | None]]:
    """Each example with its interaction; both are in one order, in which an id may come twice.

    The empty example, with which the original fills up a batch, has no interaction: None.
    """
    following = (
        (interaction, index)
        for interaction in interactions
        for index in range(len(interaction["questions"]))
    )
    for example in examples:
        if example["question_id"] == EMPTY_EXAMPLE:
            yield example, None
            continue
        for interaction, index in following:
            if (interaction["id"], index) == (example["interaction_id"], example["index"]):
                yield example, interaction
                break
        else:
            raise LookupError(f"no interaction of the example {example['question_id']}")


class Conversion(NamedTuple):
    """A file of converted examples.

    Attributes:
        golden: its folder.
        part: the part of that folder that it is in, with a slash where there is one.
        name: the file's, without its ending.
        entry: what the index says about it.
    """

    golden: Golden
    part: str
    name: str
    entry: dict[str, Any]

    @property
    def source(self) -> str:
        """The name of the interactions that were converted."""
        return re.split(r"\W", self.entry["source"])[0]

    def require(self, *names: str) -> list[Path]:
        """Paths of files beside it; skips the test where one is absent."""
        return self.golden.require(*(f"{self.part}{name}" for name in names))


def conversions() -> Iterator[Conversion]:
    """All files of converted examples in both golden folders, whatever their kind."""
    # The folder of real tables holds one part of what its index lists: two entries of one name.
    real = GOLDEN_REAL.load_index("").items()
    by_name = {re.sub(r"^(public|holdout)/", "", name): entry for name, entry in real}
    for golden, part, index in (
        (GOLDEN, "data/", GOLDEN.load_index("data")),
        (GOLDEN_REAL, "", by_name),
    ):
        for name, entry in index.items():
            if not name.startswith("_"):
                yield Conversion(golden, part, name, entry)


# Patterns of the kinds of golden conversions.
CLASSIFIER = "classifier"
READER = "hybridqa reader"
CELL_SELECTION = "hybridqa cell selection"
MASKED_LM = "pretrain"


def each_conversion(*kinds: str) -> Any:
    """Runs a test with each `conversion` whose kind begins with one of these."""
    found = [
        pytest.param(it, id=f"{it.golden.directory.name}-{it.name}")
        for it in conversions()
        if it.entry["kind"].startswith(kinds)
    ]
    return pytest.mark.parametrize("conversion", found)
