"""Files are read in this process: tests may patch what reads them, and need not wait for another.

tests/reading has the other.
"""

import pytest

from mate_tf.reading import sandbox


@pytest.fixture(autouse=True)
def _inside(monkeypatch):
    monkeypatch.setattr(sandbox, "is_inside", True)
