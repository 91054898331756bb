"""Files are read in this process: tests may patch what reads them, and need not wait for another.

Those in test_sandbox.py have the other.
"""

import pytest

from mate_tf.reading import sandbox


@pytest.fixture(autouse=True)
def _inside(monkeypatch, request):
    if request.path.name != "test_sandbox.py":
        monkeypatch.setattr(sandbox, "is_inside", True)
