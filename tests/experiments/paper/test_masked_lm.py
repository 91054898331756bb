import numpy as np
import pytest

from experiments.paper.masked_lm_baselines import copy_from_column, most_frequent_token

MASK, ELSE = 5, 99


def example(cells, masked, num_predictions=8):
    """A record of (column, row, token) and of the positions masked, whose labels are 0."""
    columns, rows, tokens = (np.array(values) for values in zip(*cells, strict=True))
    input_ids = np.where(np.isin(np.arange(len(cells)), masked), MASK, tokens)
    padding = num_predictions - len(masked)
    return {
        "column_ids": columns,
        "row_ids": rows,
        "input_ids": input_ids,
        "masked_lm_positions": np.array([*masked, *[0] * padding]),
        "masked_lm_ids": np.array([*tokens[masked], *[0] * padding]),
        "masked_lm_weights": np.array([*[1.0] * len(masked), *[0.0] * padding], np.float32),
    }


# A column whose header is 1; of three rows the first two have two tokens.
TALL = [(0, 0, 50), (1, 0, 1), (1, 1, 10), (1, 1, 11), (1, 2, 10), (1, 2, 12), (1, 3, 20)]


@pytest.mark.parametrize(
    ("cells", "masked", "expected"),
    [
        # Of two cells that are as near the first token is the same, the second one's the nearer's.
        ([*TALL, (1, 4, 7), (1, 4, 8)], [7, 8], [10, 12]),
        # 10 is there twice, 20 is nearer.
        ([*TALL, (1, 4, 7)], [7], [10]),
        # As often: above rather than below.
        ([(1, 1, 10), (1, 2, 7), (1, 3, 20)], [1], [10]),
        # Neither the text, nor the header, nor another column, nor what is masked itself is copied.
        (TALL, [0, 1], [ELSE, ELSE]),
        ([(1, 0, 1), (1, 1, 10), (2, 1, 20), (2, 2, 21)], [1], [ELSE]),
        ([(1, 1, 10), (1, 2, 10)], [0, 1], [ELSE, ELSE]),
        # A cell of which one token is masked is not seen, nor one that is shorter.
        ([(1, 1, 10), (1, 1, 11), (1, 2, 12), (1, 2, 13), (1, 3, 14)], [1, 2, 3], [ELSE, 14, ELSE]),
    ],
)
def test_a_token_is_copied_from_its_place_in_the_columns_other_cells(cells, masked, expected):
    found = copy_from_column(example(cells, masked), ELSE)
    assert found[: len(masked)].tolist() == expected
    assert (found[len(masked) :] == ELSE).all()


def test_the_most_frequent_token_is_that_of_the_labels_alone():
    # The padding's labels are 0, and 10 stands there more often than 20 is masked.
    one = example([(1, 1, 10), (1, 2, 10), (1, 3, 10), (1, 4, 20), (1, 5, 20)], [0, 3, 4])
    assert most_frequent_token([one]) == 20
    assert most_frequent_token([one, example([(1, 1, 10)] * 3, [0, 1, 2])]) == 10
    with pytest.raises(ValueError, match="expected examples with masked tokens, got none"):
        most_frequent_token([example([(1, 1, 10)], [])])
