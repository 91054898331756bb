"""Models of the Hub by name: of its cache, and of a Hub in this process; without a network."""

import dataclasses
import importlib
import importlib.util
import json

import pytest

import mate_tf
from mate_tf.answers.calibration import Calibration
from mate_tf.answers.onnx_runtime import GRAPH_FILE
from mate_tf.serving.stored import find_model, published_model
from mate_tf.tables.table import Table
from mate_tf.task_configs import TableQAConfig
from mate_tf.weights.folder import DEFAULT_MODEL, download, write_calibration
from mate_tf.weights.initial import load_weights, published_configs
from mate_tf.weights.run import FILE, numpy_weights
from tests.small import PIECES, assert_same_features, export_small, write_run, write_vocabulary
from tests.weights.fake_hub import COMMIT, running_hub
from tests.weights.small_models import BERT_CONFIG, table_qa, table_qa_values, write_hugging_face

pytest.importorskip("huggingface_hub", reason="not installed: huggingface_hub")
NAME = "google/tapas-tiny"


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """A Hub of this process, and an empty cache of its models."""
    constants = importlib.import_module("huggingface_hub.constants")
    monkeypatch.setenv("HF_TOKEN", "hf_mine")
    with running_hub() as server:
        place = f"http://127.0.0.1:{server.server_port}"
        changed = {"ENDPOINT": place, "HF_HUB_DISABLE_XET": True}
        template = "{repo_id}/resolve/{revision}/{filename}"
        changed["HUGGINGFACE_CO_URL_TEMPLATE"] = f"{place}/{template}"
        changed |= {"HF_HUB_CACHE": str(tmp_path / "cache"), "HF_HUB_OFFLINE": False}
        for name, value in changed.items():
            monkeypatch.setattr(constants, name, value)
        yield server


@pytest.fixture
def cache(hub, tmp_path, monkeypatch):
    """A folder of the cache with a small model, of which there is nothing else: offline."""
    made = tmp_path / "made"
    of_tapas = {"architectures": ["TapasForQuestionAnswering"], "num_aggregation_labels": 4}
    write_hugging_face(made, table_qa_values(), **of_tapas)
    write_vocabulary(made / "vocab.txt", PIECES[: BERT_CONFIG["vocab_size"]])
    (made / "pytorch_model.bin").write_bytes(b"a pickle")
    hub.files |= {file.name: file.read_bytes() for file in made.iterdir()}
    folder = download(NAME)
    constants = importlib.import_module("huggingface_hub.constants")
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    return folder


@pytest.mark.parametrize("revision", [None, "main", COMMIT])
def test_a_name_is_found_offline_in_the_cache_without_pickles(cache, revision):
    assert download(NAME, revision) == cache
    names = {file.name for file in cache.iterdir()}
    assert names == {"config.json", "model.safetensors", "vocab.txt"}
    load_weights(table_qa(), NAME, revision=revision)


def test_what_the_cache_lacks_is_named(cache):
    with pytest.raises(OSError, match=f"{NAME}.*revision {'b' * 40}, or in its local cache"):
        download(NAME, "b" * 40)
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
    answer = mate_tf.from_pretrained(NAME).answer(table, "b")
    assert "of 700 rows, chosen by the question" in answer.coverage
    answer = mate_tf.from_pretrained(NAME, revision=COMMIT, architecture="mate").answer(table, "b")
    assert answer.cells
    assert not answer.coverage


def test_a_published_model_tells_all_rows_and_columns_apart(cache):
    described = published_configs(NAME)[2]
    assert (described.max_num_rows, described.max_num_columns) == (64, 32)
    task_config = published_model(NAME).task_config
    default = TableQAConfig()
    limits = {"max_num_rows": default.max_num_rows, "max_num_columns": default.max_num_columns}
    assert task_config == dataclasses.replace(described, **limits)
    assert published_model(NAME, described).task_config == described


@pytest.fixture
def run(tmp_path):
    folder = write_run(tmp_path / "run")
    write_calibration(folder, Calibration(2.0, 0.5, sure=0.5, probably=0.25))
    return folder


