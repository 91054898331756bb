"""Whatever a table or a question holds becomes features in their ranges, or a ValueError."""

import datetime
import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mate_tf.tables.features import FeatureBuilder, FeatureConfig
from mate_tf.tables.records import serialize_example
from mate_tf.tables.supervision import SupervisionError, supervise
from mate_tf.tables.table import Question, Table

# Against hanging: what is here takes some milliseconds, or seconds for a megabyte.
BOUND = datetime.timedelta(seconds=20)

NUMBERS = st.one_of(
    st.floats(allow_nan=True, allow_infinity=True).map(repr),
    st.integers(0, 10**120).map(str),
    st.from_regex(r"[+-]?[0-9]{0,3}(,[0-9]{3}){0,40}\.?[0-9]{0,100}", fullmatch=True),
    st.dates().map(str),
    st.sampled_from(["1e999", "-inf", "NaN", "٣", "½", "1.2.3", "31 February 2001", "0000-00-00"]),
)
TEXTS = st.one_of(
    st.text(st.characters(), max_size=30),
    st.text(st.characters(categories=["Cc", "Cf", "Cs", "Co", "Cn", "Mn"]), max_size=10),
    NUMBERS,
    st.sampled_from(
        ["", " ", "n/a", "[CLS]", "[EMPTY]", "##s", "\x00", "\ud800", "((((", "a" * 300]
    ),
)
CELLS = TEXTS | st.none() | st.floats() | st.integers() | st.booleans()


@st.composite
def tables(draw) -> Table:
    columns = draw(st.integers(1, 6))
    row = st.lists(CELLS, min_size=columns, max_size=columns)
    return Table.from_rows(draw(st.lists(row, min_size=1, max_size=6)), draw(row))


CONFIGS = st.builds(
    FeatureConfig,
    max_seq_length=st.none() | st.integers(4, 200),
    max_column_id=st.integers(2, 8),
    max_row_id=st.none() | st.integers(3, 8),
    trim_cells=st.booleans(),
    drop_rows_to_fit=st.booleans(),
    histogram_row=st.booleans(),
    original_conversion=st.booleans(),
)


def check(features: dict[str, np.ndarray], table: Table, config: FeatureConfig, vocabulary: int):
    """Every feature has the length and the range that the model's embeddings expect."""
    rows, columns = table.num_rows + config.histogram_row, table.num_columns
    mask = features["input_mask"]
    assert config.max_seq_length in (None, len(mask))
    assert set(np.diff(mask)) <= {0, -1}, "padding is at the end"
    highest = {
        "input_ids": vocabulary - 1,
        "input_mask": 1,
        "segment_ids": 1,
        "column_ids": min(columns, config.max_column_id - 1),
        "row_ids": min(rows, (config.max_row_id or rows + 1) - 1),
        "prev_label_ids": 1,
        "column_ranks": rows,
        "inv_column_ranks": rows,
        "numeric_relations": 7,
        "label_ids": 1,
    }
    for name, limit in highest.items():
        values = features[name]
        assert values.shape == mask.shape
        assert values.min() >= 0 and values.max() <= limit, name
        assert not values[mask == 0].any(), name
    assert not np.isinf(features["numeric_values"]).any()
    assert (features["numeric_values_scale"] >= 1).all()
    assert np.isnan(features["answer"][0]) or np.isfinite(features["answer"][0])


@settings(deadline=BOUND)
@given(tables(), TEXTS, st.lists(TEXTS, max_size=2), CONFIGS)
def test_any_table_and_question(wordpiece, table, text, answers, config):
    question = Question(text, answers=tuple(answers))
    try:
        question = supervise(table, question)
    except SupervisionError as error:
        assert error.reason
    builder = FeatureBuilder(wordpiece, config)
    try:
        features, report = builder.build(table, question, require_answers=False)
    except ValueError as error:
        assert "expected" in str(error) and "got" in str(error)
        return
    check(features, table, config, len(wordpiece))
    assert report.num_tokens == features["input_mask"].sum()
    assert serialize_example(features)


LONG = 1_000_000
HUGE = {
    "a cell of letters": "a" * LONG,
    "a cell of words": "ab " * (LONG // 3),
    "a cell of digits": "1" * LONG,
    "a cell of numbers": "12 " * (LONG // 3),
    "a cell of thousands": "1" + ",000" * (LONG // 4),
    "a cell of dates": "1 May 2001, " * (LONG // 12),
    "a cell of open brackets": "[" * LONG,
    "a cell of open parentheses": "a (" * (LONG // 3),
    "a cell of references": "a [1]" * (LONG // 5),
    "a cell of quotes": '"' * LONG,
    "a cell of blanks": " " * LONG,
    "a cell of accents": "e\u0301" * (LONG // 2),
    "a cell of ideographs": "京" * LONG,
    "a cell of stops": "." * LONG,
}


@pytest.mark.parametrize("cell", HUGE.values(), ids=HUGE.keys())
def test_a_cell_of_a_megabyte(wordpiece, cell):
    config = FeatureConfig(max_seq_length=512, trim_cells=True, drop_rows_to_fit=True)
    table = Table.from_rows([[cell, "new york"], ["name", "city"]], header=["a", "b"])

    @settings(deadline=BOUND, max_examples=1)
    @given(st.just("which city?"))
    def run(text):
        question = supervise(table, Question(text, answers=("new york",)))
        features, _ = FeatureBuilder(wordpiece, config).build(table, question)
        check(features, table, config, len(wordpiece))
        assert features["label_ids"].any()

    run()


def test_10000_columns_are_refused_by_their_number(wordpiece):
    table = Table.from_rows([["x"] * 10_000] * 3)
    with pytest.raises(
        ValueError, match=r"expected at most 255 columns, got 10000 \(table 'table'"
    ):
        FeatureBuilder(wordpiece).build(table, Question("which?"))


def test_10000_columns_and_10000_rows_are_taken_where_the_limits_allow(wordpiece):
    limits = {"max_seq_length": None, "max_column_id": 10_001}
    for rows, columns in ((2, 10_000), (10_000, 2)):
        numbers = itertools.count()
        table = Table.from_rows([[next(numbers) for _ in range(columns)] for _ in range(rows)])
        config = FeatureConfig(**limits)
        features, _ = FeatureBuilder(wordpiece, config).build(table, Question("more than 10?"))
        check(features, table, config, len(wordpiece))
        assert features["row_ids"].max() == rows - 1 and features["column_ids"].max() == columns
