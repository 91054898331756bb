"""The binary from the outside: a run, its refusals; and the presets."""

import json
import re
import shutil

import pytest
import tensorflow as tf

from mate_tf.datasets.json_lines import write_json_lines
from mate_tf.features.config import FeatureConfig
from mate_tf.pointr.answering import PointRConfig
from mate_tf.records.batches import read_records
from mate_tf.records.conversion_file import conversion_of, write_conversion
from mate_tf.tables.table import Question, Table
from mate_tf.training.config import TrainingConfig
from mate_tf.training.run import load_config, train_run
from mate_tf.training.starting_points import (
    find_config,
    make_config,
    preset_functions,
    presets,
)
from tests.small import (
    PIECES,
    ROOT,
    cases,
    run_binary,
    small_flags,
    stored_cases,
    succeeded,
    write_examples,
    write_vocabulary,
)

SMALL = ["--config=demo", *small_flags("max_seq_length=24")]


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory):
    directory = tmp_path_factory.mktemp("data")
    table = Table.from_rows([["a", "b"], ["c", "d"], ["e", "f"]])
    pair = table, Question("a", "q", ("c",), ((0, 0),), aggregation="NONE")
    pairs = dict.fromkeys(("train", "dev"), [pair] * 2)
    for split in pairs:
        write_json_lines(directory / f"{split}.jsonl", [pair])
    return write_examples(directory, FeatureConfig(max_seq_length=24), pairs)


@pytest.mark.medium
def test_a_run_leaves_what_evaluation_and_export_need(data_dir, tmp_path):
    flags = (*SMALL, f"--data_dir={data_dir}", f"--model_dir={tmp_path / 'run'}")
    done = succeeded("experiments.finetune", *flags)
    said, header, _, row = done.stdout.splitlines()
    assert said.startswith("2 steps of 2 examples: about ")
    assert header.startswith("| step | loss | ") and row.startswith("| 2 | ")
    assert "step 2 evaluation: loss " in done.stderr
    assert "(denotation_accuracy: best " in done.stderr

    config = load_config(tmp_path / "run")
    assert (config.num_steps, config.encoder.hidden_size) == (2, 16)
    assert (tmp_path / "run" / "vocab.txt").read_text().splitlines() == PIECES
    assert (tmp_path / "run" / "ckpt-2.index").is_file()
    (evaluation,) = (tmp_path / "run" / "evaluations.jsonl").read_text().splitlines()
    assert json.loads(evaluation).keys() >= {"step", "loss", "denotation_accuracy"}

    # A chain: the next run starts from this one, here with heads of its own, on two devices and on
    # records of which one is damaged.
    damaged = shutil.copytree(data_dir, tmp_path / "damaged")
    train = damaged / "train.tfrecord"
    records = [record.numpy() for record in tf.data.TFRecordDataset(train, "GZIP")]
    with tf.io.TFRecordWriter(str(train)) as writer:
        for record in records * 2:
            writer.write(record)
    content = bytearray(train.read_bytes())
    content[-20] ^= 1
    train.write_bytes(content)
    on_two = ("--distribution_strategy=mirrored", "--num_virtual_cpus=2", "--skip_corrupt")
    folders = (f"--data_dir={damaged}", f"--model_dir={tmp_path / 'next'}")
    start = f"--init_checkpoint={tmp_path / 'run'}"
    done = succeeded("experiments.finetune", *SMALL, *folders, "--reset_heads", *on_two, start)
    assert "1 records skipped in" in done.stderr
    assert re.search(
        r"loaded \d+ variables from .*run/best/model\.safetensors; in it, but left .*weights",
        done.stderr,
    )

    # The same again, from what the folder says.
    again = tmp_path / "again"
    succeeded("experiments.finetune", f"--config={tmp_path / 'next'}", f"--model_dir={again}")
    for file in ("config.json", "inputs.json"):
        assert (again / file).read_bytes() == (tmp_path / "next" / file).read_bytes()
    runs = again, tmp_path / "next"
    losses = [json.loads((run / "evaluations.jsonl").read_text())["loss"] for run in runs]
    assert losses[0] == pytest.approx(losses[1], rel=1e-6)  # in float32
    assert (again / "evaluations" / "2.md").is_file()
    inputs = json.loads((again / "inputs.json").read_text())
    assert inputs["init_checkpoint"] == str(tmp_path / "run")
    assert inputs["reset_heads"] is True

    refused = run_binary("experiments.finetune", *flags, "--config.seed=7")
    assert refused.returncode == 1
    assert "got another: seed=7 (there: 1); choose another folder" in refused.stderr
    assert "Traceback" not in refused.stderr

    # The records say nothing of how they were made; these do, and were made in another way.
    other = tmp_path / "other"
    shutil.copytree(data_dir, other)
    config = FeatureConfig(max_seq_length=24)
    write_conversion(other, conversion_of("JSONL", config, other / "vocab.txt", None))
    refused = run_binary("experiments.finetune", *flags, f"--data_dir={other}")
    assert refused.returncode == 1
    assert "features.trim_cells=False (there: True)" in refused.stderr