TABLE = Table.from_rows([["a", "b"], ["c d", "e"], ["f", "g h"]])
QUESTIONS = ["a b", "c e f"]


@pytest.mark.parametrize("kind", ["run", "exported", "published"])
def test_a_stored_model_stays_the_same(kind, tmp_path, run, request):
    path = {
        "run": lambda: run,
        "exported": lambda: export_small(tmp_path / "x" / "exported", 64),
        "published": lambda: request.getfixturevalue("cache"),
    }[kind]()
    model = mate_tf.from_pretrained(path, architecture="mate" if kind == "published" else None)
    again = mate_tf.from_pretrained(model.save_pretrained(tmp_path / "saved"))
    stored, before = find_model(tmp_path / "saved"), find_model(path, None, "mate")
    assert stored.calibration == before.calibration
    assert (kind == "run") == (stored.calibration is not None)
    configs = (one.feature_config for one in (stored, before))
    one, other = (dataclasses.replace(config, max_seq_length=None) for config in configs)
    assert one == other
    for one, other in zip(
        again.answer(TABLE, QUESTIONS), model.answer(TABLE, QUESTIONS), strict=True
    ):
        assert one.coordinates == other.coordinates
        assert one.score == pytest.approx(other.score, abs=1e-6)
    assert_same_features(*(numpy_weights(one.model()) for one in (stored, before)))


# huggingface_hub itself uploads in the former way of its client.
@pytest.mark.filterwarnings("ignore:Use 'content=:DeprecationWarning")
def test_a_model_is_pushed_and_loaded_by_its_name(hub, run):
    model = mate_tf.from_pretrained(run)
    about = {"license": "mit", "datasets": ["me/data"], "base_model": "me/base", "tags": ["ours"]}
    address = model.push_to_hub("me/small", private=True, **about)
    assert address.endswith(f"/me/small/commit/{'c' * 40}")
    assert (hub.made["organization"], hub.made["name"]) == ("me", "small")
    assert "private" in json.dumps(hub.made)
    described = ["README.md", "calibration.json", "config.json", "conversion.json"]
    assert sorted(hub.files) == [*described, GRAPH_FILE, FILE, "vocab.txt"]
    assert mate_tf.from_pretrained("me/small").answer(TABLE, QUESTIONS)  # by ONNX Runtime
    again = mate_tf.from_pretrained("me/small", runtime="tensorflow")
    assert again.answer(TABLE, QUESTIONS) == model.answer(TABLE, QUESTIONS)
    assert find_model("me/small").calibration == Calibration(2.0, 0.5, sure=0.5, probably=0.25)
    card = importlib.import_module("huggingface_hub").ModelCard(hub.files["README.md"].decode())
    assert card.data.to_dict() == about | {
        "language": "en",
        "library_name": "mate_tf",
        "pipeline_tag": "table-question-answering",
        "tags": ["tables", "mate", "tensorflow", "ours"],
    }
    assert 'from_pretrained("me/small")' in card.text
    assert "From 0.50 on an answer is said plainly" in card.text


def test_what_the_hub_refuses_is_an_error(hub, run, monkeypatch, tmp_path):
    model = mate_tf.from_pretrained(run)
    with pytest.raises(ValueError, match="name of a model on the Hub, owner/model, got 'small'"):
        model.push_to_hub("small")
    with pytest.raises(ValueError, match=r"base_model, .* of a model's card, got 'licence'"):
        model.push_to_hub("me/small", licence="mit")
    with pytest.raises(ValueError, match="expected a folder without checkpoints"):
        model.save_pretrained(run)
    monkeypatch.setenv("HF_TOKEN", "hf_other")
    with pytest.raises(OSError, match="401"):
        model.push_to_hub("me/small")
    assert hub.files == {}


def test_the_card_of_the_default_model_is_one_that_the_hub_reads():
    card = importlib.import_module("huggingface_hub").ModelCard.load(DEFAULT_MODEL / "README.md")
    assert card.data.license == "cc-by-sa-4.0"
    assert card.data.pipeline_tag == "table-question-answering"
    assert card.data.datasets and card.data.base_model and card.data.library_name == "mate_tf"
