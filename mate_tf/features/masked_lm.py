"""Pre-training examples: some words of a text and its table are masked, and to be predicted.

An example is an excerpt of the texts that go with a table and of the table, or now and then of
another table, which is to be told from the right one (Herzig et al., 2020, section 4). Words and,
if asked for, cells are masked as wholes.

Column ranks and numbers are those of the whole table before anything is masked, as in the original:
they let a model guess at masked numbers.

Shape letters: S sequence, N tokens of a table, P predictions.

Random excerpts of texts and tables, as long as a sequence has room for.

TAPAS is pre-trained on a stretch of the text around a table and on the table's upper left corner,
with cells cut after so many pieces (Herzig et al., 2020, section 4). The generator's draws and
their order are the original's: the same seed gives the same excerpt.

Shape letters: N tokens of a table, M those of them that may fit.
"""

import functools
import hashlib
import random
from collections.abc import Sequence

import numpy as np

from mate_tf.features.config import ConversionError, MaskedLmConfig
from mate_tf.features.normalization import normalize_for_match
from mate_tf.features.tokenized_table import (
    Layout,
    TokenizedTable,
    no_table,
    table_features,
    tokenize_table,
)
from mate_tf.features.wordpiece import Wordpiece
from mate_tf.tables.table import Table

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


