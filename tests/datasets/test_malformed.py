"""An error of an official file names the file and the line, in every data set.

The data sets' own tests have what is particular to each.
"""

import functools
import re
from pathlib import Path

import pytest

from tests.datasets.releases import RELEASES, write_release

# Of interactions the lines below: their parser says nothing of bytes that are not UTF-8.
FILES = [
    (name, file)
    for name, release in RELEASES.items()
    for file in release.files
    if name != "interactions"
]
# What is no line of the file, wherever it stands; of files that are one JSON value, no JSON.
BAD_LINE = {".tsv": "one value", ".csv": "more,cells,than#the#header", ".json": "]", ".jsonl": "{"}


@pytest.fixture
def write(tmp_path):
    return functools.partial(write_release, tmp_path)


@pytest.mark.parametrize("name", RELEASES)
def test_each_release_is_read(write, name):
    release = RELEASES[name]
    assert len(list(release.read(write(release), "train"))) == 1


@pytest.mark.parametrize(("name", "file"), FILES)
def test_a_malformed_line_one_that_is_not_utf8_and_a_missing_file_are_named(write, name, file):
    release = RELEASES[name]
    good, bad = release.files[file].encode(), BAD_LINE[Path(file).suffix].encode()
    number = good.count(b"\n") + 1
    for added, message in ((bad, "expected (.|\n)*"), (b"\xff", r"[0\\]xff.*")):
        directory = write(release, **{file: good + added + b"\n"})
        with pytest.raises(ValueError, match=rf"{message}{file}', line {number}\)"):
            list(release.read(directory, "train"))
    (write(release) / file).unlink()
    with pytest.raises(FileNotFoundError, match=file):
        list(release.read(directory, "train"))


# A release, its file, a line too much or, behind "=", what the file has instead, and what is said.
MALFORMED = Path(__file__).with_name("malformed.txt").read_text(encoding="utf-8").splitlines()


@pytest.mark.parametrize("case", MALFORMED)
def test_what_a_line_or_a_file_must_not_be_is_refused_with_its_place(write, case):
    name, file, content, message = case.replace("\\t", "\t").split(" => ")
    release, content = RELEASES[name], f"{content}\n"
    if not file.startswith("="):
        before = release.files[file]
        content, place = before + content, rf", line {before.count(chr(10)) + 1}\)"
    else:
        file, place = file[1:], ""
    directory = write(release, **{file: content.encode()})
    with pytest.raises((OSError, ValueError), match=message) as error:
        list(release.read(directory, "train"))
    assert re.search(f"{file}'{place}", str(error.value))


@pytest.mark.parametrize(("name", "file"), [f for f in FILES if "json" in f[1]])
def test_json_of_endless_depth_is_named(write, name, file):
    release = RELEASES[name]
    directory = write(release, **{file: b"[" * 100_000 + b"\n"})
    with pytest.raises(ValueError, match=rf"expected .*JSON.*{file}'"):
        list(release.read(directory, "train"))


@pytest.mark.parametrize(
    ("name", "split"), [(name, split) for name in RELEASES for split in RELEASES[name].splits[1:]]
)
def test_a_split_that_is_not_there_says_so_at_its_first_question(write, name, split):
    release = RELEASES[name]
    with pytest.raises(FileNotFoundError, match="expected a file at"):
        next(iter(release.read(write(release), split)))
