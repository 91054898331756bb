"""One function for all weights: what it takes, what becomes of heads, what it refuses."""

import json
import logging
import sys
import types
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from safetensors.numpy import load_file, save_file

from mate_tf.config import AttentionConfig
from mate_tf.features.token_features import TokenFeatures
from mate_tf.layers.encoder import TableEncoder
from mate_tf.models import make_model
from mate_tf.task_configs import ClassificationConfig, SpanReadingConfig, TableQAConfig
from mate_tf.training.config import MaskedLMTrainingConfig, TableQATrainingConfig
from mate_tf.weights.initial import (
    assign_variables,
    hugging_face_config,
    load_hugging_face,
    load_tf1_checkpoint,
    load_weights,
    published_configs,
    restore_published,
    variables_by_name,
)
from mate_tf.weights.run import FILE
from tests.small import ENCODER, bert_config, cases, restored_step, write_run
from tests.weights.small_models import (
    BERT_CONFIG,
    assert_values,
    classifier,
    classifier_values,
    encoder_config,
    table_qa,
    table_qa_values,
    values_of,
    write_hugging_face,
    write_tf1,
)

AGGREGATION = ["output_bias_agg", "output_weights_agg"]
CELLS = ["column_output_bias", "column_output_weights", "output_bias", "output_weights"]
CLASSES = ["output_bias_cls", "output_weights_cls"]
NO_AGGREGATION: dict[str, Any] = {"operators": ()}
MATE = AttentionConfig("mate", "multi_view", bucket_size=4, global_size=4)


def heads(names) -> list[str]:
    return sorted(name for name in names if not name.startswith("bert/"))


def write_tf1_folder(folder, values) -> None:
    folder.mkdir()
    write_tf1(folder / "model.ckpt", values | {"global_step": np.array(7)})


def published(path, task=None, attention=None, **options):
    """The model of a published checkpoint; all tokens attend to all, as TAPAS was trained."""
    options["attention"] = attention or AttentionConfig("tapas")
    location, encoder, task = published_configs(path, task, **options)
    model = make_model(encoder, task)
    restore_published(model, location)
    return model


DESCRIBED = {"architectures": ["TapasForQuestionAnswering"], "num_aggregation_labels": 4}
WRITERS: dict[str, Any] = {"tf1": write_tf1_folder, "hugging_face": write_hugging_face}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """The folder of a run of two layers for cell selection without aggregation, and its values."""
    options = dict(encoder=encoder_config(num_layers=2), task=TableQAConfig(**NO_AGGREGATION))
    config = TableQATrainingConfig(num_steps=1, learning_rate=0.1, **options)
    folder = write_run(tmp_path_factory.mktemp("run"), config)
    (folder / "vocab.txt").write_text("[PAD]\n[unused0]\na\n")
    return folder, values_of(table_qa(task=NO_AGGREGATION, num_layers=2))


# What is trained next, and of its heads what the run has and what is new.
@cases(
    "make, options, loaded, new, ignored",
    (table_qa, {}, CELLS, AGGREGATION, []),
    (table_qa, {"task": NO_AGGREGATION, "attention": MATE}, CELLS, [], []),
    (classifier, {}, [], CLASSES, [f"cell_selection/{name}" for name in CELLS]),
)
def test_a_chain_goes_on_from_a_run(run, make, options, loaded, new, ignored):
    folder, trained = run
    model = make(seed=1, num_layers=2, **options)
    first = values_of(model)
    report = load_weights(model, folder)
    assert heads(report.loaded) == loaded
    assert sorted(report.new) == new
    assert list(report.ignored) == ignored
    assert_values(model, trained | {name: first[name] for name in new})


def test_a_run_of_masked_words_gives_no_head_to_table_questions(tmp_path):
    config = MaskedLMTrainingConfig(num_steps=1, learning_rate=1e-3, encoder=ENCODER)
    folder = write_run(tmp_path / "run", config)
    model = make_model(ENCODER, TableQAConfig())
    report = load_weights(model, folder)
    assert heads(report.loaded) == []  # both have an output_bias, of other shapes
    assert sorted(report.new) == sorted(CELLS + AGGREGATION)
    assert "output_bias (of another head)" in report.ignored


