"""Sentences to tagged records to the comparison's table, from the outside."""

import json
import re
import shutil
from pathlib import Path

import pytest

from experiments.paper.comparison_results import Results, first_weights
from tests.small import cases, run_binary, small_flags, succeeded, write_vocabulary

pytestmark = pytest.mark.medium

VOCABULARY = ["[PAD]", "[EMPTY]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "good", "bad", "film"]
SENTENCES = "a good film\t1\na bad film\t0\ngood\t1\nbad film\t0\n"
SMALL = [
    "--config=sst2_tiny",
    *small_flags("max_seq_length=8", "encoder.hidden_size=8", "num_steps=1"),
]
VARIANT = "grammar_soft encoder.attention.grammar_bias=2.0"


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory):
    directory = tmp_path_factory.mktemp("sst2")
    for split in ("train", "dev"):
        (directory / f"{split}.tsv").write_text(SENTENCES, encoding="utf-8")
    vocab_file = write_vocabulary(directory / "pieces.txt", VOCABULARY)
    output = directory / "records"
    done = succeeded(
        "experiments.create_data",
        *("--task=SST2", f"--input_dir={directory}", f"--output_dir={output}"),
        *(f"--vocab_file={vocab_file}", "--max_seq_length=8", "--tagger=textblob"),
    )
    assert "train: 4 of 4 sentences kept" in done.stdout
    return output


@pytest.fixture(scope="module")
def compared(data_dir, tmp_path_factory):
    """The folder of a comparison of three rows, the flags that made it, and what it printed."""
    folder = tmp_path_factory.mktemp("compared")
    flags = (*SMALL, "--seeds=1", f"--data_dir={data_dir}", f"--output_dir={folder}")
    flags += ("--architectures=tapas,grammar_hard", f"--variant={VARIANT}")
    return folder, flags, succeeded("experiments.paper.compare_attention", *flags).stdout


def test_prints_the_table_and_trains_nothing_twice(compared, tmp_path):
    folder, flags, printed = compared
    rows = [line.split(" | ") for line in printed.splitlines()[2:]]
    assert [row[0] for row in rows] == ["| tapas", "| grammar_hard", f"| {VARIANT}"]
    results = json.loads((folder / "results.json").read_text())
    assert results["config"]["num_steps"] == 1
    variant = f"{VARIANT.replace(' ', '_')}_1"
    assert set(results["runs"]) == {"tapas_1", "grammar_hard_1", variant}
    saved = json.loads((folder / variant / "config.json").read_text())
    assert saved["encoder"]["attention"]["grammar_bias"] == 2.0
    metrics = results["runs"]["grammar_hard_1"]["metrics"]
    assert set(metrics) == {"loss", "accuracy", "precision", "f1"}

    shutil.copy(folder / "results.json", tmp_path)
    again = run_binary("experiments.paper.compare_attention", *flags, f"--output_dir={tmp_path}")
    assert again.stdout == printed
    assert "training" not in again.stderr

    other = run_binary("experiments.paper.compare_attention", *flags, "--config.learning_rate=1")
    assert other.returncode == 1
    assert "learning_rate=1.0 (there: " in other.stderr


EMPTY: dict = {"config": {}, "data": {}, "weights": {}}


@cases(
    "one, other, message",
    ({"config": {"num_steps": 2}}, {"config": {"num_steps": 1}}, "num_steps=1 (there: 2)"),
    ({"data": {"train.tfrecord": "0"}}, {"data": {"train-0": "0"}}, "got another: other files"),
)
def test_runs_of_one_comparison_are_not_mixed_with_others(tmp_path, one, other, message):
    Results(tmp_path, EMPTY | other)
    Results(tmp_path, EMPTY | one).add("tapas_1", {"metrics": {}, "seconds": None})
    assert Results(tmp_path, EMPTY | one).get("tapas_1")
    with pytest.raises(ValueError, match=re.escape(message)):
        Results(tmp_path, EMPTY | other)
    (tmp_path / "results.json").write_text('{"em": 1}')
    with pytest.raises(ValueError, match="expected what the runs in"):
        Results(tmp_path, EMPTY)


def test_each_architecture_starts_from_its_own_run_of_another_comparison(
    data_dir, compared, tmp_path
):
    before, after = compared[0], tmp_path / "after"
    names = "--architectures=tapas,grammar_hard"
    start = f"--init_checkpoint={before}/RUN"
    flags = *SMALL, "--seeds=1", f"--data_dir={data_dir}", f"--output_dir={after}", start
    flags += ("--config.learning_rate=0.0",)
    succeeded("experiments.paper.compare_attention", *flags, names)
    runs = {of: json.loads((of / "results.json").read_text())["runs"] for of in (before, after)}
    for run in ("tapas_1", "grammar_hard_1"):
        # Nothing was learned since: the dev split's loss is that of the end of the other.
        assert runs[after][run]["metrics"] == runs[before][run]["metrics"]
        inputs = json.loads((after / run / "inputs.json").read_text())
        assert inputs["init_checkpoint"] == str(before / run)
    shutil.copytree(before / "tapas_1", before / "sat_1")  # as of one that was interrupted
    unfinished = run_binary("experiments.paper.compare_attention", *flags, "--architectures=sat")
    assert f"expected a run of sat that has ended, at {before / 'sat_1'}" in unfinished.stderr
    # Of one of its runs for all is another start.
    one = *flags, names, f"--init_checkpoint={before / 'tapas_1'}"
    other = run_binary("experiments.paper.compare_attention", *one)
    assert other.returncode == 1
    assert f"init_checkpoint={before / 'tapas_1'} (there: {before}/RUN)" in other.stderr


def test_a_run_starts_from_that_of_its_own_seed_or_the_only_one(tmp_path):
    def first(seed):
        return Path(first_weights(f"{tmp_path}/RUN", "sat", seed)).name

    results = Results(tmp_path, EMPTY)
    for seed in (1, 2):
        (tmp_path / f"sat_{seed}").mkdir()
    results.add("sat_1", {"metrics": {}, "seconds": None})
    assert [first(1), first(2)] == ["sat_1", "sat_1"]
    results.add("sat_2", {"metrics": {}, "seconds": None})
    assert [first(1), first(2)] == ["sat_1", "sat_2"]
    with pytest.raises(
        FileNotFoundError, match=r"expected a run of sat that has ended, at .*sat_3"
    ):
        first(3)
