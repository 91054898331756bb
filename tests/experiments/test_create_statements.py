"""The programs that make questions and statements of tables."""

import pytest

from mate_tf.datasets.json_lines import read_json_lines
from tests.small import run_binary

pytestmark = pytest.mark.medium


@pytest.fixture(scope="module")
def made(tmp_path_factory, vocab_file):
    """The output folders of both programs, and what they printed."""
    folder = tmp_path_factory.mktemp("made")
    (folder / "in").mkdir()
    for i in range(8):
        rows = "".join(f"{name},{n * (i + 2)}\n" for n, name in enumerate("abcdef", start=3))
        (folder / "in" / f"{i}.csv").write_text(f"name,points\n{rows}")
    (folder / "in" / "broken.csv").write_text('a,b\n1,"2\n')
    printed = {}
    for what, some in (("statements", "excerpts_per_table=2"), ("questions", "operations=count")):
        done = run_binary(
            f"experiments.create_{what}",
            *(f"--input_dir={folder / 'in'}", f"--output_dir={folder / what}"),
            *(f"--vocab_file={vocab_file}", "--max_seq_length=400", f"--{some}"),
            "--parts=train=60,dev=40",
        )
        assert done.returncode == 0, done.stderr
        printed[what] = done.stdout
    return folder, printed


def test_the_programs_write_what_they_say(made):
    folder, printed = made
    for what, said in printed.items():
        assert "left out: 1 table: malformed" in said
        for part in ("train", "dev"):
            pairs = list(read_json_lines(folder / what / f"{part}.jsonl"))
            assert f"{part}: {len(pairs)} {what} about" in said
            if what == "questions":
                assert {question.aggregation for _, question in pairs} == {"COUNT"}
