"""Robustness to the order of rows and columns, as the TableFormer paper measures it."""

import dataclasses
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from experiments.robustness import (
    is_tied,
    measure_robustness,
    random_order,
    reorder,
    robustness_metrics,
)
from mate_tf.answers.answer import Answer
from mate_tf.answers.predictor import Predictor
from mate_tf.config import AttentionConfig
from mate_tf.datasets.json_lines import write_json_lines
from mate_tf.evaluation.official import denotation_correct
from mate_tf.evaluation.predictions import answer_sequences
from mate_tf.features.builder import FeatureBuilder
from mate_tf.features.config import FeatureConfig
from mate_tf.features.wordpiece import Wordpiece
from mate_tf.models.table_qa import TableQuestionAnswering
from mate_tf.presets import with_architecture
from mate_tf.serving.export import export_saved_model
from mate_tf.tables.table import Question, Table
from mate_tf.task_configs import TableQAConfig
from tests.small import ENCODER, cases, succeeded, without_tables, write_vocabulary

WORDS = [*"bcdefghijklmnopq"]
PIECES = ["[PAD]", "[EMPTY]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS, *map(str, range(10))]
FEATURES = FeatureConfig(max_seq_length=128)
EIGHTHS = (3 / 8, 3 / 8, 1 / 8)


def make_pairs(count=12) -> list[tuple[Table, Question]]:
    """Questions about tables of 3 to 6 rows and 2 to 4 columns, whose cells all differ."""
    random = np.random.default_rng(5)
    pairs = []
    for index in range(count):
        num_columns = 2 + index % 3
        words = random.permutation(len(WORDS) ** 2)
        texts = iter(f"{WORDS[n // len(WORDS)]} {WORDS[n % len(WORDS)]}" for n in words)
        rows = [[next(texts) for _ in range(num_columns)] for _ in range(3 + index % 4)]
        rows = [[str(n), *row[1:]] for n, row in enumerate(rows)]
        table = Table.from_rows(rows, [next(texts) for _ in range(num_columns)], f"t{index // 2}")
        pairs.append((table, Question(f"{next(texts)} {index % 10}", f"q{index}")))
    return pairs


def make_model(architecture: str) -> TableQuestionAnswering:
    """With random weights, large enough for answers that differ; relations are not zero."""
    changes: Any = dict(vocab_size=len(PIECES), num_layers=2, position="absolute")
    encoder = dataclasses.replace(ENCODER, attention=AttentionConfig(), **changes)
    tf.keras.utils.set_random_seed(1)
    model = TableQuestionAnswering(with_architecture(encoder, architecture), TableQAConfig())
    model.build()
    random = np.random.default_rng(0)
    for weight in model.weights:
        if "relative_" in weight.path:
            weight.assign(random.normal(size=weight.shape))
    return model


@pytest.fixture(scope="module")
def vocab_file(tmp_path_factory):
    return write_vocabulary(tmp_path_factory.mktemp("vocabulary") / "vocab.txt", PIECES)


def predictor_of(architecture: str, vocab_file) -> Predictor:
    model = make_model(architecture)
    return Predictor(lambda f: model(f), FeatureBuilder(Wordpiece(vocab_file), FEATURES))


def with_own_answers(predictor, pairs):
    """The questions, with what the model answers as gold."""
    return [
        (table, dataclasses.replace(question, answers=answer.items))
        for table, question, answer in predictor.answer_all(pairs)
    ]


def is_correct(answer, question) -> bool:
    return denotation_correct(answer.items, question.answers)


@pytest.mark.parametrize("architecture", ["tableformer_pcp", "mate_tableformer"])
def test_relations_without_ids_answer_alike_in_every_order(vocab_file, architecture):
    predictor = predictor_of(architecture, vocab_file)
    pairs = with_own_answers(predictor, make_pairs())
    wrong = [(table, dataclasses.replace(q, answers=("z",))) for table, q in pairs[:3]]
    metrics = measure_robustness(predictor.answer_all, [*wrong, *pairs[3:]], is_correct, 2, 7)
    expected = {"accuracy": 0.75, "perturbed_accuracy": 0.75, "variation_percentage": 0.0}
    assert metrics == expected | {"tied_variation_percentage": 0.0}
    answers = [answer for _, _, answer in predictor.answer_all(pairs)]
    assert len({answer.text for answer in answers}) > 3
    orders = [random_order(table, 7) for table, _ in pairs]
    reordered = [reorder(*pair, order) for pair, order in zip(pairs, orders, strict=True)]
    assert all(table != former for (table, _), (former, _) in zip(reordered, pairs, strict=True))
    found = predictor.answer_all(reordered)
    for (_, _, actual), expected, order in zip(found, answers, orders, strict=True):
        there = {(order.rows[cell.row], order.columns[cell.column]) for cell in actual.cells}
        assert there == {(cell.row, cell.column) for cell in expected.cells}
        assert actual.aggregation == expected.aggregation


def test_ids_and_absolute_positions_make_answers_vary(vocab_file):
    predictor = predictor_of("tapas", vocab_file)
    pairs = with_own_answers(predictor, make_pairs())
    metrics = measure_robustness(predictor.answer_all, pairs, is_correct, num_perturbations=3)
    assert metrics["accuracy"] == 1.0
    assert metrics["perturbed_accuracy"] < 1.0
    assert metrics["variation_percentage"] == pytest.approx(1.0 - metrics["perturbed_accuracy"])
    again = measure_robustness(predictor.answer_all, pairs, is_correct, num_perturbations=3)
    assert again == metrics
    other = measure_robustness(predictor.answer_all, pairs, is_correct, 3, seed=50)
    assert other != metrics


def test_each_perturbation_has_an_order_of_its_own_and_the_questions_of_a_table_share_it():
    asked = []

    def answer_all(pairs):
        asked.append(pairs)
        return [(*pair, ValueError("not accepted")) for pair in pairs]

    table = Table.from_rows([[str(n)] for n in range(20)], ["x"])
    pairs = [(table, Question("a", answer_coordinates=((3, 0),))), (table, Question("b"))]
    metrics = measure_robustness(answer_all, pairs, lambda answer, question: False, 2, 3)
    assert set(metrics.values()) == {0.0} and len(metrics) == 4
    assert asked[0] == pairs
    assert len({asked[n][0][0] for n in range(3)}) == 3
    for (first, question), (second, _) in asked:
        assert first == second
        ((row, _),) = question.answer_coordinates
        assert first.rows[row] == ("3",)


@cases(
    "before, after, tied, expected",
    # One of each: t2t, t2f, f2t, f2f.
    ([1, 1, 0, 0], [[1, 0, 1, 0]], None, (0.5, 0.5, 0.5, 0.0)),
    ([1, 1], [[0, 0], [0, 1]], None, (1.0, 0.25, 0.75, 0.0)),
    ([0], [[1]], None, (0.0, 1.0, 1.0, 0.0)),
    # Changes between answers that are as good are counted apart.
    ([1, 1, 0, 0], [[1, 0, 1, 0], [0, 1, 0, 0]], [[1, 1, 0, 1], [0, 1, 1, 1]], (0.5, *EIGHTHS)),
)
def test_variation_counts_turns_in_both_directions(before, after, tied, expected):
    assert tuple(robustness_metrics(before, after, tied).values()) == expected


def test_answers_are_tied_whose_scores_are_alike():
    for score, expected in ((0.5, True), (0.499995, True), (0.5000101, False), (0.49, False)):
        other = Answer(("x",), score=score)
        assert is_tied(Answer(("x",), score=0.5, alternatives=(other,))) == expected
    assert not is_tied(Answer(("x",))) and not is_tied(ValueError())


@cases("before, after, share", (False, True, 1.0), (True, False, 1.0), (False, False, 0.0))
def test_a_tie_counts_before_the_change_of_order_and_after_it(before, after, share):
    answer = Answer(("x",), score=0.5)
    other = dataclasses.replace(answer, score=0.5)
    clear = dataclasses.replace(answer, score=0.25)
    ties = iter([before, after])

    def answer_all(pairs):
        others = (other if next(ties) else clear,)
        return [(*pair, dataclasses.replace(answer, alternatives=others)) for pair in pairs]

    verdicts = iter([True, False])
    metrics = measure_robustness(answer_all, make_pairs(1), lambda *_: next(verdicts))
    assert metrics["variation_percentage"] == 1.0
    assert metrics["tied_variation_percentage"] == share


def test_the_binary_scores_sequences_with_their_own_history(tmp_path, vocab_file):
    predictor = predictor_of("tableformer_pcp", vocab_file)
    (first, *_), (second, *_) = make_pairs(2)
    # Two sequences of two questions.
    tables, asked = [first, first, second, second], [question for _, question in make_pairs(4)]
    pairs = [
        (tables[n], dataclasses.replace(asked[n], question_id=f"nt-{n // 2}-0_{n % 2}"))
        for n in range(4)
    ]
    answered = list(answer_sequences(predictor.answer_all, pairs))
    pairs = [
        (table, dataclasses.replace(q, answers=("z",), answer_coordinates=answer.coordinates))
        for table, q, answer in answered
    ]
    pairs[0] = first, dataclasses.replace(pairs[0][1], answer_coordinates=())  # wrong
    write_json_lines(tmp_path / "dev.jsonl", pairs)
    with without_tables():
        export_saved_model(make_model("tableformer_pcp"), vocab_file, FEATURES, tmp_path / "model")
    done = succeeded(
        "experiments.robustness",
        *(f"--model={tmp_path / 'model'}", f"--data={tmp_path / 'dev.jsonl'}"),
        *("--task=SQA", "--num_perturbations=2", "--num_virtual_cpus=2"),
    )
    assert done.stdout.splitlines() == [
        "questions: 4",
        "perturbations: 2",
        "accuracy before: 75.00%",
        "accuracy after: 75.00%",
        "variation percentage: 0.00%",
        "  of it where two scores tie: 0.00%",
    ]
    assert not done.stderr  # progress is for terminals
