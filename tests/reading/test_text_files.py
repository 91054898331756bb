import os

import pytest

from mate_tf.reading.text_files import complete_text_file
from tests.small import cases


def test_a_file_appears_with_its_last_line_a_device_stays_one_and_a_link_leads_on(tmp_path):
    path = tmp_path / "file.txt"
    with complete_text_file(path) as file:
        file.write("ä\n")
        file.flush()
        assert not path.exists()
    assert path.read_bytes() == "ä\n".encode()
    assert [path] == list(tmp_path.iterdir())
    device, link = tmp_path / "device", tmp_path / "link"
    device.symlink_to(os.devnull)
    link.symlink_to(path)
    for it in (device, link):
        with complete_text_file(it, errors="backslashreplace") as file:
            file.write("new\ud800")
    assert device.is_char_device() and link.is_symlink()
    assert path.read_text() == "new\\ud800"
    assert sorted(tmp_path.iterdir()) == [device, path, link]


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
