"""Pre-training examples: predict the masked words and cells of a text and its table.

An example is an excerpt of the texts about a table and the upper left corner of the table, with
cells cut after a number of pieces. Sometimes another table replaces the right one, and the model
has to notice (Herzig et al., 2020, section 4). Words and, on request, cells are masked as wholes,
in BERT's proportions (Devlin et al., 2019, section 3.1).

The random draws and their order are the original's, so that the same state of the generator gives
the same example. Column ranks and numbers are those of the whole table before masking, also as in
the original: they let a model guess masked numbers.

Shape letters: S sequence, T its tokens without padding, N tokens of a table, P predictions.
"""

import functools
import hashlib
import random
from collections.abc import Sequence

import numpy as np

from mate_tf.features.config import ConversionError, MaskedLmConfig
from mate_tf.features.english import normalize_for_match
from mate_tf.features.tokenized_table import (
    Layout,
    TokenizedTable,
    no_table,
    table_features,
    tokenize_table,
)
from mate_tf.features.wordpiece import Wordpiece
from mate_tf.tables.table import Table, remember

_SHARE_OF_NEGATIVES = 0.5
_SHARE_REPLACED_BY_MASK = 0.8
_SHARE_OF_REST_KEPT = 0.5
_TEXTS_REMEMBERED = 1024


class MaskedLmBuilder:
    """Turns tables and their texts into pre-training examples; a table is tokenized once."""

    def __init__(self, wordpiece: Wordpiece, config: MaskedLmConfig | None = None):
        self.wordpiece = wordpiece
        self.config = config or MaskedLmConfig()
        self._tokenized = remember(
            functools.partial(tokenize_table, wordpiece, self.config),
            size_of=lambda _, tokens: len(tokens.input_ids),
        )
        self._text_ids = functools.lru_cache(_TEXTS_REMEMBERED)(wordpiece.ids)

    def build(
        self,
        table: Table | None,
        texts: Sequence[str],
        rng: random.Random,
        negative: Table | None = None,
    ) -> dict[str, np.ndarray]:
        """Draws an example of a table and texts about it.

        It draws, in this order: the text, whether the negative, if there is one, replaces the
        table, the table's size and the masks. Without a table the first text is used from its
        beginning, of any length.

        The features are those of tokens [S] as in FeatureBuilder.build, table_id and table_id_hash
        [1], masked_lm_positions and masked_lm_ids int32 [P], masked_lm_weights float32 [P],
        next_sentence_labels and is_random_table int32 [1], 1 for a negative. Relations are 0. If
        fewer than P tokens are masked, positions, ids and weights end in zeros; no token is masked
        if every word and cell is too long.

        ConversionError if the texts are too short (reason "no fitting text", with require_text), or
        the table's first header and cell do not fit (reason "too long"); ValueError if there is
        neither a table nor a text.
        """
        config, is_inner = self.config, self.wordpiece.is_inner
        ids_of_texts = self._text_ids(tuple(map(normalize_for_match, texts)))
        shortest = config.min_text_length
        if not config.require_text:
            shortest = min(shortest, sum(map(len, ids_of_texts)))
        longest, join = config.max_text_length, config.join_texts
        ids = draw_text(ids_of_texts, is_inner, shortest, longest, join, rng)
        is_negative = negative is not None and rng.random() < _SHARE_OF_NEGATIVES
        table = negative if is_negative else table
        if table is None:
            if not texts:
                raise ValueError("expected a table or a text, got neither")
            first = self._text_ids((texts[0],))[0][: config.max_seq_length - 1]
            text_ids = [self.wordpiece.cls, *first]
            tokens, kept = no_table(), np.zeros(0, bool)
        else:
            if ids is None:
                least, lengths = config.min_text_length, list(map(len, ids_of_texts))
                problem = f"expected a text of {least} to {longest} pieces, got texts of {lengths}"
                if join:
                    problem = f"expected at least {least} pieces of text, got {sum(lengths)}"
                remedy = f"(table '{table.table_id}'); add texts or change min_text_length"
                raise ConversionError("no fitting text", f"{problem} {remedy}")
            text_ids = [self.wordpiece.cls, *ids, self.wordpiece.sep]
            tokens = self._tokenized(table)
            kept = self._draw_corner(tokens, len(text_ids), table, rng)
        features = Layout(tokens, kept, text_ids, config.max_seq_length).features()
        labels = self._mask(features, rng)
        flag = np.array([is_negative], np.int32)
        labels |= {"next_sentence_labels": flag, "is_random_table": flag}
        return features | table_features(table) | labels

    def _draw_corner(
        self, tokens: TokenizedTable, start: int, table: Table, rng: random.Random
    ) -> np.ndarray:
        """Which tokens of the table follow the first `start` tokens: bool [N]."""
        config = self.config
        spare = 0 if config.original_conversion else 1
        max_rows = tokens.num_rows + 1 if config.max_row_id is None else config.max_row_id - spare
        budget = config.max_seq_length - start
        kept = draw_corner(tokens, budget, config.max_column_id - spare, max_rows, rng)
        if kept is None:
            got = f"got more for {start} of text and one cell (table '{table.table_id}')"
            problem = f"expected at most {config.max_seq_length} tokens, {got}"
            raise ConversionError("too long", problem, "raise max_seq_length")
        return kept

    def _mask(self, features: dict[str, np.ndarray], rng: random.Random) -> dict[str, np.ndarray]:
        """Masks tokens in features["input_ids"], in place, and returns their labels."""
        num_tokens = int(features["input_mask"].sum())
        names = ("input_ids", "column_ids", "row_ids")
        input_ids, column_ids, row_ids = (features[name][:num_tokens] for name in names)
        most, original = self.config.max_predictions, self.config.original_conversion
        words = whole_words(
            input_ids, column_ids, row_ids, self.wordpiece, self.config.whole_cells, original
        )
        num_predictions = min(most, max(1, round(num_tokens * self.config.masking_probability)))
        masks = draw_masks(words, num_predictions, self.wordpiece.mask, len(self.wordpiece), rng)
        positions = sorted(masks)
        padding = (0, most - len(positions))
        labels = {
            "masked_lm_positions": np.pad(np.array(positions, np.int32), padding),
            "masked_lm_ids": np.pad(input_ids[positions], padding),
            "masked_lm_weights": np.pad(np.ones(len(positions), np.float32), padding),
        }
        for position, replacement in masks.items():
            if replacement is not None:
                input_ids[position] = replacement
        return labels


