"""The two programs of docs/onnx.md, in Python and in node, answer from an exported graph."""

import pathlib
import re
import shutil
import subprocess
import sys

import pytest

from mate_tf.command_line.main import main
from tests.small import ROOT

pytestmark = pytest.mark.docs
TEXT = (ROOT / "docs" / "onnx.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder in which the page's command wrote out/onnx."""
    path = tmp_path_factory.mktemp("onnx")
    (command,) = re.findall(r"^    mate-tf (export .*--single-file)$", TEXT, re.MULTILINE)
    assert main(command.replace("out/onnx", f"{path}/out/onnx").split()) == 0
    return path


def program(language: str) -> str:
    (text,) = re.findall(rf"```{language}\n(.*?)```", TEXT, re.DOTALL)
    return text


def printed(language: str) -> str:
    """What the page says that the program in a language prints."""
    return re.findall(rf"```{language}\n.*?```.*?It prints `(.*?)`", TEXT, re.DOTALL)[0]


def output_of(command: list[str], folder: pathlib.Path) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_the_program_in_python_answers(folder):
    pytest.importorskip("tokenizers", reason="tokenizers is not installed")
    (folder / "answer.py").write_text(program("python"))
    assert output_of([sys.executable, "answer.py"], folder) == printed("python")


def test_the_program_in_node_answers(folder):
    npm, node = shutil.which("npm"), shutil.which("node")
    if npm is None or node is None:
        pytest.skip("node is not installed")
    try:
        output_of([npm, "install", "--silent", "onnxruntime-web"], folder)
    except (AssertionError, subprocess.TimeoutExpired):
        pytest.skip("npm installs nothing here")
    (folder / "answer.mjs").write_text(program("javascript"))
    assert output_of([node, "answer.mjs"], folder) == printed("javascript")
