import os

import pytest

from mate_tf.reading.text_files import complete_text_file
from tests.small import cases


def test_a_file_appears_with_its_last_line_and_a_device_stays_one(tmp_path):
    path = tmp_path / "file.txt"
    with complete_text_file(path) as file:
        file.write("ä\n")
        file.flush()
        assert not path.exists()
    assert path.read_bytes() == "ä\n".encode()
    assert [path] == list(tmp_path.iterdir())
    link = tmp_path / "device"
    link.symlink_to(os.devnull)
    with complete_text_file(link) as file:
        file.write("a")
    assert link.is_char_device() and sorted(tmp_path.iterdir()) == [link, path]


@cases("last, message", ("\ud800", "surrogates not allowed"), ("more", "after writing"))
def test_a_failure_leaves_the_file_that_was_there(tmp_path, last, message):
    path = tmp_path / "file.txt"
    path.write_text("old")
    with pytest.raises(ValueError, match=message), complete_text_file(path) as file:
        file.write("new")
        file.write(last)
        raise ValueError("after writing")
    assert path.read_text() == "old"
    assert [path] == list(tmp_path.iterdir())


def test_of_a_link_what_it_leads_to_is_replaced_by_what_the_caller_says(tmp_path):
    (tmp_path / "folder").mkdir()
    target, link = tmp_path / "folder" / "file.txt", tmp_path / "link"
    target.write_text("old")
    link.symlink_to(target)
    with complete_text_file(link, errors="backslashreplace") as file:
        file.write("new\ud800")
    assert link.is_symlink() and target.read_text() == "new\\ud800"
