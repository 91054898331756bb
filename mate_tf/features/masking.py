"""Which tokens of a sequence are masked, whole words or cells at a time, and by what.

The shares are BERT's (Devlin et al., 2019, section 3.1). The generator's draws and their order are
TAPAS's: the same seed gives the same masks.

Shape letters: T tokens of a sequence, without padding, P predictions.
"""

import random

import numpy as np

from mate_tf.features.wordpiece import Wordpiece

_SHARE_REPLACED_BY_MASK = 0.8
_SHARE_OF_REST_KEPT = 0.5


def whole_words(
    input_ids: np.ndarray,
    column_ids: np.ndarray,
    row_ids: np.ndarray,
    wordpiece: Wordpiece,
    whole_cells: bool,
    original: bool = False,
) -> list[list[int]]:
    """The positions of the tokens that are masked together.

    Args:
        input_ids, column_ids, row_ids: int [T].
        wordpiece: the vocabulary.
        whole_cells: whether a cell's tokens belong together. Otherwise a word's do, as in text.
        original: whether, as in the authors' release, cells that follow each other in a column
            are one cell. They do where the table has, or keeps, one column alone.

    Returns:
        The positions word by word; none of [CLS] and [SEP].
    """
    continues = wordpiece.is_inner[input_ids]  # [T]
    if whole_cells:
        same_cell = (column_ids[1:] > 0) & (column_ids[1:] == column_ids[:-1])
        if not original:
            same_cell &= row_ids[1:] == row_ids[:-1]
        continues[1:] |= same_cell
    special = (input_ids == wordpiece.cls) | (input_ids == wordpiece.sep)
    positions = np.flatnonzero(~special)
    words: list[list[int]] = []
    pairs = zip(positions.tolist(), continues[positions].tolist(), strict=True)
    for position, continues_word in pairs:
        if continues_word and words:
            words[-1].append(position)
        else:
            words.append([position])
    return words


def mask_tokens(
    input_ids: np.ndarray,
    words: list[list[int]],
    num_predictions: int,
    max_predictions: int,
    wordpiece: Wordpiece,
    rng: random.Random,
) -> dict[str, np.ndarray]:
    """Masks tokens and says what stood there.

    Args:
        input_ids: int32 [T], changed in place.
        words, num_predictions, rng: as draw_masks.
        max_predictions: P, the length of the labels.
        wordpiece: the vocabulary.

    Returns:
        masked_lm_positions, ascending, and masked_lm_ids, int32 [P], and masked_lm_weights, float32
        [P], 1 for a prediction; zeros follow the last one.
    """
    masks = draw_masks(words, num_predictions, wordpiece.mask, len(wordpiece), rng)
    positions = sorted(masks)
    labels = {
        "masked_lm_positions": np.zeros(max_predictions, np.int32),
        "masked_lm_ids": np.zeros(max_predictions, np.int32),
        "masked_lm_weights": np.zeros(max_predictions, np.float32),
    }
    labels["masked_lm_positions"][: len(positions)] = positions
    labels["masked_lm_ids"][: len(positions)] = input_ids[positions]
    labels["masked_lm_weights"][: len(positions)] = 1
    for position, replacement in masks.items():
        if replacement is not None:
            input_ids[position] = replacement
    return labels


def draw_masks(
    words: list[list[int]],
    num_predictions: int,
    mask_id: int,
    vocabulary_size: int,
    rng: random.Random,
) -> dict[int, int | None]:
    """Draws the positions to predict, whole words only, and what stands there instead.

    Draws: a shuffle of the words; for each position taken one number, for one in five a second, and
    for one in ten a piece of the vocabulary.

    Args:
        words: the positions of each word; they are shuffled.
        num_predictions: the most positions to take; words that are longer than what is left of
            them are passed over.
        mask_id: the id of [MASK], which takes the place of 80 % of the tokens.
        vocabulary_size: 10 % of the tokens are replaced by a random piece of so many.
        rng: the generator.

    Returns:
        By position the id to put there; None for the 10 % that stay as they are.
    """
    rng.shuffle(words)
    masks: dict[int, int | None] = {}
    for word in words:
        if len(masks) >= num_predictions:
            break
        if len(masks) + len(word) > num_predictions:
            continue
        for position in word:
            if rng.random() < _SHARE_REPLACED_BY_MASK:
                masks[position] = mask_id
            elif rng.random() < _SHARE_OF_REST_KEPT:
                masks[position] = None
            else:
                masks[position] = rng.randrange(vocabulary_size)
    return masks