# A model of another size, why a run gives it no weights, and why it is not restored into it.
@cases(
    "options, no_weights, not_restored",
    (
        {"num_layers": 2, "hidden_size": 6},
        r"shape \(11, 6\) for variable 'bert.*, got \(11, 8\) in",
        r"in .*ckpt-1, got .*'encoder/.*': its shape is \(11, 8\) there and \(11, 6\) in",
    ),
    (
        {"num_layers": 3},
        r"expected variable 'bert/encoder/layer_2/.*' in .*ckpt-1",
        r"in .*ckpt-1, got 16 others .*'encoder/.*2/.*': its shape is none there and \(8, 8\) in",
    ),
    (
        {"num_layers": 1},
        r"expected 1 layers .*, got 2 in .*ckpt-1.*layer_1/",
        r"in .*ckpt-1, got 16 others .*'encoder/.*1/.*': its shape is \(.*8.*\) there and none in",
    ),
)
def test_a_run_is_restored_into_its_own_model_alone(run, options, no_weights, not_restored):
    folder, trained = run
    own = table_qa(seed=1, task=NO_AGGREGATION, num_layers=2)
    assert restored_step(own, folder) == 1
    assert_values(own, trained)
    other = table_qa(seed=1, **{"task": NO_AGGREGATION} | options)
    first = values_of(other)
    with pytest.raises(ValueError, match=not_restored):
        restored_step(other, folder)
    assert_values(other, first)
    with pytest.raises(ValueError, match=no_weights):
        load_weights(other, folder)
    with pytest.raises(ValueError, match=r"expected 4 attention heads .*, got 2 in .*config\.json"):
        load_weights(table_qa(num_layers=2, num_heads=4), folder)


@pytest.mark.parametrize("kind", WRITERS)
def test_every_head_of_a_checkpoint_is_loaded_and_what_is_over_is_listed(tmp_path, kind):
    values = table_qa_values() | classifier_values()
    WRITERS[kind](tmp_path / "weights", values)
    for make, of_task, others in (
        (table_qa, AGGREGATION + CELLS, CLASSES),
        (classifier, CLASSES, AGGREGATION + CELLS),
    ):
        model = make(seed=1)
        report = load_weights(model, tmp_path / "weights", require_all=True)
        assert heads(report.loaded) == sorted(of_task)
        assert (report.new, report.reset) == ((), ())
        assert list(report.ignored) == sorted(others)
        for name in (*of_task, *others):
            assert name in str(report)
        assert_values(model, values)


@pytest.mark.parametrize("kind", WRITERS)
def test_a_head_of_another_shape_or_none_is_refused_or_starts_anew(tmp_path, kind):
    values = values_of(classifier(num_classes=3))
    WRITERS[kind](tmp_path / "weights", values)
    message = r"shape \(2, 8\) for variable 'output_weights_cls', got \(3, 8\) in .*; reset_heads"
    with pytest.raises(ValueError, match=message):
        load_weights(classifier(), tmp_path / "weights")
    model = classifier(seed=1)
    first = values_of(model)
    report = load_weights(model, tmp_path / "weights", reset_heads=True)
    assert (sorted(report.reset), report.new, report.ignored) == (CLASSES, (), ())
    assert_values(model, values | {name: first[name] for name in CLASSES})
    with pytest.raises(ValueError, match="which has none for output_weights_cls"):
        load_weights(model, tmp_path / "weights", reset_heads=True, require_all=True)
    # A head that is missing is listed for training and an error for use.
    report = load_weights(table_qa(), tmp_path / "weights")
    assert sorted(report.new) == sorted(AGGREGATION + CELLS)
    message = r"expected every variable of the model in .*weights.*, which has none for .*_agg"
    with pytest.raises(ValueError, match=message):
        load_weights(table_qa(), tmp_path / "weights", require_all=True)


@cases(
    "content, message",
    ("[PAD]\n[EMPTY]\na\n", None),
    ("[PAD]\n[unused0]\n", None),
    ("[PAD]\n[unused0]\nb\n", r"piece 'a' of .*run.*vocab\.txt in line 3 of .*, got 'b'; make"),
    ("[PAD]\n[unused0]\na\nb\n", r"at most the 3 pieces of .*vocab\.txt, got 4 in .*; make"),
    (b"\xff", r"expected a vocabulary in UTF-8, got .*data\.txt"),
)
def test_data_of_other_pieces_is_refused(run, tmp_path, content, message):
    vocab_file = tmp_path / "data.txt"
    vocab_file.write_bytes(content if isinstance(content, bytes) else content.encode())
    model = table_qa(num_layers=2)
    if message is None:
        load_weights(model, run[0], vocab_file=vocab_file)
    else:
        with pytest.raises(ValueError, match=message):
            load_weights(model, run[0], vocab_file=vocab_file)