def draw_text(
    texts: Sequence[Sequence[int]],
    is_inner: np.ndarray,
    shortest: int,
    longest: int,
    join: bool,
    rng: random.Random,
) -> list[int] | None:
    """Draws a stretch of the texts, or one of them.

    Draws: a shuffle of the texts; with join and enough pieces, where the stretch begins and ends.

    Args:
        texts: the pieces of each text.
        is_inner: bool [vocabulary size], true where a piece continues a word.
        shortest, longest: limits of the number of pieces; words at either end of a stretch are
            completed, past the limit if need be.
        join: whether the stretch is of all texts, joined in random order. Otherwise it is the first
            of them, in random order, whose length is within the limits.
        rng: the generator.

    Returns:
        The pieces; None where the texts are too short, or none is of a length that fits.
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
    """Draws how many columns, rows and pieces of a cell of a table to take.

    From one each on, they grow in turn, one by one with even odds, until the table is complete or
    the next step would not fit. A cell's last word is complete.

    Draws: one number for each chance to grow.

    Args:
        tokens: the table.
        budget: the most tokens to take.
        max_columns, max_rows: the most columns and body rows to take.
        rng: the generator.

    Returns:
        Which tokens to take, bool [N]; None where not even the first words of the first column's
        header and cell fit.
    """
    # A token is taken if its place on each axis is below the size there; the header's row is -1.
    places = np.stack([tokens.column_ids - 1, tokens.row_ids - 1, tokens.word_begins])  # [3, N]
    size = [1, 1, 1]
    cost = int(np.count_nonzero((places < 1).all(axis=0)))
    if cost > budget:
        return None
    # The original has one row too many to grow to, which takes draws of the generator.
    most = [
        min(max_columns, int(tokens.column_ids[-1])),
        min(max_rows, tokens.num_rows + 1),
        _longest_cell(tokens),
    ]
    # As each cell has a token, no size that fits is above the budget.
    possible = places[:, (places <= budget).all(axis=0)]  # [3, M]
    sorted_by = [possible[:, np.argsort(of_axis, kind="stable")] for of_axis in possible]
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
    return np.all(places < np.array(size)[:, np.newaxis], axis=0)


def _longest_cell(tokens: TokenizedTable) -> int:
    """The number of pieces of the longest cell."""
    changes = (np.diff(tokens.column_ids) != 0) | (np.diff(tokens.row_ids) != 0)  # [N-1]
    ends = np.append(np.flatnonzero(changes) + 1, len(tokens.column_ids))
    return int(np.diff(ends, prepend=0).max())


_SHARE_OF_NEGATIVES = 0.5
_TABLES_REMEMBERED = 1024


class MaskedLmBuilder:
    """Turns tables and their texts into pre-training examples; a table is tokenized once.

    Args:
        wordpiece: the vocabulary.
        config: what an example is like.
    """

    def __init__(self, wordpiece: Wordpiece, config: MaskedLmConfig | None = None):
        self.wordpiece = wordpiece
        self.config = config or MaskedLmConfig()
        self._tokenized = functools.lru_cache(_TABLES_REMEMBERED)(self._tokenize)
        self._text_ids = functools.lru_cache(_TABLES_REMEMBERED)(wordpiece.ids)

    def build(
        self,
        table: Table | None,
        texts: Sequence[str],
        rng: random.Random,
        negative: Table | None = None,
    ) -> dict[str, np.ndarray]:
        """Draws an example.

        The draws and their order are part of the contract: the same state of the generator gives
        the same example, and the original's. They are the text (excerpts.draw_text), whether the
        negative takes the table's place (if there is one), the table's size (excerpts.draw_corner)
        and the masks (masking.draw_masks).

        Args:
            table: the table; None for text alone.
            texts: what is written about it. Without a table the first is taken from its beginning,
                whatever its length.
            rng: the generator.
            negative: another table, which takes the place of the first in half of the cases.

        Returns:
            The features by name: those of tokens [S], as FeatureBuilder.build has them, table_id
            and table_id_hash [1], and masked_lm_positions and masked_lm_ids int32 [P],
            masked_lm_weights float32 [P], next_sentence_labels and is_random_table int32 [1], 1 for
            a negative. There is no question, so that all relations are 0. Where fewer tokens are
            masked than there is room for, positions, ids and weights end in zeros; where no word
            or cell is short enough, none is masked.

        Raises:
            ConversionError: if the texts are too short (reason "no fitting text", with
                require_text), or the table's first header and cell do not fit (reason "too long").
            ValueError: if there is neither a table nor a text.
        """
        ids_of_texts = self._text_ids(tuple(map(normalize_for_match, texts)))
        shortest = self.config.min_text_length
        if not self.config.require_text:
            shortest = min(shortest, sum(map(len, ids_of_texts)))
        ids = draw_text(
            ids_of_texts,
            self.wordpiece.is_inner,
            shortest,
            self.config.max_text_length,
            self.config.join_texts,
            rng,
        )
        is_negative = negative is not None and rng.random() < _SHARE_OF_NEGATIVES
        table = negative if is_negative else table
        if table is None:
            if not texts:
                raise ValueError("expected a table or a text, got neither")
            first = self._text_ids((texts[0],))[0][: self.config.max_seq_length - 1]
            text_ids = [self.wordpiece.cls, *first]
            tokens, kept = no_table(), np.zeros(0, bool)
        else:
            if ids is None:
                raise self._text_error(ids_of_texts, table)
            text_ids = [self.wordpiece.cls, *ids, self.wordpiece.sep]
            tokens = self._tokenized(table)
            kept = self._draw_corner(tokens, len(text_ids), table, rng)
        features = Layout(tokens, kept, text_ids, self.config.max_seq_length).features()
        labels = self._mask(features, rng)
        return {
            **features,
            **table_features(table),
            **labels,
            "next_sentence_labels": np.array([is_negative], np.int32),
            "is_random_table": np.array([is_negative], np.int32),
        }

    def _tokenize(self, table: Table) -> TokenizedTable:
        return tokenize_table(
            self.wordpiece,
            table,
            strip_column_names=self.config.strip_column_names,
            original=self.config.original_conversion,
        )

    def _text_error(self, ids_of_texts: list[list[int]], table: Table) -> ConversionError:
        least, most = self.config.min_text_length, self.config.max_text_length
        lengths = [len(ids) for ids in ids_of_texts]
        if self.config.join_texts:
            problem = f"expected at least {least} pieces of text, got {sum(lengths)}"
        else:
            problem = f"expected a text of {least} to {most} pieces, got some of {lengths}"
        return ConversionError(
            "no fitting text",
            f"{problem} (table '{table.table_id}'); add texts or change min_text_length",
        )

    def _draw_corner(
        self, tokens: TokenizedTable, start: int, table: Table, rng: random.Random
    ) -> np.ndarray:
        """Which tokens of the table follow the first start tokens: bool [N]."""
        spare = 0 if self.config.original_conversion else 1
        max_rows = tokens.num_rows + 1
        if self.config.max_row_id is not None:
            max_rows = self.config.max_row_id - spare
        budget = self.config.max_seq_length - start
        kept = draw_corner(tokens, budget, self.config.max_column_id - spare, max_rows, rng)
        if kept is None:
            raise ConversionError(
                "too long",
                f"expected at most {self.config.max_seq_length} tokens, got more for {start} of "
                f"text and one cell (table '{table.table_id}'); raise max_seq_length",
            )
        return kept

    def _mask(self, features: dict[str, np.ndarray], rng: random.Random) -> dict[str, np.ndarray]:
        """Masks tokens in features["input_ids"], in place, and returns their labels."""
        num_tokens = int(features["input_mask"].sum())
        input_ids = features["input_ids"][:num_tokens]
        num_predictions = min(
            self.config.max_predictions,
            max(1, round(num_tokens * self.config.masking_probability)),
        )
        words = whole_words(
            input_ids,
            features["column_ids"][:num_tokens],
            features["row_ids"][:num_tokens],
            self.wordpiece,
            whole_cells=self.config.whole_cells,
            original=self.config.original_conversion,
        )
        return mask_tokens(
            input_ids, words, num_predictions, self.config.max_predictions, self.wordpiece, rng
        )


def example_rng(key: str, seed: int, max_seq_length: int) -> random.Random:
    """The generator of the example of a key: it depends on nothing else, as the original's.

    The key of the n-th example of a table is the table's, "_" and n, from 0.
    """
    digest = hashlib.sha256(
        f"{key}_{seed}_{max_seq_length}".encode(errors="backslashreplace")
    ).hexdigest()
    return random.Random(int(digest, 16))
