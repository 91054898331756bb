"""The examples of docstrings, of the README and of docs/ run as they stand."""

import copy
import doctest
import importlib
import json
import pkgutil
import re
import textwrap

import numpy as np
import pytest
import tensorflow as tf

import mate_tf
from scripts import run_notebook
from tests.small import ROOT

MODULES = sorted(
    module.name
    for module in pkgutil.walk_packages(mate_tf.__path__, "mate_tf.")
    if not module.ispkg
    if ">>> " in (ROOT / module.name.replace(".", "/")).with_suffix(".py").read_text()
)


def blocks_of(document: str) -> list[str]:
    """The Python examples of a document."""
    return re.findall(r"```python\n(.*?)```", (ROOT / document).read_text("utf-8"), re.DOTALL)


def passages_example() -> str:
    """The library guide's example of tables with passages, which needs a trained model."""
    text = (ROOT / "docs" / "library.md").read_text("utf-8")
    return textwrap.dedent(text.split("whose cells link to passages:\n")[1].split("```")[0])


@pytest.mark.parametrize("name", MODULES)
def test_docstring_examples_run(name):
    results = doctest.testmod(importlib.import_module(name), extraglobs={"tf": tf})
    assert results.attempted > 0
    assert results.failed == 0


def test_the_readmes_example_is_answered_and_every_public_name_can_be_imported():
    assert run_blocks("README.md")["answer"].text == "Gene Cernan"
    assert "mate_tf.layers.attention.kinds" in MODULES
    for name in mate_tf.__all__:
        assert getattr(mate_tf, name).__name__ == name
    with pytest.raises(AttributeError, match="no attribute 'Tabel'"):
        mate_tf.Tabel  # noqa: B018


def test_the_notebook_is_answered_right_and_shows_what_it_prints():
    stored = json.loads((ROOT / "docs" / "quick_start.ipynb").read_text("utf-8"))
    again = copy.deepcopy(stored)
    names = run_notebook.run(again)
    outputs = [cell["outputs"] for cell in stored["cells"] if "outputs" in cell]
    assert list(map(len, outputs)) == [0, 1, 2, 1, 2]
    assert again == stored, "run: python -m scripts.run_notebook docs/quick_start.ipynb"
    assert names["answer"].text == "Gene Cernan"
    assert [answer.text for answer in names["answers"]] == ["Apollo 11", "Hadley Rille"]
    assert not names["unsure"].answered
    assert names["unsure"].alternatives[0].text == "Gene Cernan"


def run_blocks(document: str) -> dict:
    """Runs a document's examples one after the other, in the present folder."""
    names: dict = {}
    for block in blocks_of(document):
        exec(compile(block, document, "exec"), names)
    return names


def test_the_guide_to_the_layers_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = run_blocks("docs/layers.md")
    expected = names["model"].predict(names["inputs"], verbose=0)
    np.testing.assert_array_equal(names["again"].predict(names["inputs"], verbose=0), expected)
    assert names["auc"] > 0.95
    assert all(output.shape == (512, 32) for output in names["outputs"].values())
    assert "of my own" in names["outputs"]
    np.testing.assert_allclose(names["served"], names["tagger"](names["inputs"]), atol=1e-5)
    assert names["views"].window.shape == (512, 4, 4, 42, 8)
    assert names["context"].shape == (512, 4, 64, 8)


def test_the_guide_to_tables_adds_up_sizes(capsys):
    run_blocks("docs/tables.md")
    (block,) = blocks_of("docs/tables.md")
    assert capsys.readouterr().out.splitlines() == re.findall("  # (.*)", block)


@pytest.mark.docs
def test_the_guide_to_the_library_runs_and_is_answered_right(monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    names = run_blocks("docs/library.md")
    assert not names["answer"].answered and names["answer"].alternatives[0].text == "Lima"
    assert list(names["seen"].groups) == ["row heads", "column heads"]
    printed = capsys.readouterr().out
    for line in (
        "gas giant ",
        "\n['Lima', '3']\n",
        "\n0 Lima\n1 Ecuador\n2 expected at most 16384 tokens, got 20",
        "\nrow heads: ",
        "\nLima\n",
    ):
        assert line in f"\n{printed}", line