def example_rng(key: str, seed: int, max_seq_length: int) -> random.Random:
    """The generator of an example. It depends only on these arguments, as in the original.

    The key of a table's n-th example is the table's key, "_" and n, from 0.
    """
    text = f"{key}_{seed}_{max_seq_length}".encode(errors="backslashreplace")
    return random.Random(int(hashlib.sha256(text).hexdigest(), 16))


def draw_text(
    texts: Sequence[Sequence[int]],
    is_inner: np.ndarray,
    shortest: int,
    longest: int,
    join: bool,
    rng: random.Random,
) -> list[int] | None:
    """Draws an excerpt of the texts, or one whole text; None if they are too short, or none fits.

    With `join` it is of all texts in random order, and words at its ends are completed, even past
    the limits. Otherwise it is the first text, in random order, whose number of pieces is within
    them. Draws: a shuffle of the texts; with `join` and enough pieces, the excerpt's begin and end.
    `is_inner` is whether a piece continues a word, bool [vocabulary size].
    """
    order = list(texts)
    rng.shuffle(order)
    if not join:
        return next((list(ids) for ids in order if shortest <= len(ids) <= longest), None)
    ids = [id_ for text in order for id_ in text]
    if len(ids) < shortest:
        return None
    begin = rng.randint(0, len(ids) - shortest)
    while begin and is_inner[ids[begin]]:
        begin -= 1
    end = rng.randint(begin + shortest, min(begin + longest, len(ids)))
    while end < len(ids) and is_inner[ids[end]]:
        end += 1
    return ids[begin:end]


