"""What simple rules predict for masked tokens: the measure of what pre-training learns.

Shapes: S sequence, P predictions.
"""

from collections import Counter
from collections.abc import Iterable, Mapping

import numpy as np

Example = Mapping[str, np.ndarray]


def most_frequent_token(examples: Iterable[Example]) -> int:
    """The token that is masked most often; of several the one that was first.

    Args:
        examples: records of pre-training, with masked_lm_ids and masked_lm_weights [P].

    Raises:
        ValueError: if nothing is masked in any.
    """
    counts = Counter[int]()
    for example in examples:
        counts.update(example["masked_lm_ids"][example["masked_lm_weights"] > 0].tolist())
    if not counts:
        raise ValueError("expected examples with masked tokens, got none")
    ((token, _),) = counts.most_common(1)
    return token


def copy_from_column(example: Example, otherwise: int) -> np.ndarray:
    """What other cells of the column have at the masked token's place in its cell: int [P].

    Of the column's body cells without a masked token it is the most frequent token at that place;
    of several as frequent, that of the nearest row, above rather than below.

    Args:
        example: a record of pre-training.
        otherwise: the token where no such cell has that place, in the header and in the text.
    """
    columns, rows = example["column_ids"], example["row_ids"]  # [S]
    predicted = example["masked_lm_weights"] > 0  # [P]
    positions = example["masked_lm_positions"]
    tokens = np.full(len(positions), otherwise)
    masked = set(positions[predicted].tolist())
    cells: dict[tuple[int, int], list[int]] = {}
    for position in np.flatnonzero(columns * rows).tolist():
        cells.setdefault((int(columns[position]), int(rows[position])), []).append(position)
    places = {position: place for cell in cells.values() for place, position in enumerate(cell)}
    for index in np.flatnonzero(predicted).tolist():
        position = int(positions[index])
        if position not in places:
            continue
        column, row = int(columns[position]), int(rows[position])
        place = places[position]
        visible = {
            of_row: int(example["input_ids"][cell[place]])
            for (of_column, of_row), cell in cells.items()
            if of_column == column and len(cell) > place and masked.isdisjoint(cell)
        }
        if visible:
            counts = Counter(visible.values())
            nearest = min(
                visible, key=lambda other: (-counts[visible[other]], abs(other - row), other)
            )
            tokens[index] = visible[nearest]
    return tokens