NONE = "expected weights at .*{}, found none: no Hugging Face folder, TF1 "


@cases(
    "path, message",
    *((path, NONE.format(path)) for path in ("nowhere", "empty", "records", "exported")),
    ("strange", r"config\.json of a Hugging Face folder or of a run, got .*strange/config\.j"),
    ("run", "expected a checkpoint in .*run, found none"),
)
def test_where_there_are_no_weights_it_says_so(tmp_path, path, message):
    for name in ("empty", "strange", "run", "records", "exported/variables"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "records" / "train.tfrecord").write_bytes(b"")
    (tmp_path / "records" / "conversion.json").write_text("{}")
    (tmp_path / "exported" / "saved_model.pb").write_bytes(b"")
    (tmp_path / "exported" / "variables" / "variables.index").write_bytes(b"")
    (tmp_path / "strange" / "config.json").write_text('{"model": "other"}')
    (tmp_path / "run" / "config.json").write_text('{"encoder": {"num_heads": 2}}')
    with pytest.raises((FileNotFoundError, ValueError), match=message):
        load_weights(classifier(), tmp_path / path)


def test_without_the_package_or_the_network_it_says_what_to_do(monkeypatch):
    def download(*_, **__):
        raise ConnectionError("Cannot reach it: offline mode is enabled.\nMore.")

    hub = types.SimpleNamespace(HfApi=lambda: types.SimpleNamespace(snapshot_download=download))
    monkeypatch.setitem(sys.modules, "huggingface_hub", hub)
    here = r"^found no folder or checkpoint 'google/tapas-tiny' here; expected .*"
    message = r"model 'google/tapas-tiny' on the .* main, .*ConnectionError: .*enabled.; without"
    with pytest.raises(OSError, match=here + message):
        load_weights(classifier(), "google/tapas-tiny")
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    message = r"huggingface_hub.*install 'mate_tf\[hub\]'"
    with pytest.raises(ModuleNotFoundError, match=here + message):
        load_weights(classifier(), "google/tapas-tiny")


@pytest.mark.parametrize("kind", WRITERS)
def test_a_pretrained_model_has_every_variable_and_its_own_attention(tmp_path, kind):
    values = table_qa_values()
    folder = tmp_path / "weights"
    WRITERS[kind](folder, values, **(DESCRIBED if kind == "hugging_face" else {}))
    (folder / "bert_config.json").write_text(json.dumps(bert_config(encoder_config())))
    task = TableQAConfig() if kind == "tf1" else None
    model = published(folder, task)
    assert model.encoder_config.attention.architecture == "tapas"
    assert_values(model, values)
    other = published(folder, task, attention=MATE, position="absolute")
    assert (other.encoder_config.attention, other.encoder_config.position) == (MATE, "absolute")


def test_a_pretrained_model_needs_a_head_and_all_of_it(tmp_path, run):
    write_hugging_face(tmp_path / "a", classifier_values(), architectures=["TapasModel"])
    with pytest.raises(ValueError, match=r"expected a task_config, for none is described in .*a"):
        published(tmp_path / "a")
    with pytest.raises(ValueError, match=r"which has none for .*output_weights_agg"):
        published(tmp_path / "a", TableQAConfig())
    with pytest.raises(ValueError, match="expected a published checkpoint, got the run in"):
        published(run[0])
    with pytest.raises(ValueError, match="expected no revision for weights on this machine"):
        load_weights(classifier(), tmp_path / "a", revision="main")


COLUMNS, TOKENS = CELLS[:2], CELLS[2:]
SPAN = ["loss/span_output_bias", "loss/span_output_weights"]
BOUNDARY = [f"loss/{end}_output_{part}" for end in ("end", "start") for part in ("bias", "weights")]
OF_CLASSES = "ClassificationConfig or num_classes of SpanReadingConfig"
# A task config, the heads that it takes of a checkpoint, those that it would lose, and what uses
# them.
LOST = [
    (TableQAConfig(**NO_AGGREGATION), CELLS, AGGREGATION, "operators of Table"),
    (TableQAConfig(select_one_column=False), AGGREGATION + TOKENS, COLUMNS, "select_one_column of"),
    (TableQAConfig(), AGGREGATION + CELLS, CLASSES, OF_CLASSES),
    (SpanReadingConfig(), SPAN, CLASSES, OF_CLASSES),
    (SpanReadingConfig(), SPAN, BOUNDARY, "kind='boundary' of SpanReadingConfig"),
    (SpanReadingConfig("boundary"), BOUNDARY, SPAN, "kind='span' of SpanReadingConfig"),
]


