"""Whatever a table or a question holds becomes features in their ranges, or a ConversionError."""

import itertools
from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mate_tf.datasets.supervision import SupervisionError, supervise
from mate_tf.datasets.tasks import TASKS
from mate_tf.features.builder import FeatureBuilder
from mate_tf.features.config import ConversionError, FeatureConfig
from mate_tf.records.conversion import convert_all
from mate_tf.records.records import serialize_example
from mate_tf.tables.table import Question, Table
from tests.features.examples import HOSTILE

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
    table = Table.from_rows(draw(st.lists(row, min_size=1, max_size=6)), draw(row), draw(TEXTS))
    expansions = st.lists(row, min_size=table.num_rows, max_size=table.num_rows)
    return replace(
        table,
        document_title=draw(TEXTS),
        context_heading=draw(TEXTS),
        expansions=draw(st.just(()) | expansions),
    )


@st.composite
def pairs(draw) -> tuple[Table, Question]:
    table = draw(tables())
    cell = st.tuples(st.integers(0, table.num_rows - 1), st.integers(0, table.num_columns - 1))
    question = Question(
        draw(TEXTS),
        draw(TEXTS),
        answers=tuple(draw(st.lists(TEXTS, max_size=2))),
        answer_coordinates=tuple(draw(st.lists(cell, max_size=2))),
        answer_number=draw(st.none() | st.floats() | st.integers(-10, 10)),
        previous_coordinates=tuple(draw(st.lists(cell, max_size=2))),
        class_index=draw(st.none() | st.integers(0, 2**31 - 1)),
        previous_answers=tuple(draw(st.lists(TEXTS, max_size=2))),
    )
    return table, question


FLAGS = [field.name for field in fields(FeatureConfig) if field.default is False]
CONFIGS = st.builds(
    FeatureConfig,
    max_seq_length=st.none() | st.integers(4, 200),
    max_column_id=st.integers(2, 8),
    max_row_id=st.none() | st.integers(3, 8),
    cell_trim_length=st.none() | st.integers(1, 5),
    **dict.fromkeys(FLAGS, st.booleans()),
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


ONE_CELL = Table.from_rows([["1"]], header=["a"])


@settings(deadline=None)
@example((ONE_CELL, Question("?", answers=("1" * 50,))), FeatureConfig())
@example((ONE_CELL, Question("?", "\ud800", answer_number=1e300)), FeatureConfig())
@given(pairs(), CONFIGS)
def test_any_table_and_question(wordpiece, pair, config):
    table, question = pair
    try:
        question = supervise(table, question, original=config.original_conversion)
    except SupervisionError as error:
        assert error.reason
    builder = FeatureBuilder(wordpiece, config)
    try:
        features, report = builder.build(table, question, require_answers=False)
    except ConversionError as error:
        assert "expected" in str(error) and "got" in str(error)
        if error.reason == "too long":
            no_limit = replace(config, max_seq_length=None)
            exact = FeatureBuilder(wordpiece, no_limit).build(table, question, False)
            assert exact.report.num_tokens > config.max_seq_length
        return
    check(features, table, config, len(wordpiece))
    assert report.num_tokens == features["input_mask"].sum()
    if not config.prune_columns:
        assert config.drop_rows_to_fit or not report.rows_dropped
        assert config.trim_cells or config.cell_trim_length or not report.tokens_trimmed
    if not (config.prune_columns or config.original_conversion):  # each cell of a row has a token
        num_rows = table.num_rows + 1 - report.rows_dropped + config.histogram_row
        body = features["segment_ids"] == 1
        cells = set(zip(features["row_ids"][body], features["column_ids"][body], strict=True))
        assert cells == set(itertools.product(range(num_rows), range(1, table.num_columns + 1)))
    assert serialize_example(features)


GOOD = Table.from_rows([["new york", "8"], ["york", "3"]], header=["city", "people"])
NEIGHBOURS = [Question("which city?", name, answers=("york",)) for name in ("before", "after")]


@settings(deadline=None)
@given(pairs(), CONFIGS, st.booleans())
def test_the_neighbours_of_any_question_are_as_without_it(wordpiece, pair, config, is_training):
    config = replace(config, max_seq_length=64, max_column_id=8, max_row_id=8)
    before, after = ((GOOD, question) for question in NEIGHBOURS)

    def convert(*asked):
        return list(
            convert_all(TASKS["JSONL"], FeatureBuilder(wordpiece, config), asked, is_training)
        )

    first, bad, last = convert(before, pair, after)
    assert (bad.features is None) == bool(bad.reason)
    for outcome, alone in zip((first, last), convert(before, after), strict=True):
        assert outcome.features is not None
        assert serialize_example(outcome.features) == serialize_example(alone.features)


@pytest.mark.parametrize("cell", HOSTILE.values(), ids=HOSTILE)
def test_a_very_long_cell(wordpiece, cell):
    config = FeatureConfig(max_seq_length=512, trim_cells=True, drop_rows_to_fit=True)
    table = Table.from_rows([[cell, "new york"], ["name", "city"]], header=["a", "b"])
    question = supervise(table, Question("which city?", answers=("new york",)))
    features, _ = FeatureBuilder(wordpiece, config).build(table, question)
    check(features, table, config, len(wordpiece))
    assert features["label_ids"].any()


@pytest.mark.parametrize("name", ["letters", "numbers"])
@pytest.mark.parametrize("place", ["header", "question", "answer", "title", "expansion", "name"])
def test_a_very_long_text_elsewhere(wordpiece, place, name):
    text = HOSTILE[name]
    texts = dict(question="which city?", answer="york", title="t", name="q", header="a")
    texts[place] = text
    table = replace(
        GOOD,
        header=(texts["header"], "people"),
        document_title=texts["title"],
        expansions=((text, ""), ("", "")) if place == "expansion" else (),
    )
    question = Question(texts["question"], texts["name"], answers=(texts["answer"],))
    config = FeatureConfig(trim_cells=True, use_document_title=True, label_answer_spans=True)
    builder = FeatureBuilder(wordpiece, config)
    (outcome,) = convert_all(TASKS["JSONL"], builder, [(table, question)], is_training=True)
    if place in ("question", "title"):
        # A word of more than 100 characters is one unknown piece.
        assert outcome.reason == ("" if name == "letters" else "too long")
    elif place == "answer":
        assert outcome.reason
    else:
        assert outcome.features["label_ids"].any()


def test_10000_columns_are_refused_by_their_number_and_taken_where_the_limits_allow(wordpiece):
    config = FeatureConfig(max_seq_length=None, max_column_id=10_001)
    for rows, columns in ((10_000, 2), (2, 10_000)):
        table = Table.from_rows(np.arange(rows * columns).reshape(rows, columns).tolist())
        features, _ = FeatureBuilder(wordpiece, config).build(table, Question("more than 10?"))
        check(features, table, config, len(wordpiece))
        assert features["row_ids"].max() == rows - 1 and features["column_ids"].max() == columns
    with pytest.raises(ValueError, match=r"at most 255 columns, got 10000 \(table 'table'"):
        FeatureBuilder(wordpiece).build(table, Question("which?"))