def test_an_architecture_replaces_the_configs_and_a_linformer_takes_the_length_of_the_records():
    overrides = ["--config.max_seq_length=256", "--config.length_buckets=64,128"]
    config = make_config("demo", "tableformer_gp", overrides)
    # The demo's 4,096 tokens are beyond absolute positions; the overrides' are not.
    assert (config.max_seq_length, config.encoder.position) == (256, "absolute")
    assert config.encoder.attention.architecture == "tableformer"
    assert config.encoder.hidden_size == find_config("demo").encoder.hidden_size
    override = "--config.encoder.attention.bucket_size=8"
    assert make_config("demo", "mate_exact", [override]).encoder.attention.bucket_size == 8
    for lengths in ([], ["256"], ["256", "512"]):
        overrides = [f"--config.max_seq_length={length}" for length in lengths]
        config = make_config("demo", "linformer_256", overrides)
        attention = config.encoder.attention
        length = int(lengths[-1]) if lengths else 4096
        assert (attention.sequence_length, attention.projected_length) == (length, 256)
        assert (config.max_seq_length, config.length_buckets) == (length, ())


@pytest.mark.medium
def test_a_linformer_with_a_histogram_row_from_tables_to_an_answer(tmp_path):
    """All the binaries: what create_data was told reaches the answer."""

    table = {"id": "t", "header": ["a", "b"], "rows": [["c", "d"], ["e", "d"]]}
    question = {"id": "q", "question": "a", "answers": ["c"], "table": table}
    (tmp_path / "in").mkdir()
    for split in ("train", "dev"):
        (tmp_path / "in" / f"{split}.jsonl").write_text(f"{json.dumps(question)}\n")
    write_vocabulary(tmp_path / "vocab.txt", [*PIECES, "1", "2", ","])
    out, model_dir, model = (tmp_path / name for name in ("out", "run", "model"))
    succeeded(
        "experiments.create_data",
        *("--task=JSONL", f"--input_dir={tmp_path / 'in'}", f"--output_dir={out}"),
        *(f"--vocab_file={tmp_path / 'vocab.txt'}", "--max_seq_length=24"),
        *("--histogram_row", "--trim_cells", "--drop_rows_to_fit", "--original_conversion"),
    )
    (record,) = read_records(out / "train.tfrecord").as_numpy_iterator()
    # "c 1, e 1" and "d 2" in the row after the second.
    assert record["row_ids"].tolist().count(3) == 7
    folders = f"--data_dir={out}", f"--model_dir={model_dir}"
    succeeded("experiments.finetune", *SMALL, *folders, "--architecture=linformer_128")
    conversion = (model_dir / "conversion.json").read_bytes()
    assert conversion == (out / "conversion.json").read_bytes()
    succeeded("mate_tf", "export", f"--model-dir={model_dir}", f"--output-dir={model}")
    features = json.loads((model / "assets.extra" / "conversion.json").read_text())["features"]
    # Of rows that are dropped whoever asks decides.
    assert FeatureConfig(**features) == FeatureConfig(
        max_seq_length=24, histogram_row=True, trim_cells=True, original_conversion=True
    )
    output = f"--output={tmp_path / 'predictions.jsonl'}"
    asked = f"--model={model}", f"--data={out / 'dev.jsonl'}"
    said = succeeded("mate_tf", "predict", *asked, output).stdout
    assert "not accepted: 0" in said and "questions: 1" in said


@cases(
    "name, architecture, overrides, message",
    ("small", None, [], "expected --config to be one of table_questions, classification, span_rea"),
    ("demo", None, ["--config.speed=1"], "unknown key config.speed; the known keys are "),
    ("demo", "bert", [], "expected an architecture among tapas, sat, mate, "),
    ("demo", None, ["more"], "expected --config.key=value, got more"),
)
def test_what_no_config_can_be_made_of_is_refused(name, architecture, overrides, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
        make_config(name, architecture, overrides)


@cases(
    "has_data, init_checkpoint, message",
    (False, None, "expected vocab.txt in "),
    (True, "nowhere", "expected weights at nowhere, found none: no "),
)
def test_what_cannot_begin_leaves_no_folder(data_dir, tmp_path, has_data, init_checkpoint, message):
    config = make_config("demo", None, SMALL[1:])
    run_dir = tmp_path / "run"
    with pytest.raises(FileNotFoundError, match=f"^{message}"):
        train_run(config, data_dir if has_data else tmp_path, run_dir, init_checkpoint)
    assert not run_dir.exists()


@stored_cases("program, flags, message")
def test_what_a_program_does_not_do_is_refused_in_a_sentence(tmp_path, program, flags, message):
    folders = ("input_dir", "output_dir") if program == "pointr" else ("data_dir", "model_dir")
    given = [f"--{name}={tmp_path / name}" for name in folders]
    given += [f"--vocab_file={tmp_path}"] if program == "pointr" else []
    done = run_binary(f"experiments.{program}", *flags.split(), *given)
    assert done.returncode == 1
    assert message in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr and not list(tmp_path.iterdir())


@pytest.mark.parametrize(("name", "preset"), preset_functions().items())
def test_a_preset_says_how_it_is_run_and_what_to_expect(name, preset):
    assert isinstance(presets()[name], PointRConfig if "pointr" in name else TrainingConfig)
    stage = name.removeprefix("default_")
    has_stage = f"\n{stage}() {{\n" in (ROOT / "scripts" / "train_default_model.sh").read_text()
    command = f"--config={name} "
    if has_stage and stage != name:
        command = f"scripts/train_default_model.sh WikiTableQuestions minilm {stage} "
    notes = " ".join(preset.__doc__.split())
    for part in (command, "Hardware: ", "Time: ", "Score: "):
        assert part in notes
