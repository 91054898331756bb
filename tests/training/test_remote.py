"""Training on another file system: TensorFlow's memory, ram://, in the place of gs://."""

import uuid

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mate_tf.command_line.main import main
from mate_tf.datasets.json_lines import write_json_lines
from mate_tf.features.config import FeatureConfig
from mate_tf.paths import as_path
from mate_tf.reading.text_files import complete_text_file, read_text
from mate_tf.tables.table import Question, Table
from mate_tf.training.loop import read_evaluations
from mate_tf.training.run import load_inputs, train_run
from mate_tf.training.starting_points import make_config
from mate_tf.training.trainer import Trainer
from mate_tf.weights.run import export_weights, run_weights
from tests.small import small_flags, write_examples

INTERVALS = ("eval_interval=2", "checkpoint_interval=1", "summary_interval=1")
CONFIG = make_config("demo", None, small_flags("max_seq_length=24", "num_steps=4", *INTERVALS))


def write_data(folder) -> None:
    table = Table.from_rows([["a", "b"], ["c", "d"], ["e", "f"]])
    question = Question("a", "q", ("c",), ((0, 0),), aggregation="NONE")
    splits = {split: [(table, question)] * 4 for split in ("train", "dev")}
    write_examples(folder, FeatureConfig(max_seq_length=24), splits)
    for split in splits:
        write_json_lines(folder / f"{split}.jsonl", [(table, question)])


def values(folder) -> dict:
    return {name: weight.read().tolist() for name, weight in run_weights(folder).weights.items()}


@pytest.mark.medium
def test_a_run_elsewhere_resumes_to_the_weights_of_one_here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    there = as_path("ram://test/remote")
    for data in (tmp_path / "data", there / "data"):
        data.mkdir(parents=True)
        write_data(data)
    here = train_run(CONFIG, tmp_path / "data", tmp_path / "run")

    train, calls = Trainer.train, []

    def interrupted(self, num_steps):
        calls.append(num_steps)
        # After the evaluation of step 2: made again, it would write its checkpoint again, and
        # ram:// appends to a file that is there.
        if len(calls) == 4:
            raise KeyboardInterrupt
        return train(self, num_steps)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(Trainer, "train", interrupted)
        train_run(CONFIG, there / "data", there / "run")
    assert (there / "run" / "ckpt-3.index").is_file()
    assert train_run(CONFIG, there / "data", there / "run") == here

    assert values(there / "run") == values(tmp_path / "run")
    assert read_evaluations(there / "run") == read_evaluations(tmp_path / "run")
    assert load_inputs(there / "run").data_dir == "ram://test/remote/data"
    for split in ("train", "dev"):
        assert [file for file in (there / "run" / split).iterdir() if "tfevents" in file.name]
    assert not list((there / "run").glob("*.unfinished"))

    # Weights alone, from which another run starts, and the run that is made again.
    export_weights(there / "run", there / "weights")
    export_weights(tmp_path / "run", tmp_path / "weights")
    assert values(there / "weights") == values(tmp_path / "weights")
    flags = [f"--config={there / 'run'}", f"--init-checkpoint={there / 'weights'}"]
    assert not main(["train", *flags, f"--model-dir={there / 'next'}", "--config.num_steps=2"])
    assert [evaluation["step"] for evaluation in read_evaluations(there / "next")] == [0, 2]
    assert not list(tmp_path.glob("*ram*"))  # no path with a scheme was taken for one here


names = st.text("abcxyz._-0", min_size=1, max_size=8).filter(lambda name: set(name) - {"."})


@given(st.lists(names, min_size=1, max_size=4), st.text(st.characters(exclude_categories=["Cs"])))
@example(["a"], "\ufeffb")
def test_a_path_elsewhere_is_like_one_here(parts, text):
    root = f"ram://{uuid.uuid4().hex}"  # ram:// may forget a folder with that beside it
    path = as_path(root).joinpath(*parts)
    assert str(path) == f"{root}/{'/'.join(parts)}"
    assert as_path(str(path)) == as_path(path) == path
    assert (path.name, path.parent / path.name) == (parts[-1], path)
    file = path / "file.txt"
    path.mkdir(parents=True, exist_ok=True)
    with complete_text_file(file) as written:
        written.write(text)
    assert file.read_bytes().decode() == text
    assert read_text(file) == text.removeprefix("\ufeff")
    assert file.is_file() and path.is_dir() and not path.is_file()
    assert file in path.iterdir() and list(path.glob("file.*")) == [file]
    file.unlink()
    assert not file.exists()
    file.unlink(missing_ok=True)
    with pytest.raises(FileNotFoundError, match=rf"expected a file at '{root}/.*', found none"):
        read_text(file)
    path.rmdir()