def write_with_heads(folder, heads) -> None:
    """A TF1 folder with an encoder and the heads of these names."""
    values = table_qa_values() | classifier_values()
    sizes = {"loss/span_output_weights": (16,)} | dict.fromkeys(BOUNDARY[1::2], (8,))
    for name in SPAN + BOUNDARY:
        values[name] = np.zeros(sizes.get(name, ()), np.float32)
    stored = {
        name: value for name, value in values.items() if name.startswith("bert/") or name in heads
    }
    write_tf1_folder(folder, stored)
    (folder / "bert_config.json").write_text(json.dumps(bert_config(encoder_config())))


@pytest.mark.parametrize(("task", "used", "lost", "use"), LOST)
def test_a_pretrained_model_loses_no_head(tmp_path, caplog, task, used, lost, use):
    write_with_heads(tmp_path / "more", used + lost)
    message = f"uses {', '.join(lost)} of .*model.ckpt, got one without, {type(task).__name__}.*; "
    with pytest.raises(ValueError, match=f"{message}take {use}"):
        published(tmp_path / "more", task)
    write_with_heads(tmp_path / "same", used)
    with caplog.at_level(logging.INFO, logger="absl"):
        published(tmp_path / "same", task)
    said = caplog.messages[-1]
    assert said.startswith("loaded ")
    assert all(name in said for name in used)


def test_heads_that_a_published_model_may_have_and_not_use(tmp_path):
    """A classifier's for tokens; transformers keep one for columns that nothing chooses."""
    write_with_heads(tmp_path / "classes", CLASSES + CELLS)
    published(tmp_path / "classes", ClassificationConfig())
    values = table_qa_values()
    folder = tmp_path / "weights"
    write_hugging_face(folder, values, **DESCRIBED, select_one_column=False)
    assert published(folder).task_config.select_one_column is False
    write_hugging_face(folder, values, **DESCRIBED)
    with pytest.raises(ValueError, match="uses column_output_bias, column_output_weights of"):
        published(folder, TableQAConfig(select_one_column=False))


def test_the_first_of_several_checkpoints_is_not_guessed(tmp_path):
    write_tf1_folder(tmp_path / "weights", classifier_values())
    write_tf1(tmp_path / "weights" / "other.ckpt", classifier_values())
    message = r"got 2: model\.ckpt, other\.ckpt; name one by its prefix, .*weights/model\.ckpt$"
    with pytest.raises(ValueError, match=message):
        load_weights(classifier(), tmp_path / "weights")
    assert load_weights(classifier(), tmp_path / "weights" / "other.ckpt").new == ()
    # A bert_config.json beside it is compared.
    config = bert_config(encoder_config(num_heads=4))
    (tmp_path / "weights" / "bert_config.json").write_text(json.dumps(config))
    message = r"expected 2 attention heads .*, got 4 in .*bert_config\.json"
    with pytest.raises(ValueError, match=message):
        load_weights(classifier(), tmp_path / "weights" / "other.ckpt")


# --- What tensors become, by name ---

POOLER = "bert/pooler/dense/"
TYPES = "bert/embeddings/token_type_embeddings"


def built_encoder(**overrides) -> TableEncoder:
    encoder = TableEncoder(encoder_config(**overrides))
    encoder.build()
    return encoder


def write_bert(folder, prefix="") -> dict[str, np.ndarray]:
    """A folder of a BERT model, which has one table of types; returns its values."""
    values = values_of(built_encoder())
    values = {name: it + np.float32(n / 100) for n, (name, it) in enumerate(values.items())}
    bert = {name: value for name, value in values.items() if not name.startswith(TYPES)}
    bert[TYPES] = values[f"{TYPES}_0"][:2]
    write_hugging_face(folder, bert | {"bert/embeddings/position_ids": np.arange(16)})
    (folder / "config.json").write_text(json.dumps(BERT_CONFIG))
    tensors = load_file(folder / FILE).items()
    save_file({name.replace("tapas.", prefix): it for name, it in tensors}, folder / FILE)
    return bert


