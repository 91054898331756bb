"""What tests of features share: an example of a question and a table, and tables."""

from hypothesis import strategies as st

from mate_tf.features.builder import Example, FeatureBuilder
from mate_tf.features.config import FeatureConfig
from mate_tf.features.wordpiece import Wordpiece
from mate_tf.tables.table import Question, Table


def build(
    wordpiece: Wordpiece, table: Table, question: Question, require_answers: bool = True, **config
) -> Example:
    builder = FeatureBuilder(wordpiece, FeatureConfig(**config))
    return builder.build(table, question, require_answers)


def pieces(wordpiece: Wordpiece, example: Example, where=None) -> str:
    """The pieces of an example's tokens, or of those chosen by a function of its features."""
    features = example.features
    chosen = features["input_mask"] == 1 if where is None else where(features)
    return " ".join(wordpiece.vocabulary[index] for index in features["input_ids"][chosen])


def rows_of(cells: st.SearchStrategy, max_width: int = 4) -> st.SearchStrategy:
    """Two to six rows of these cells."""
    return st.integers(1, max_width).flatmap(
        lambda width: st.lists(
            st.lists(cells, min_size=width, max_size=width), min_size=2, max_size=6
        )
    )
