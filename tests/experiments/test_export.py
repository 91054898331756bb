"""The binary from the outside: runs of classifiers and readers become models that answer."""

import dataclasses
import json
import shutil

import keras
import pytest
import tensorflow as tf

from mate_tf.answers.predictor import Predictor
from mate_tf.features.builder import FeatureBuilder
from mate_tf.features.config import FeatureConfig
from mate_tf.features.wordpiece import Wordpiece
from mate_tf.models.classification import ClassificationConfig
from mate_tf.models.span_reading import SpanReadingConfig
from mate_tf.records.conversion_file import conversion_of, write_conversion
from mate_tf.serving.loading import from_pretrained
from mate_tf.tables.table import Question, Table
from mate_tf.training.config import ClassificationTrainingConfig, SpanReadingTrainingConfig
from mate_tf.training.examples import build_model
from mate_tf.training.run import save_config
from tests.small import ENCODER, PIECES, run_binary, write_vocabulary
from tests.weights.small_models import (
    BERT_CONFIG,
    encoder_config,
    table_qa,
    values_of,
    write_hugging_face,
    write_tf1,
)

TABLES = [
    Table.from_rows([["a", "b"], ["c d", "D"], ["e", "F g"]]),
    Table.from_rows([["a"], *[["c d"]] * 60]),
]
RUNS = {
    "classification": (
        ClassificationTrainingConfig,
        ClassificationConfig(3, class_names=("no", "yes", "perhaps")),
    ),
    "span_reading": (SpanReadingTrainingConfig, SpanReadingConfig(max_span_length=3)),
}


@pytest.mark.medium
@pytest.mark.parametrize("kind", RUNS)
def test_a_run_becomes_a_model_that_answers_like_it(tmp_path, kind):
    config_class, task_config = RUNS[kind]
    config = config_class(num_steps=1, learning_rate=1e-3, encoder=ENCODER, task=task_config)
    keras.utils.set_random_seed(0)
    model = build_model(config)
    vocab_file = write_vocabulary(tmp_path / "vocab.txt")
    run_dir, exported = tmp_path / "run", tmp_path / "model"
    save_config(config, run_dir)
    shutil.copyfile(vocab_file, run_dir / "vocab.txt")
    features = FeatureConfig(max_seq_length=256)
    write_conversion(run_dir, conversion_of(None, features, vocab_file, None))
    weights = {weight.path.partition("/")[2]: weight.value for weight in model.weights}
    tf.train.Checkpoint(weights=weights).save(str(run_dir / "ckpt"))

    flags = (f"--model_dir={run_dir}", f"--output_dir={exported}", "--max_seq_length=256")
    done = run_binary("experiments.export", *flags)
    assert done.returncode == 0, done.stderr
    assert f"exported step 1 of {run_dir} ({kind})" in done.stdout
    written = json.loads((exported / "assets.extra" / "mate_tf.json").read_text())
    assert written["kind"] == kind

    builder = FeatureBuilder(Wordpiece(vocab_file), features)
    ours = Predictor(
        lambda batch: model(batch, training=False),
        builder,
        task_config=task_config,
        num_alternatives=2,
    )
    pairs = [(table, Question("h g", str(number))) for number, table in enumerate(TABLES)]
    loaded = from_pretrained(exported, num_alternatives=2)
    answers = zip(ours.answer_all(pairs), loaded.answer_all(pairs), strict=True)
    for (_, _, expected), (_, _, actual) in answers:
        assert len(expected.alternatives) == 2
        for one, other in zip(
            [expected, *expected.alternatives], [actual, *actual.alternatives], strict=True
        ):
            assert one.score == pytest.approx(other.score, abs=1e-5)
            assert (one.items, one.class_index) == (other.items, other.class_index)
            assert [dataclasses.astuple(cell)[:3] for cell in one.cells] == [
                dataclasses.astuple(cell)[:3] for cell in other.cells
            ]


@pytest.mark.medium
@pytest.mark.parametrize("kind", ["hugging_face", "tf1"])
def test_a_published_checkpoint_becomes_a_model_that_attends_as_asked(tmp_path, kind):
    values = values_of(table_qa())
    folder = tmp_path / "weights"
    flags = [f"--checkpoint={folder}"]
    if kind == "tf1":
        folder.mkdir()
        write_tf1(folder / "model.ckpt", values)
        (folder / "bert_config.json").write_text(json.dumps(encoder_config().to_bert_config()))
        flags = [f"--checkpoint={folder / 'model.ckpt'}", "--config=wtq_base"]
    else:
        of_tapas = {"architectures": ["TapasForQuestionAnswering"], "num_aggregation_labels": 4}
        write_hugging_face(folder, values, **of_tapas)
    write_vocabulary(folder / "vocab.txt", PIECES[: BERT_CONFIG["vocab_size"]])
    exported = tmp_path / "model"
    flags += ["--architecture=mate", f"--output_dir={exported}"]
    done = run_binary("experiments.export", *flags)
    assert done.returncode == 0, done.stderr
    written = json.loads((exported / "assets.extra" / "mate_tf.json").read_text())
    assert written["encoder"]["attention"]["architecture"] == "mate"
    assert written["features"]["original_conversion"]
    assert written["features"]["max_seq_length"] == 16384
    assert from_pretrained(exported).answer(TABLES[1], "a").cells


def test_a_run_and_a_checkpoint_are_not_exported_together(tmp_path):
    done = run_binary("experiments.export", f"--output_dir={tmp_path}")
    assert done.returncode == 1
    assert "expected either --model_dir or --checkpoint" in done.stderr
