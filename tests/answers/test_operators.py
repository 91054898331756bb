"""Operators are known by their names, so that another one is one entry and changes no meaning."""

import statistics

import numpy as np
import pytest
import tensorflow as tf

from mate_tf.answers.decoding import Asked, decode_cells
from mate_tf.answers.drawing import answer_html
from mate_tf.models.table_qa import TableQuestionAnswering
from mate_tf.serving.loading import from_pretrained
from mate_tf.tables.operators import OPERATORS, TAPAS_OPERATORS, Operator, operators_by_id
from mate_tf.tables.table import Table
from mate_tf.task_configs import TableQAConfig
from mate_tf.weights.folder import DEFAULT_MODEL
from mate_tf.weights.initial import assign_variables, variables_by_name
from tests.layers.small_layers import features_of
from tests.small import ENCODER, cases

TABLE = Table.from_rows([["km"], ["9"], ["1"], ["2"]])
AGES = Table.from_rows([["name", "age"], ["Ann", "31"], ["Bob", "25"], ["Eve", "40"]])
DIFFERENCE = "what is the difference in age between Ann and Bob?"


@pytest.fixture
def median(monkeypatch):
    """Another operator, in the middle of the table."""
    entries = dict(OPERATORS)
    for name in list(OPERATORS):
        monkeypatch.delitem(OPERATORS, name)
    for name, operator in entries.items():
        monkeypatch.setitem(OPERATORS, name, operator)
        if name == "MIN":
            terms = ("median of ", ", ", "")
            monkeypatch.setitem(
                OPERATORS, "MEDIAN", Operator("median of", terms, statistics.median)
            )


def decoded(config: TableQAConfig, operator: str):
    """The answer of a model that is sure of three cells and of an operator."""
    features = features_of([[(0, 0, 0), (1, 1, 0), (1, 1, 1), (1, 1, 2), (1, 1, 3)]], 5)
    logits = [[5.0 * (name == operator) for name in config.operators]]
    outputs = {"aggregation_logits": tf.constant(logits)}
    outputs["token_probabilities"] = tf.constant([[0.0, 0.0, 0.9, 0.9, 0.9]])
    (answer,) = decode_cells(config, outputs, Asked([TABLE], features))
    return answer


def test_another_operator_is_one_entry(median):
    config = TableQAConfig(operators=(*TAPAS_OPERATORS, "MEDIAN"), select_one_column=False)
    answer = decoded(config, "MEDIAN")
    assert (answer.aggregation, answer.text, answer.value) == ("MEDIAN", "2", 2.0)
    html = answer_html(answer, TABLE.header)
    assert "median of 9, 1, 2 = 2" in html and "median of 3 cells" in html
    assert operators_by_id()[-1] == "MEDIAN"


@cases(
    "operators", tuple(OPERATORS), ("NONE", "SUM", "AVERAGE", "COUNT", "ABSENT", "MIN", "DISTINCT")
)
def test_a_models_outputs_are_read_in_its_own_order(median, operators):
    config = TableQAConfig(operators=operators, select_one_column=False)
    names = [name for name in operators if name not in ("NONE", "ABSENT")]
    # Of three cells nothing is computed that takes two or their ranks.
    expected = [name for name in names if OPERATORS[name].compute and not OPERATORS[name].takes_two]
    assert [decoded(config, name).aggregation for name in expected] == expected
    if "ABSENT" in operators:
        assert decoded(config, "ABSENT").absent


def test_the_default_model_reads_differences_as_differences(median):
    answer = from_pretrained(DEFAULT_MODEL).answer(AGES, DIFFERENCE)
    assert (answer.aggregation, answer.text) == ("DIFFERENCE", "6")


@cases(
    "stored, kept",
    (TAPAS_OPERATORS, TAPAS_OPERATORS),
    (("NONE", "SUM", "AVERAGE", "COUNT", "MIN", "MAX"),) * 2,
)
def test_weights_of_operators_go_to_their_names(stored, kept):
    model = TableQuestionAnswering(ENCODER, TableQAConfig(operators=operators_by_id()))
    model.build()
    values = {name: variable.numpy() for name, variable in variables_by_name(model).items()}
    rows = np.arange(1.0, len(stored) + 1)
    values["output_bias_agg"] = rows
    values["output_weights_agg"] = np.tile(rows[:, None], ENCODER.hidden_size)
    readers = {name: (lambda value=value: value) for name, value in values.items()}
    assign_variables(model, readers, "some.ckpt", operators=stored)
    for place, name in enumerate(operators_by_id()):
        bias = model.aggregation.output_bias_agg.numpy()[place]
        assert bias == (rows[kept.index(name)] if name in kept else -4.0), name
    smaller = TableQuestionAnswering(ENCODER, TableQAConfig())
    smaller.build()
    if stored != TAPAS_OPERATORS:
        with pytest.raises(ValueError, match="without MIN, MAX; reset_heads leaves"):
            assign_variables(smaller, readers, "some.ckpt", operators=stored)