def draw_corner(
    tokens: TokenizedTable, budget: int, max_columns: int, max_rows: int, rng: random.Random
) -> np.ndarray | None:
    """Draws how many columns, rows and pieces of each cell to take, at most `budget` tokens.

    Each begins at one. They grow in turn, one at a time with even odds, until the table is complete
    or the next step does not fit. The last word of a cell is complete. Draws one number for each
    chance to grow. The result is which tokens to take, bool [N]; None if the first words of the
    first column's header and cell do not fit.
    """
    # A token is taken if its place on each axis is below the size there. The header's row is -1.
    positions = np.stack([tokens.column_ids - 1, tokens.row_ids - 1, tokens.word_begins])  # [3, N]
    size = [1, 1, 1]
    cost = int(np.count_nonzero((positions < 1).all(axis=0)))
    if cost > budget:
        return None
    pieces_of_cell = np.bincount(tokens.cell_ids)
    # The original may grow to one row too many, which takes draws of the generator.
    most = [
        min(max_columns, int(tokens.column_ids[-1])),
        min(max_rows, tokens.num_rows + 1),
        int(pieces_of_cell.max()),
    ]
    # Every cell has a token, so that no size that fits is above the budget.
    possible = positions[:, (positions <= budget).all(axis=0)]  # [3, tokens that may fit]
    sorted_by = [possible[:, np.argsort(values, kind="stable")] for values in possible]
    begins = [
        np.searchsorted(by[axis], np.arange(budget + 3)).tolist()
        for axis, by in enumerate(sorted_by)
    ]
    while size != most and cost <= budget:
        for axis in range(3):
            if size[axis] >= most[axis] or rng.random() >= 0.5:
                continue
            if size[axis] <= budget:
                begin, end = begins[axis][size[axis] : size[axis] + 2]
                added = sorted_by[axis][:, begin:end]
                first, second = (other for other in range(3) if other != axis)
                fits = (added[first] < size[first]) & (added[second] < size[second])
                cost += int(np.count_nonzero(fits))
            if cost > budget:
                break
            size[axis] += 1
    return np.all(positions < np.array(size)[:, np.newaxis], axis=0)


def whole_words(
    input_ids: np.ndarray,
    column_ids: np.ndarray,
    row_ids: np.ndarray,
    wordpiece: Wordpiece,
    whole_cells: bool,
    original: bool = False,
) -> list[list[int]]:
    """The positions of the tokens that are masked together, without [CLS] and [SEP].

    The ids are int [T]. With `whole_cells` a cell's tokens belong together, otherwise a word's, as
    in text. With `original` consecutive cells of one column are one cell, as in the release.
    """
    continues = wordpiece.is_inner[input_ids]  # [T]
    if whole_cells:
        same_cell = (column_ids[1:] > 0) & (column_ids[1:] == column_ids[:-1])
        if not original:
            same_cell &= row_ids[1:] == row_ids[:-1]
        continues[1:] |= same_cell
    special = (input_ids == wordpiece.cls) | (input_ids == wordpiece.sep)
    words: list[list[int]] = []
    is_continued = continues.tolist()
    for position in np.flatnonzero(~special).tolist():
        if is_continued[position] and words:
            words[-1].append(position)
        else:
            words.append([position])
    return words


def draw_masks(
    words: list[list[int]],
    num_predictions: int,
    mask_id: int,
    vocabulary_size: int,
    rng: random.Random,
) -> dict[int, int | None]:
    """Draws the positions to predict, whole words only; gives each its new id, or None to stay.

    Draws: a shuffle of the words, in place; for each position taken one number, for one in five a
    second, and for one in ten a piece of the vocabulary. 80 % become `mask_id`, [MASK], 10 % a
    random piece, and 10 % stay. Words longer than what is left of num_predictions are skipped.
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
            else:
                is_kept = rng.random() < _SHARE_OF_REST_KEPT
                masks[position] = None if is_kept else rng.randrange(vocabulary_size)
    return masks
