"""Cells far down and far to the right stay cells of their own, from the table to the answer.

Shapes: S sequence, D hidden.
"""

import keras
import numpy as np
import pytest
import tensorflow as tf

from mate_tf.answers.decoding import Asked, decode_cells
from mate_tf.config import AttentionConfig, EncoderConfig
from mate_tf.features.builder import FeatureBuilder
from mate_tf.features.config import FeatureConfig
from mate_tf.features.token_features import TokenFeatures
from mate_tf.features.wordpiece import Wordpiece
from mate_tf.models.table_qa import TableQuestionAnswering
from mate_tf.tables.table import Question, Table
from mate_tf.task_configs import TableQAConfig
from tests.small import write_vocabulary

VOCABULARY = "[PAD] [EMPTY] [UNK] [CLS] [SEP] [MASK] where here head x".split()
ENCODER = EncoderConfig(
    vocab_size=len(VOCABULARY),
    hidden_size=32,
    num_layers=1,
    num_heads=2,
    intermediate_size=32,
    attention=AttentionConfig("mate", "multi_view", bucket_size=32, global_size=32),
)
ROW_700 = (701, 2, (699, 1))
COLUMN_40 = (3, 45, (1, 39))


@pytest.fixture(scope="module")
def builder(tmp_path_factory) -> FeatureBuilder:
    vocab_file = write_vocabulary(tmp_path_factory.mktemp("vocabulary") / "vocab.txt", VOCABULARY)
    return FeatureBuilder(Wordpiece(vocab_file), FeatureConfig(max_seq_length=None))


def selected(builder, rows: int, columns: int, cell: tuple[int, int], **limits):
    """The cells that a model selects whose heads single out the word of one cell, "here".

    The other cells of the body say "x", those of the header "head".
    """
    cells = [["x"] * columns for _ in range(rows)]
    cells[cell[0]][cell[1]] = "here"
    table = Table.from_rows(cells, header=["head"] * columns)
    features = builder.build(table, Question("where", answer_coordinates=(cell,))).features
    batch = TokenFeatures.from_dict(features).map(lambda values: tf.constant(values[None]))
    keras.utils.set_random_seed(0)
    model = TableQuestionAnswering(ENCODER, TableQAConfig(operators=(), **limits))
    model.build()
    (states,) = model.encoder(batch).sequence_output.numpy()  # [S, D]

    def separating(marked: np.ndarray) -> np.ndarray:  # [S] -> [D]
        return 10 * np.linalg.lstsq(states, 2.0 * marked - 1.0)[0]

    head = model.cell_selection
    head.output_weights.assign(separating(features["label_ids"]))
    head.column_output_weights.assign(separating(features["column_ids"] == cell[1] + 1))
    (answer,) = decode_cells(model.task_config, model(batch), Asked([table], batch))
    return [*answer.coordinates]


@pytest.mark.parametrize("table", [ROW_700, COLUMN_40], ids=["row 700", "column 40"])
def test_a_cell_beyond_the_originals_limits_is_selected(builder, table):
    assert selected(builder, *table) == [table[2]]
    assert selected(builder, *table, max_num_rows=64, max_num_columns=32) != [table[2]]
