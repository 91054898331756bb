"""The binary from the outside, on a small generated corpus; and PointR's presets."""

import dataclasses
import json

import pytest

from mate_tf.dataclass_json import from_dict
from mate_tf.datasets.tasks import read_split
from mate_tf.features.wordpiece import Wordpiece
from mate_tf.layers.attention.patterns import head_groups
from mate_tf.pointr.inputs import PointRConfig
from mate_tf.training.starting_points import PRESETS, find_config, make_config
from tests.small import run_binary, write_vocabulary
from tests.test_examples import passages_example

POINTR = [name for name in PRESETS if name.startswith("pointr_")]
SMALL = [
    f"--config.{stage}.{option}"
    for stage in ("point", "read")
    for option in (
        "encoder.hidden_size=16",
        "encoder.num_layers=1",
        "encoder.num_heads=2",
        "encoder.intermediate_size=16",
        "num_steps=2",
        "eval_interval=2",
        "checkpoint_interval=2",
        "dtype=float32",
    )
]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    folder = tmp_path_factory.mktemp("corpus")
    flags = ("--num_tables=20", "--questions_per_table=2", f"--output_dir={folder}")
    done = run_binary("experiments.create_linked_corpus", *flags)
    assert done.returncode == 0, done.stderr
    assert "train: 16 tables, 32 questions" in done.stdout
    return folder


@pytest.fixture(scope="module")
def vocab_file(corpus, tmp_path_factory):
    words = set()
    for split in ("train", "dev", "test"):
        for linked, question in read_split("HYBRIDQA", str(corpus), split):
            texts = [question.text, *linked.table.header, *sum(linked.table.rows, ())]
            texts += [passage.text for passage in linked.distinct_passages()]
            words.update(" ".join(texts).lower().split())
    pieces = ("[PAD]", "[EMPTY]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *sorted(words))
    file = write_vocabulary(tmp_path_factory.mktemp("vocab") / "vocab.txt", pieces)
    assert len(Wordpiece(file).vocabulary) == len(pieces)
    return file


@pytest.mark.medium
def test_all_stages_from_a_release_to_scores(corpus, vocab_file, tmp_path):
    size = len(vocab_file.read_text(encoding="utf-8").splitlines())
    sizes = [f"--config.{stage}.encoder.vocab_size={size}" for stage in ("point", "read")]
    flags = (
        "--config=pointr_minilm",
        f"--input_dir={corpus}",
        f"--output_dir={tmp_path}",
        f"--vocab_file={vocab_file}",
        "--eval_splits=dev,test",
    )
    done = run_binary("experiments.pointr", *flags, *SMALL, *sizes)
    assert done.returncode == 0, done.stderr
    for said in (
        "train: 32 of 32 questions kept",
        "16 in table",
        "16 in passage",
        "point: exported the weights of step 2 of 2",
        "read: exported the weights of step 2 of 2",
        "# test",
        "| exact match in passage |",
        "| hits at 5 |",
        "what is wrong",
    ):
        assert said in done.stdout, said
    answers = json.loads((tmp_path / "answers" / "test.json").read_text(encoding="utf-8"))
    asked = [question.question_id for _, question in read_split("HYBRIDQA", str(corpus), "test")]
    assert [answer["question_id"] for answer in answers] == asked

    names: dict = {}
    exec(passages_example().replace("out/pointr/model", str(tmp_path / "model")), names)
    assert names["answer"].cells

    again = run_binary("experiments.pointr", *flags, *SMALL, *sizes, "--stage=point")
    assert again.returncode == 0, again.stderr
    assert "point: exported the weights of step 2 of 2" in again.stdout
    assert "step 1/2" not in again.stderr  # it was done already


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--config=demo",), "got demo; `mate-tf train --config=demo` trains it"),
        (("--config=pointr_minilm", "--task=WTQ"), "--task=WTQ"),
        (("--config=pointr_minilm", "--eval_splits=train", "--train_split=x"), "as which 'x' is"),
    ],
)
def test_what_cannot_work_is_refused_in_a_sentence(tmp_path, flags, message):
    shared = [f"--{name}={tmp_path}" for name in ("input_dir", "output_dir", "vocab_file")]
    done = run_binary("experiments.pointr", *flags, *shared)
    assert done.returncode == 1
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_other_programs_say_which_trains_a_pointr(tmp_path):
    flags = ("--config=pointr_minilm", f"--data_dir={tmp_path}", f"--model_dir={tmp_path}")
    done = run_binary("experiments.finetune", *flags)
    assert done.returncode == 1
    assert "mate_tf.pointr.pipeline.Pipeline trains" in done.stderr


@pytest.mark.parametrize("name", POINTR)
def test_a_preset_goes_to_json_and_back(name):
    config = find_config(name)
    values = json.loads(json.dumps(dataclasses.asdict(config)))
    assert from_dict(PointRConfig, values) == config


def test_the_paper_s_preset_has_the_paper_s_values():
    config = find_config("pointr_mate_large")
    point, read = config.point, config.read
    assert (point.learning_rate, point.warmup_ratio, point.batch_size) == (1e-5, 0.05, 128)
    assert (point.num_steps, point.max_seq_length, point.max_gradient_value) == (80_000, 2048, 10)
    assert point.max_gradient_norm == 1.0  # before it, as in the release
    attention = point.encoder.attention
    assert (attention.global_size, attention.bucket_size) == (116, 42)
    assert point.task.cell_cross_entropy and not point.task.cell_cross_entropy_hard_em
    assert (read.learning_rate, read.warmup_ratio, read.batch_size) == (5e-5, 0.01, 512)
    assert (read.num_steps, read.max_seq_length) == (25_000, 512)
    assert config.inputs.num_sentences == 5


@pytest.mark.parametrize("name", ["tapas", "sat", "linformer_256", "table_etc"])
def test_an_architecture_changes_the_pointer_alone(name):
    mate, other = (make_config("pointr_mate_large", of, []) for of in (None, name))
    assert other.point.encoder.attention.architecture == name.removesuffix("_256")
    encoder = dataclasses.replace(other.point.encoder, attention=mate.point.encoder.attention)
    buckets = mate.point.length_buckets
    point = dataclasses.replace(other.point, encoder=encoder, length_buckets=buckets)
    assert dataclasses.replace(other, point=point) == mate
    if name == "linformer_256":
        longer = make_config("pointr_mate_large", name, ["--config.point.max_seq_length=4096"])
        assert longer.point.encoder.attention.sequence_length == 4096


@pytest.mark.parametrize(("ratio", "pattern"), [(0, "same_column"), (1, "same_row")])
def test_heads_of_one_kind_are_one_value(ratio, pattern):
    override = f"--config.point.encoder.attention.row_heads_ratio={ratio}"
    encoder = make_config("pointr_mate_large", None, [override]).point.encoder
    (group,) = head_groups(encoder.attention, encoder.num_heads)
    assert group.num_heads == encoder.num_heads
    assert pattern in repr(group)
