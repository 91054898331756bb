"""A sequence of questions answered with predicted history, against the original's predictions."""

import csv
import dataclasses
import json

import numpy as np
import pytest

from mate_tf.answers.predictor import Predictor
from mate_tf.evaluation.predictions import answer_sequences
from mate_tf.features.builder import FeatureBuilder
from mate_tf.features.config import FeatureConfig
from mate_tf.features.wordpiece import Wordpiece
from mate_tf.models.table_qa import TableQuestionAnswering
from tests.golden.comparison import GOLDEN, compare
from tests.golden.heads import built, supported_config, task_config
from tests.golden.interactions import load, to_question, to_table

FAMILY = "e2e"


@pytest.fixture
def predictor():
    (vocab_file,) = GOLDEN.require("data/vocab.txt")
    tapas, encoder = supported_config(GOLDEN, GOLDEN.load_index("e2e")["sqa"], length=256)
    model = built(GOLDEN, TableQuestionAnswering(encoder, task_config(tapas)))
    limits = {"max_seq_length": 256, "max_column_id": 512, "max_row_id": 512}
    config = FeatureConfig(**limits, trim_cells=True, original_conversion=True)
    return Predictor(model, FeatureBuilder(Wordpiece(vocab_file), config))


def test_each_question_selects_the_originals_cells_after_its_own_answers(predictor):
    predictions_file, interactions_file = GOLDEN.require(
        "e2e/sqa_sequence.tsv", "data/sqa_interactions_train.json.gz"
    )
    pairs = [
        (to_table(interaction["table"]), to_question(interaction["questions"], index))
        for interaction in load(interactions_file)
        for index in range(len(interaction["questions"]))
    ]

    def answer_all(asked):
        """Without what is answered here alone: by the best cell, and from a part of the rows."""
        for table, question, answer in predictor.answer_all(asked):
            if not isinstance(answer, ValueError) and answer.coverage:
                answer = ValueError(answer.coverage)
            if not isinstance(answer, ValueError):
                cells = tuple(cell for cell in answer.cells if cell.score > 0.5)
                answer = dataclasses.replace(answer, cells=cells)
            yield table, question, answer

    answered = list(answer_sequences(answer_all, pairs))
    with predictions_file.open(encoding="utf-8", newline="") as file:
        csv.field_size_limit(2**31 - 1)
        rows = {row["question_id"]: row for row in csv.DictReader(file, delimiter="\t")}
    refused = [question for _, question, answer in answered if isinstance(answer, ValueError)]
    # The one that is too long is no record, and so has no prediction.
    assert {q.question_id for _, q, _ in answered} - set(rows) == {q.question_id for q in refused}
    scores, expected_scores = [], []
    for _, question, answer in answered:
        if isinstance(answer, ValueError):
            continue
        expected = {
            (cell["row_index"], cell["column_index"]): cell["score"]
            for cell in json.loads(rows[question.question_id]["answers"])
        }
        found = {(cell.row, cell.column): cell.score for cell in answer.cells}
        assert set(found) == set(expected), question.question_id
        scores += [found[cell] for cell in sorted(found)]
        expected_scores += [expected[cell] for cell in sorted(found)]
    compare(FAMILY, "sqa_sequence questions", len(answered) - len(refused), len(rows), 0.0)
    compare(FAMILY, "sqa_sequence scores", np.array(scores), expected_scores, 1e-5)
    # The predicted history is not the gold one: with it, other cells would be selected.
    with_gold = {q.question_id: answer for _, q, answer in answer_all(pairs)}
    predicted = {q.question_id: answer for _, q, answer in answered}
    assert any(
        with_gold[id_].cells != answer.cells
        for id_, answer in predicted.items()
        if not isinstance(answer, ValueError)
    )
