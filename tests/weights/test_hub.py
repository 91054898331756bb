"""Models of the Hub by name, in a cache as huggingface_hub makes it, without a network."""

import dataclasses
import hashlib
import importlib

import pytest

import mate_tf
from mate_tf.models.table_qa import TableQAConfig
from mate_tf.serving.loading import published_model
from mate_tf.tables.table import Table
from mate_tf.weights.hub import download
from mate_tf.weights.initial import load_weights, published_configs
from tests.small import PIECES, write_vocabulary
from tests.weights.small_models import BERT_CONFIG, table_qa, table_qa_values, write_hugging_face

pytest.importorskip("huggingface_hub", reason="not installed: huggingface_hub")
NAME, COMMIT = "google/tapas-tiny", "b" * 40


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """A folder of the cache with a small model, of which there is nothing else: offline."""
    made = tmp_path / "made"
    of_tapas = {"architectures": ["TapasForQuestionAnswering"], "num_aggregation_labels": 4}
    write_hugging_face(made, table_qa_values(), **of_tapas)
    write_vocabulary(made / "vocab.txt", PIECES[: BERT_CONFIG["vocab_size"]])
    folder = tmp_path / "cache" / "models--google--tapas-tiny"
    snapshot = folder / "snapshots" / COMMIT
    for part in (folder / "blobs", folder / "refs", snapshot):
        part.mkdir(parents=True)
    (folder / "refs" / "main").write_text(COMMIT)
    for file in made.iterdir():
        content = file.read_bytes()
        name = hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()
        if file.suffix == ".safetensors":
            name = hashlib.sha256(content).hexdigest()
        (folder / "blobs" / name).write_bytes(content)
        (snapshot / file.name).symlink_to(folder / "blobs" / name)
    constants = importlib.import_module("huggingface_hub.constants")
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    return snapshot


@pytest.mark.parametrize("revision", [None, "main", COMMIT])
def test_a_name_is_found_offline_in_the_cache(cache, revision):
    assert download(NAME, revision) == cache


def test_what_the_cache_lacks_is_named(cache):
    with pytest.raises(OSError, match=f"{NAME}.*revision {'c' * 40}, or in its local cache"):
        download(NAME, "c" * 40)
    with pytest.raises(OSError, match="a model 'google/other' on the Hugging Face Hub"):
        load_weights(table_qa(), "google/other")


@pytest.mark.parametrize("name", ["model.safetensors", "config.json"])
def test_a_damaged_file_is_not_read(cache, name):
    file = (cache / name).resolve()
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)
    with pytest.raises(OSError, match=rf"{name} with the checksum {file.name}, got .*remove"):
        download(NAME)


@pytest.mark.medium
def test_with_views_a_published_model_reads_what_all_pairs_cannot(cache):
    table = Table.from_rows([["a", "b"], *[["c d", "e"]] * 700])
    with pytest.raises(ValueError, match="expected at most 2048 tokens, got 2105"):
        mate_tf.from_pretrained(NAME).answer(table, "b")
    answer = mate_tf.from_pretrained(NAME, revision=COMMIT, architecture="mate").answer(table, "b")
    assert answer.cells
    assert answer.rows_dropped == 0


def test_a_published_model_tells_all_rows_and_columns_apart(cache):
    described = published_configs(NAME)[2]
    assert (described.max_num_rows, described.max_num_columns) == (64, 32)
    task_config = published_model(NAME).task_config
    default = TableQAConfig()
    limits = {"max_num_rows": default.max_num_rows, "max_num_columns": default.max_num_columns}
    assert task_config == dataclasses.replace(described, **limits)
    assert published_model(NAME, described).task_config == described
