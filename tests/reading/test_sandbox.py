"""What a file may do to its reader, and what the process around it makes of that."""

import gzip
import os
import pathlib
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from mate_tf.reading import sandbox
from mate_tf.reading.files import read_content
from mate_tf.reading.sources import read_table
from mate_tf.tables.table import Table
from tests.reading.workbooks import opendocument, unzipped, workbook, zipped
from tests.small import cases

PAGE = b"<table><tr><th>City<th>Pop<tr><td>Lima<td>10151</table>"
TABLE = Table(("City", "Pop"), (("Lima", "10151"),), "t.html")
TOO_MUCH = r"expected a file that is read in .* and 1 GB of memory, got one .*'t'\); save it as CSV"


# What a reader may do; each is called in a process of its own.


def take_memory(content: bytes) -> list[int]:
    return [len(content * 2 * sandbox.MEMORY)]


def abort(content: bytes) -> list[str]:
    os.abort()


def take_time(content: bytes) -> list[str]:
    soft = resource.getrlimit(resource.RLIMIT_CPU)[0]
    assert soft == sandbox.SECONDS
    resource.setrlimit(resource.RLIMIT_CPU, (1, -1))
    while True:
        pass


def wait(content: bytes) -> None:
    time.sleep(60)


def print_much(content: bytes) -> Iterator[str]:
    print("x" * 100_000)
    os.write(1, b"y")
    os.write(2, b"z" * 100_000)
    yield content.decode()
    yield "\n\ud800\0"


def raise_missing(content: bytes) -> Iterator[str]:
    yield "a value"
    raise ModuleNotFoundError("expected the package x", name="x")


def raise_own_kind(content: bytes) -> list[str]:
    return [content.decode()]


def modules(content: bytes) -> list[str]:
    import csv

    return [str(csv.__file__), *sys.modules]


@cases("function", take_memory, abort, take_time, wait)
def test_a_reader_that_takes_too_much_or_aborts_is_an_error(monkeypatch, function):
    if function is take_memory and sys.platform != "linux":
        pytest.skip("expected Linux, which limits memory")
    if function is wait:
        monkeypatch.setattr(sandbox, "_SECONDS_IN_ALL", 0.5)
    with pytest.raises(ValueError, match=TOO_MUCH):
        sandbox.run(function, b"a", name="t")


def test_what_a_reader_prints_goes_nowhere_and_its_errors_come_back(capfd):
    assert sandbox.run(print_much, b"read\n", name="t") == ["read\n", "\n\ud800\0"]
    assert capfd.readouterr() == ("", "")
    with pytest.raises(ModuleNotFoundError, match="expected the package x"):
        sandbox.run(raise_missing, b"", name="t")
    with pytest.raises(ValueError, match="invalid start byte") as caught:
        sandbox.run(raise_own_kind, b"\xff", name="t")
    assert type(caught.value) is ValueError


def test_a_python_that_does_not_start_is_named(monkeypatch):
    monkeypatch.setattr(sandbox, "_START", "raise SystemError('no disk')")
    with pytest.raises(OSError, match="a process to start that reads 't', got: SystemError: no d"):
        sandbox.run(modules, b"", name="t")


def test_the_process_imports_nothing_slow_and_nothing_of_the_current_folder(tmp_path, monkeypatch):
    (tmp_path / "csv.py").write_text("raise SystemExit('the wrong csv')")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", ["", str(tmp_path), *sys.path])
    assert read_content(PAGE, "t.html") == TABLE
    file_of_csv, *imported = sandbox.run(modules, b"", name="t")
    assert pathlib.Path(file_of_csv).parent != tmp_path
    assert not {"tensorflow", "keras", "pandas", "gradio"}.intersection(imported)
    (tmp_path / "csv.py").unlink()
    tmp_path.rmdir()  # a current folder that is gone does not matter
    assert read_content(PAGE, "t.html") == TABLE


SCRIPT = """
import sys
from mate_tf.reading.sources import read_table
print(read_table(sys.argv[1]).rows)
"""


def test_a_script_without_a_main_guard_reads_a_file_and_nothing_beside_it_is_imported(tmp_path):
    (tmp_path / "scripts").mkdir()
    (tmp_path / "scripts" / "script.py").write_text(SCRIPT)
    (tmp_path / "scripts" / "lxml.py").write_text("raise SystemExit('the wrong lxml')")
    (tmp_path / "t.html").write_bytes(PAGE)
    command = [sys.executable, "scripts/script.py", "t.html"]
    environment = os.environ | {"PYTHONPATH": str(pathlib.Path(__file__).parents[2])}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, check=True)
    assert done.stdout.decode().strip() == "(('Lima', '10151'),)"


WAITING = """
from mate_tf.reading import sandbox
from tests.reading.test_sandbox import wait
print("begun", flush=True)
sandbox.run(wait, b"", name="t")
"""


@pytest.mark.skipif(sys.platform == "win32", reason="expected signals of POSIX")
def test_ctrl_c_ends_it_at_once():
    with subprocess.Popen(
        [sys.executable, "-c", WAITING], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(1)
        begun = time.monotonic()
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=30)
        assert b"KeyboardInterrupt" in errors
        assert time.monotonic() - begun < 25  # a busy machine is slow


def test_a_packed_file_is_unpacked_with_bounded_memory():
    bomb = gzip.compress(b"a,b\n" + b"1,2\n" * 10 + b"\0" * 2**28)
    assert len(bomb) < 300_000
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(ValueError, match=r"at most 268,435,456 bytes once unpacked, got more"):
        read_content(bomb, "bomb.csv.gz")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000  # kB
    assert read_content(gzip.compress(b"a,b\n1,2\n"), "t.csv.gz").rows == (("1", "2"),)


def test_a_sheet_that_does_not_end_is_refused(tmp_path):
    """It would keep python-calamine busy for ever."""
    members = unzipped(opendocument(("A", [["a", "b"], ["1", "2"]])))
    whole = members["content.xml"]
    path = tmp_path / "t.ods"
    for end in (whole.index(b"</table:table>"), whole.index(b"</office:spread")):
        path.write_bytes(zipped(**members | {"content.xml": whole[:end]}))
        with pytest.raises(ValueError, match=r"of OpenDocument, got: no element found.*t\.ods"):
            read_table(path)
    path.write_bytes(zipped(**members))
    assert read_table(path).rows == (("1", "2"),)


def test_only_the_sheet_that_is_read_is_parsed():
    members = unzipped(workbook([["a", "b"], [1, 2]], more=[("Broken", [["c"]]), ("Empty", [])]))
    broken = members["xl/worksheets/sheet2.xml"].replace(b"</c>", b"")
    content = zipped(**members | {"xl/worksheets/sheet2.xml": broken})
    table = read_content(content, "t.xlsx")
    assert table.rows == (("1", "2"),)
    assert table.assumed == ("Sheet 'Sheet' was read; there are also 'Broken'.",)
