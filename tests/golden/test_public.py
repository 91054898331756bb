"""The golden numbers that are part of the repository (public/README.md says what they are)."""

import pathlib
import re
import zlib

import numpy as np
import pytest

from mate_tf.weights.loading import assign_variables, variables_by_name
from tests.golden.comparison import Golden
from tests.golden.test_encoder import compare_encoder
from tests.golden.test_heads import compare_heads
from tests.golden_tally import TALLY

# The scale of a variable's values by its name; the first that matches counts.
SCALES = {
    r".*relative_bias_table": 1.0,
    r".*(bias.*|beta)": 0.1,
    r".*gamma": 0.2,
    r".*word_embeddings": 0.5,
    r".*(_embeddings.*|output_weights.*)": 0.3,
}


def weight(name: str, shape: tuple[int, ...]) -> np.ndarray:
    """The value of a variable in all of the original's runs, a function of its name and shape."""
    random = np.random.RandomState(zlib.crc32(f"{name}|{shape}".encode()))
    values = random.standard_normal(shape)
    if name.endswith("kernel"):
        steep = 1.5 if re.search("query|key", name) else 1.0
        return steep * values / np.sqrt(shape[0])
    scale = next(scale for pattern, scale in SCALES.items() if re.fullmatch(pattern, name))
    return scale * values + name.endswith("gamma")


class PublicGolden(Golden):
    def load_weights(self, model, checkpoint: str = ""):
        variables = variables_by_name(model)
        shapes = {name: tuple(variable.shape) for name, variable in variables.items()}
        values = {name: (lambda n=name, s=shape: weight(n, s)) for name, shape in shapes.items()}
        return assign_variables(model, values, "a function of names and shapes")


GOLDEN = PublicGolden(pathlib.Path(__file__).parent / "public", TALLY)


@pytest.mark.parametrize("name", GOLDEN.load_index("encoder"))
def test_encoder_equals_the_original(name):
    compare_encoder(GOLDEN, name)


@pytest.mark.parametrize("name", GOLDEN.load_index("heads"))
def test_logits_losses_and_gradients_equal_the_originals(name):
    compare_heads(GOLDEN, name)


def test_none_of_them_is_absent_and_all_together_are_small():
    files = [path for path in GOLDEN.directory.rglob("*") if path.is_file()]
    assert len(files) == 17 and sum(path.stat().st_size for path in files) < 2**20
