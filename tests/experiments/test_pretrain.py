"""The binaries of pre-training from the outside; tests/test_commands_of_docs.py has a run."""

import re

import pytest

from mate_tf.records.batches import read_records
from mate_tf.records.conversion_file import read_conversion
from tests.small import run_binary, write_vocabulary

pytestmark = pytest.mark.medium


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    """A folder of tables alone, and a vocabulary."""
    folder = tmp_path_factory.mktemp("tables")
    for number in range(30):
        (folder / f"{number}.csv").write_text("a,b\nc,d\ne,f\n", encoding="utf-8")
    return folder, write_vocabulary(folder / "vocab.txt")


def test_tables_alone_become_records(tables, tmp_path):
    folder, vocab_file = tables
    data_dir = tmp_path / "data"
    flags = (f"--input_dir={folder}", f"--output_dir={data_dir}", f"--vocab_file={vocab_file}")
    done = run_binary(
        "experiments.create_pretraining_data",
        "--task=TABLES",
        *flags,
        "--max_seq_lengths=24",
        "--dupe_factor=2",
    )
    assert done.returncode == 0, done.stderr
    assert re.search(r"train: \d\d of \d\d examples kept\n  kept with 24 tokens", done.stdout)
    conversion = read_conversion(data_dir)
    assert conversion.division == "train:train=95,dev=5"
    assert conversion.pretraining.masked_lm.max_predictions == 4  # 20 in 128 tokens
    parts = [
        {example["table_id"][0] for example in read_records(file).as_numpy_iterator()}
        for file in (data_dir / "train_24.tfrecord", data_dir / "dev_24.tfrecord")
    ]
    assert len(parts[0] | parts[1]) == 30 and not parts[0] & parts[1] and all(parts)


@pytest.mark.parametrize(
    ("program", "flags", "message"),
    [
        ("pretrain", ("--config=demo",), "got demo; `mate-tf train --config=demo` trains it"),
        ("finetune", ("--config=mlm_minilm",), "`mate-tf train --config=mlm_minilm` trains it"),
        (
            "pretrain",
            ("--config=mlm_minilm", "--config.speed=1"),
            "unknown key config.speed; the known keys are ",
        ),
    ],
)
def test_what_a_program_does_not_train_is_refused_in_a_sentence(tmp_path, program, flags, message):
    run_dir = tmp_path / "run"
    folders = (f"--data_dir={tmp_path}", f"--model_dir={run_dir}")
    done = run_binary(f"experiments.{program}", *flags, *folders)
    assert done.returncode == 1
    assert message in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr and not run_dir.exists()
