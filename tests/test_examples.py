"""The examples of docstrings and of the README run as they stand."""

import doctest
import importlib
import pathlib
import pkgutil
import re

import pytest
import tensorflow as tf

import mate_tf

ROOT = pathlib.Path(__file__).resolve().parents[1]
MODULES = sorted(
    module.name
    for module in pkgutil.walk_packages(mate_tf.__path__, "mate_tf.")
    if not module.ispkg
    if ">>> " in (ROOT / module.name.replace(".", "/")).with_suffix(".py").read_text()
)
README_BLOCKS = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)


def test_there_are_examples():
    assert "mate_tf.attention.multi_view" in MODULES
    assert len(README_BLOCKS) == 3


@pytest.mark.parametrize("name", MODULES)
def test_docstring_examples_run(name):
    results = doctest.testmod(importlib.import_module(name), extraglobs={"tf": tf})
    assert results.attempted > 0
    assert results.failed == 0


def test_readme_example_of_the_layers_runs():
    (block,) = (block for block in README_BLOCKS if "MultiViewAttention" in block)
    names: dict = {}
    exec(block, names)
    assert names["hidden"].shape == (1, 300, 64)
    assert names["output"].sequence_output.shape == (1, 300, 768)


def test_every_public_name_can_be_imported():
    for name in mate_tf.__all__:
        assert getattr(mate_tf, name).__name__ == name
    with pytest.raises(AttributeError, match="no attribute 'Tabel'"):
        mate_tf.Tabel  # noqa: B018
