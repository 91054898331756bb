"""Text files that are written whole or not at all."""

import os

import pytest

from mate_tf.tables.text_files import complete_text_file


def test_a_file_appears_with_its_last_line(tmp_path):
    path = tmp_path / "file.txt"
    with complete_text_file(path) as file:
        file.write("ä\n")
        file.flush()
        assert not path.exists()
    assert path.read_bytes() == "ä\n".encode()
    assert [path] == list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("last", "message"), [("\ud800", "surrogates not allowed"), ("more", "after writing")]
)
def test_a_failure_leaves_the_file_that_was_there(tmp_path, last, message):
    path = tmp_path / "file.txt"
    path.write_text("old")
    with pytest.raises(ValueError, match=message), complete_text_file(path) as file:
        file.write("new")
        file.write(last)
        raise ValueError("after writing")
    assert path.read_text() == "old"
    assert [path] == list(tmp_path.iterdir())


def test_half_a_surrogate_pair_is_written_as_the_caller_says(tmp_path):
    with complete_text_file(tmp_path / "file.txt", errors="backslashreplace") as file:
        file.write("\ud800")
    assert (tmp_path / "file.txt").read_text() == "\\ud800"


def test_a_device_is_written_to_and_stays_one(tmp_path):
    link = tmp_path / "device"
    link.symlink_to(os.devnull)
    with complete_text_file(link) as file:
        file.write("a")
    assert link.is_char_device() and list(tmp_path.iterdir()) == [link]


def test_of_a_link_what_it_leads_to_is_replaced(tmp_path):
    (tmp_path / "folder").mkdir()
    target, link = tmp_path / "folder" / "file.txt", tmp_path / "link"
    target.write_text("old")
    link.symlink_to(target)
    with complete_text_file(link) as file:
        file.write("new")
    assert link.is_symlink() and target.read_text() == "new"
