"""What a run's folder says that the run was made from."""

import dataclasses

import pytest

from mate_tf.training.run import INPUTS_FILE, RunInputs, data_files, load_inputs, save_inputs


@pytest.fixture
def inputs(tmp_path):
    (tmp_path / "data").mkdir()
    for split in ("train", "dev"):
        (tmp_path / "data" / f"{split}.tfrecord").write_text(split)
    files = data_files(tmp_path / "data", ("train", "dev"))
    assert [file.name for file in files] == ["train.tfrecord", "dev.tfrecord"]
    return RunInputs(str(tmp_path / "data"), files, init_checkpoint="google/tapas-base")


def test_what_a_run_began_with_stays_said(inputs, tmp_path):
    save_inputs(inputs, tmp_path, begins=True)
    other = dataclasses.replace(inputs, init_checkpoint=None)
    save_inputs(other, tmp_path, begins=False)
    assert load_inputs(tmp_path) == inputs


@pytest.mark.parametrize(
    "change",
    [
        {"init_checkpoint": "google/tapas-large"},
        {"init_revision": "main"},
        {"reset_heads": True},
    ],
)
def test_a_run_goes_on_with_its_own_first_weights_alone(inputs, tmp_path, change):
    save_inputs(inputs, tmp_path, begins=True)
    save_inputs(inputs, tmp_path, begins=False)
    with pytest.raises(ValueError, match=r"began with, google/tapas-base, got google/tapas-"):
        save_inputs(dataclasses.replace(inputs, **change), tmp_path, begins=False)
    assert load_inputs(tmp_path) == inputs


def test_first_weights_of_a_folder_are_known_by_either_path(inputs, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    save_inputs(dataclasses.replace(inputs, init_checkpoint=str(tmp_path / "a")), tmp_path, True)
    for path in ("a", "./a/", str(tmp_path / "a")):
        save_inputs(dataclasses.replace(inputs, init_checkpoint=path), tmp_path, begins=False)
    with pytest.raises(ValueError, match="got b; choose another folder for the run, or name no"):
        save_inputs(dataclasses.replace(inputs, init_checkpoint="b"), tmp_path, begins=False)


def test_a_run_that_was_killed_before_its_first_checkpoint_begins_anew(inputs, tmp_path):
    save_inputs(inputs, tmp_path, begins=True)
    other = dataclasses.replace(inputs, init_checkpoint=None, files=inputs.files[:1])
    save_inputs(other, tmp_path, begins=True)
    assert load_inputs(tmp_path) == other


def test_a_run_goes_on_with_its_own_records_alone(inputs, tmp_path):
    save_inputs(inputs, tmp_path, begins=True)
    (tmp_path / "data" / "train.tfrecord").write_text("other")
    changed = dataclasses.replace(inputs, files=data_files(tmp_path / "data", ("train", "dev")))
    with pytest.raises(ValueError, match=r"got others in .*data: train.tfrecord; choose"):
        save_inputs(changed, tmp_path, begins=False)
    save_inputs(changed, tmp_path, begins=False, may_differ=True)
    assert load_inputs(tmp_path) == inputs


def test_a_file_of_something_else_is_named(tmp_path):
    (tmp_path / INPUTS_FILE).write_text("{}")
    with pytest.raises(ValueError, match=r"inputs.json: expected the keys data_dir, files"):
        load_inputs(tmp_path)
