"""Tasks from their layouts to their official scores, by way of a trained model.

One for each kind of model and of score; the readers' own tests have the other layouts.
"""

import dataclasses
import shutil

import pytest

from mate_tf.answers.answer import Answer
from mate_tf.config import MateConfig
from mate_tf.evaluation.predictions import answer_sequences, read_predictions, write_predictions
from mate_tf.evaluation.scoring import score
from mate_tf.features.config import FeatureConfig
from mate_tf.records.creation import Creation, create_records
from mate_tf.records.splits import read_questions
from mate_tf.serving.loading import from_pretrained
from mate_tf.training.run import train_run
from mate_tf.training.starting_points import make_config
from tests.datasets.releases import RELEASES, write_release
from tests.small import PIECES, write_vocabulary

pytestmark = pytest.mark.medium

VOCABULARY = [*PIECES, "?", *"01234x"]
# The layout, the preset, and the scores, the main one first.
TASKS_HERE = {
    "SQA": ("SQA", "sqa_base", ["all", "all_d", "seq", "all_position_0"]),
    "WIKISQL": ("WikiSQL", "wikisql_base", ["denotation_accuracy"]),
    "TABFACT": ("TabFact", "tabfact_base", ["accuracy"]),
    "HYBRIDQA": ("HybridQA", "hybridqa_mate_large", ["exact_match", "f1", "hits_at_1"]),
}


def small(preset: str):
    """The preset, of SQA with another architecture, at a size that trains in seconds."""
    of_sqa = ("tableformer_pcp", ["--config.perturbed_copies=8"])
    config = make_config(preset, *(of_sqa if preset == "sqa_base" else (None, [])))
    attention = config.encoder.attention
    if isinstance(attention, MateConfig) and attention.evaluator == "multi_view":
        attention = dataclasses.replace(attention, bucket_size=4, global_size=4)
    sizes = dict(hidden_size=16, num_layers=1, num_heads=2, intermediate_size=16)
    sizes["vocab_size"] = len(VOCABULARY)
    encoder = dataclasses.replace(config.encoder, attention=attention, **sizes)
    short = dict(max_seq_length=24, length_buckets=(), batch_size=4, num_steps=2, dtype="float32")
    return dataclasses.replace(config, encoder=encoder, **short)


@pytest.mark.parametrize("task", TASKS_HERE)
def test_a_task_goes_from_its_layout_to_its_scores(task, tmp_path):
    layout, preset, names = TASKS_HERE[task]
    source = write_release(tmp_path / "in", RELEASES[layout])
    data_dir, model_dir = tmp_path / "data", tmp_path / "run"
    vocab_file = write_vocabulary(tmp_path / "vocab.txt", VOCABULARY)
    creation = Creation(
        task=task,
        input_dir=str(source),
        output_dir=str(data_dir),
        vocab_file=str(vocab_file),
        splits=["train"],
    )
    list(create_records(creation, FeatureConfig(max_seq_length=24)))
    for ending in ("tfrecord", "jsonl"):
        shutil.copy(data_dir / f"train.{ending}", data_dir / f"dev.{ending}")

    metrics = train_run(small(preset), data_dir, model_dir, None)
    assert metrics.keys() >= {names[0], "loss"}

    pairs = list(read_questions(data_dir, "dev"))
    predictor = from_pretrained(model_dir)
    answer_all = predictor.answer_all(pairs)
    if task == "SQA":
        answer_all = answer_sequences(predictor.answer_all, pairs)
    predictions = [(question.question_id, Answer.of(answer)) for _, question, answer in answer_all]
    assert not any(answer.error for _, answer in predictions)
    write_predictions(tmp_path / "predictions.jsonl", predictions)
    scores = score(task, read_predictions(tmp_path / "predictions.jsonl"), pairs)
    assert [name for name in scores if name not in ("expected_calibration_error", "auroc")] == names
    # With one answer no more than right or wrong.
    assert set(scores.values()) - {scores["expected_calibration_error"]} <= {0.0, 1.0}