@pytest.mark.parametrize("prefix", ["", "bert."])
def test_hugging_face_bert_fills_all_but_the_table_features(tmp_path, prefix):
    bert = write_bert(tmp_path, prefix)
    encoder = TableEncoder(hugging_face_config(tmp_path))
    encoder.build()
    assert encoder.config.activation == "gelu"
    report = load_hugging_face(encoder, tmp_path)
    assert report.ignored == ()
    assert report.new == tuple(f"{TYPES}_{i}" for i in range(1, 7))
    found = values_of(encoder)
    segments = {f"{TYPES}_0": np.vstack([bert.pop(TYPES), found[f"{TYPES}_0"][2:]])}
    assert_values(encoder, bert | segments | {name: found[name] for name in report.new})


def test_the_first_position_goes_to_cls_where_positions_restart(tmp_path):
    write_bert(tmp_path)
    cls, length = 3, 6
    plain, restarting = built_encoder(position="absolute"), built_encoder(position="per_cell")
    assert not load_hugging_face(plain, tmp_path, cls_id=cls).moved_first_position
    assert not load_hugging_face(restarting, tmp_path).moved_first_position
    report = load_hugging_face(restarting, tmp_path, cls_id=cls)
    assert report.moved_first_position
    assert "of the first position, where [CLS] stands, went to [CLS]" in str(report)
    positions = restarting.embedding.position_embeddings.numpy()
    np.testing.assert_array_equal(positions[0], positions[1])
    # A question alone is one cell, in which both count alike: nothing has changed.
    ones, zeros = tf.ones([1, length], tf.int32), tf.zeros([1, length], tf.int32)
    features = TokenFeatures(*[zeros] * 9)._replace(
        input_ids=tf.constant([[cls, 5, 6, 7, 8, 4]]), input_mask=ones
    )
    for name in range(1, 7):
        table = f"{TYPES}_{name}"
        variables_by_name(restarting)[table].assign(variables_by_name(plain)[table])
    np.testing.assert_allclose(
        restarting(features).sequence_output, plain(features).sequence_output, atol=1e-5
    )


def assign(model, values, **options):
    readers = {name: (lambda value=value: value) for name, value in values.items()}
    return assign_variables(model, readers, "some.ckpt", **options)


def test_what_an_architecture_adds_starts_from_a_checkpoint_without():
    values = values_of(built_encoder())
    attention = AttentionConfig("table_etc", num_global_tokens=4, max_relative_distance=2)
    report = assign(built_encoder(attention=attention), values)
    assert sorted(report.new) == [
        "bert/embeddings/global_embeddings",
        "bert/encoder/layer_0/attention/self/relative_label_embeddings",
    ]
    assert set(report.loaded) == set(values)


def test_a_longer_position_table_is_cut_extra_variables_are_listed_and_missing_ones_named():
    encoder = built_encoder()
    longer = np.arange(20 * 8, dtype=np.float32).reshape(20, 8)
    more = {"bert/embeddings/position_embeddings": longer, "cls/extra": np.zeros(1)}
    report = assign(encoder, values_of(encoder) | more)
    np.testing.assert_array_equal(encoder.embedding.position_embeddings, longer[:16])
    assert report.ignored == ("cls/extra",)
    assert "cls/extra" in str(report)
    few = values_of(encoder)
    del few[POOLER + "bias"]
    with pytest.raises(ValueError, match=f"variable '{POOLER}bias' in some.ckpt"):
        assign(encoder, few)
    with pytest.raises(ValueError, match=r"expected a built model"):
        variables_by_name(TableEncoder(encoder_config()))


def test_absent_and_wrong_files_are_named(tmp_path):
    encoder = built_encoder()
    with pytest.raises(FileNotFoundError, match=r"TF1 checkpoint at .*nowhere"):
        load_tf1_checkpoint(encoder, tmp_path / "nowhere")
    with pytest.raises(FileNotFoundError, match=r"config\.json in"):
        hugging_face_config(tmp_path)


def test_without_a_pooler_only_what_reads_it_is_incomplete():
    model = classifier()
    values = {
        name: value for name, value in values_of(model).items() if not name.startswith(POOLER)
    }
    assert assign(model, values).new == (POOLER + "kernel", POOLER + "bias")
    with pytest.raises(ValueError, match=f"some.ckpt, which has none for {POOLER}kernel, "):
        assign(model, values, require_all=True)
    assign(model.encoder, values, require_all=True)
