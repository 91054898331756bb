import itertools
import math
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mate_tf.features.aggregation_candidates import Candidate, candidate_features, find_candidates
from mate_tf.features.builder import FeatureBuilder
from mate_tf.features.config import ConversionError, FeatureConfig
from mate_tf.features.tokenized_table import tokenize_table
from mate_tf.tables.table import AGGREGATIONS, Question, Table

NONE, SUM, AVERAGE, COUNT = map(AGGREGATIONS.index, ("NONE", "SUM", "AVERAGE", "COUNT"))
NAN = float("nan")


def combinations_by_hand(values, answer, aggregation):
    """Every set of cells of a column whose aggregation is the answer, by trying them all."""
    for column in range(values.shape[1]):
        rows = [row for row in range(values.shape[0]) if not math.isnan(values[row, column])]
        for size in range(1, len(rows) + 1):
            for some in itertools.combinations(rows, size):
                total = sum(values[row, column] for row in some)
                if abs(total / (size if aggregation == AVERAGE else 1) - answer) < 0.01:
                    yield Candidate(aggregation, column, some)


@given(
    st.integers(1, 2).flatmap(
        lambda width: st.lists(
            st.lists(st.sampled_from([1.0, 2.0, 2.5, -1.0, NAN]), min_size=width, max_size=width),
            min_size=1,
            max_size=6,
        )
    ),
    st.sampled_from([0, 1, 2, 2.5, 4, -1, 1e30]),
)
def test_sums_and_averages_of_short_columns_are_all_there_are(rows, answer):
    values = np.array(rows)
    found = find_candidates(values, Question("", answer_number=answer))
    for aggregation in (SUM, AVERAGE):
        of_aggregation = [candidate for candidate in found if candidate[0] == aggregation]
        assert of_aggregation == sorted(combinations_by_hand(values, answer, aggregation))
    assert [candidate[0] for candidate in found] == sorted(
        (candidate[0] for candidate in found), key=[NONE, COUNT, SUM, AVERAGE].index
    )
    for candidate in found:
        if candidate.aggregation == COUNT:
            assert len(candidate.rows) == len(set(candidate.rows)) == answer


def test_long_columns_are_searched_by_trial_and_the_identifier_seeds_it():
    values = np.arange(40.0)[:, np.newaxis]
    question = Question("", "q", answer_number=30)
    found = find_candidates(values, question)
    assert found == find_candidates(values, question)
    assert found != find_candidates(values, Question("", "other", answer_number=30))
    for aggregation, function in ((SUM, np.sum), (AVERAGE, np.mean)):
        rows = [candidate.rows for candidate in found if candidate.aggregation == aggregation]
        assert 0 < len(rows) <= 500
        assert all(abs(function(values[list(some)]) - 30) < 0.01 for some in rows)
        assert all(len(some) <= 10 and list(some) == sorted(set(some)) for some in rows)


@pytest.mark.parametrize("shape", [(60, 1), (60, 16), (60, 255), (10, 255), (5_000, 2)])
def test_equal_cells_of_which_very_many_sets_fit_are_no_hang(shape):
    begin = time.monotonic()
    values = np.zeros(shape)
    found = find_candidates(values, Question("", answer_number=0))
    assert time.monotonic() - begin < 20  # a second or two; minutes if every set is looked at
    for aggregation in (SUM, AVERAGE):
        of_aggregation = [candidate for candidate in found if candidate.aggregation == aggregation]
        assert len(set(of_aggregation)) == len(of_aggregation) == 500
        assert of_aggregation == sorted(of_aggregation)
        columns = {candidate.column for candidate in of_aggregation}
        assert len(columns) >= min(shape[1], 10), "the choice is from many columns"


@pytest.mark.parametrize("answer", [None, NAN, float("inf"), -float("inf")])
def test_there_is_no_candidate_without_a_finite_number(answer):
    assert find_candidates(np.ones((2, 2)), Question("", answer_number=answer)) == []


def test_counts_are_of_whole_numbers_of_rows_that_there_are():
    values = np.full((3, 2), NAN)

    def rows(answer, original=False):
        found = find_candidates(values, Question("", answer_number=answer), original)
        return [(candidate.column, candidate.rows) for candidate in found]

    assert rows(3) == [(0, (0, 1, 2)), (1, (0, 1, 2))]
    assert rows(1) == [(column, (row,)) for column in range(2) for row in range(3)]
    assert rows(4) == rows(1.5) == rows(-2) == []
    assert rows(-2, original=True) == rows(1)  # of all but two of three rows


def test_the_answer_cell_comes_first_and_only_if_it_is_the_only_one():
    values = np.array([[7.0], [8.0]])
    one = Question("", answer_number=7, answer_coordinates=((0, 0),))
    assert find_candidates(values, one)[0] == Candidate(NONE, 0, (0,))
    two = Question("", answer_number=15, answer_coordinates=((0, 0), (1, 0)))
    assert find_candidates(values, two) == [Candidate(SUM, 0, (0, 1))]
    with pytest.raises(ConversionError, match=r"expected at most 1 answer cell .*, got 2") as error:
        find_candidates(values, two, original=True)
    assert error.value.reason == "several answer cells"


TABLE = Table.from_rows([["name", "people"], ["a b", "3"], ["c", "5"], ["d", "8.5"]])


def test_features_say_where_the_tokens_of_each_candidate_are(wordpiece):
    question = Question("city", answer_number=8)
    config = FeatureConfig(max_seq_length=20, add_aggregation_candidates=True)
    features = FeatureBuilder(wordpiece, config).build(TABLE, question).features
    (count,) = features["cand_num"]
    sizes = features["can_sizes"]
    ends = np.cumsum(sizes)
    assert ends[-1] == len(features["can_indexes"])
    cells = [
        (
            int(features["can_aggregation_function_ids"][n]),
            [
                (int(features["row_ids"][place]), int(features["column_ids"][place]))
                for place in features["can_indexes"][ends[n] - sizes[n] : ends[n]]
            ],
        )
        for n in range(count)
    ]
    assert cells == [(SUM, [(1, 2), (2, 2)])]
    assert not sizes[count:].any() and len(sizes) == 1000


def test_candidates_of_cells_that_were_left_out_are_none(wordpiece):
    tokens = tokenize_table(wordpiece, TABLE)
    question = Question("", answer_number=2)  # a count of two rows
    cells = tokens.cell_ids[tokens.row_ids < 3]
    ours = candidate_features(tokens, cells, 3, question)
    assert ours["cand_num"] == 2
    np.testing.assert_array_equal(ours["can_sizes"][:2], [3, 2])
    theirs = candidate_features(tokens, cells, 3, question, original=True)
    assert theirs["cand_num"] == 6
