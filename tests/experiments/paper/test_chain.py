"""The papers' chain: its stages from releases to weights, its resume, its hours."""

import pathlib

import pytest

from mate_tf.presets import ARCHITECTURE_PRESETS, with_architecture
from mate_tf.training.starting_points import make_config
from tests.datasets.releases import RELEASES, write_release
from tests.small import PIECES, run_binary, small_flags, succeeded, write_vocabulary

SMALL = small_flags("eval_interval=2", "batch_size=4", "max_seq_length=64", "dtype=float32")
WEIGHTS = "weights/model.safetensors"


def write_corpus(folder: pathlib.Path) -> None:
    """Tables with true texts, as the papers' corpus has them, one interaction a line."""
    folder.mkdir()
    lines = []
    for index in range(40):
        rows = "".join(
            f'rows {{ cells {{ text: "{city}" }} cells {{ text: "{number + index}" }} }} '
            for city, number in zip(("abc", "bcd", "cde"), (10, 23, 35), strict=True)
        )
        columns = 'columns { text: "a" } columns { text: "b" } '
        table = f'table {{ table_id: "t{index}" {columns}{rows}}}'
        lines.append(f'id: "t{index}" {table} questions {{ id: "q" original_text: "abc is 10" }}\n')
    (folder / "train.txtpb").write_text("".join(lines))


@pytest.fixture(scope="module")
def releases(tmp_path_factory):
    folder = tmp_path_factory.mktemp("releases")
    write_corpus(folder / "interactions")
    write_release(folder / "SQA", RELEASES["SQA"])
    write_release(folder / "WikiTableQuestions", RELEASES["WTQ"])
    for name in ("SQA/random-split-1", "WikiTableQuestions/data/random-split-1"):
        (folder / f"{name}-dev.tsv").write_bytes((folder / f"{name}-train.tsv").read_bytes())
    letters = "abcdefghijklmnopqrstuvwxyz0123456789.,?-"
    write_vocabulary(folder / "vocab.txt", [*PIECES[:6], *letters, *(f"##{c}" for c in letters)])
    return folder


@pytest.mark.medium
def test_the_chain_goes_from_releases_to_weights_and_goes_on_where_it_stopped(releases, tmp_path):
    def run(*flags: str):
        folders = f"--input_dir={releases}", f"--output_dir={tmp_path}", "--size=base"
        vocabulary = f"--vocab_file={releases / 'vocab.txt'}"
        return succeeded("experiments.paper.chain", *folders, vocabulary, *SMALL, *flags)

    run("--stages=mlm,statements")
    first = (tmp_path / "statements" / WEIGHTS).stat().st_mtime_ns
    done = run()
    assert "mlm: its weights are there\nstatements: its weights are there\n" in done.stdout
    assert (tmp_path / "statements" / WEIGHTS).stat().st_mtime_ns == first
    for stage, before in (("sqa", "statements"), ("wtq", "sqa")):
        assert (tmp_path / stage / WEIGHTS).is_file()
        assert f"variables from {tmp_path / before / WEIGHTS}" in done.stderr


@pytest.mark.medium
def test_the_chain_may_write_to_another_file_system(releases, tmp_path):
    flags = f"--input_dir={releases}", f"--vocab_file={releases / 'vocab.txt'}", "--size=base"
    elsewhere = "--stages=statements,wtq", "--output_dir=ram://chain"
    done = succeeded("experiments.paper.chain", *flags, *SMALL, *elsewhere, cwd=tmp_path)
    assert f"variables from ram://chain/statements/{WEIGHTS}" in done.stderr
    assert not list(tmp_path.glob("ram:*"))


def test_every_stage_has_a_preset_of_both_sizes_for_every_attention():
    for size, width in (("base", 768), ("large", 1024)):
        for stage in ("mlm_mate", "statements", "sqa", "wikisql", "wtq", "tabfact"):
            for model in ARCHITECTURE_PRESETS:
                config = make_config(f"{stage}_{size}", model, [])
                assert config.encoder.hidden_size == width
                expected = with_architecture(config.encoder, model).attention
                assert type(config.encoder.attention) is type(expected)


def test_the_hours_are_those_of_the_paper_at_a_third_of_the_peak_of_its_32_cores(tmp_path):
    flags = ["--stages=mlm,sqa", "--teraflops=1968", f"--input_dir={tmp_path / 'none'}"]
    folders = [f"--output_dir={tmp_path / 'out'}", f"--vocab_file={tmp_path / 'vocab.txt'}"]
    done = run_binary("experiments.paper.chain", *flags, *folders)
    first, second = done.stdout.splitlines()
    assert first == "mlm: 1,000,000 steps of 121.2 TFLOP, 17.1 hours or more"  # of 48
    assert second.startswith("sqa: 200,000 steps of ")
    assert done.returncode == 1 and "expected a split of INTERACTIONS" in done.stderr
    refused = run_binary("experiments.paper.chain", *flags, *folders, "--stages=mlm,wtf")
    assert (
        "expected stages of mlm, statements, sqa, wikisql, wtq, tabfact, got wtf" in refused.stderr
    )
