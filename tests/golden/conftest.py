"""Fixtures: the golden folders (tests/golden/comparison.py says how their arrays are compared).

The folders come from the environment: MATE_TF_GOLDEN_DIR, by default ../shared/golden beside the
repository, whose index.json files list its content, and MATE_TF_GOLDEN_REAL_DIR, by default
../shared/golden_real, the same for real tables. Without them the few in public/ are compared.
"""

import pytest

from tests import data_folders
from tests.golden.comparison import Golden
from tests.golden_tally import TALLY

_GOLDEN = Golden(data_folders.GOLDEN, TALLY)
_GOLDEN_REAL = Golden(data_folders.GOLDEN_REAL, TALLY)


@pytest.fixture(scope="session")
def golden() -> Golden:
    if not _GOLDEN.directory.is_dir():
        _GOLDEN.skip_without(_GOLDEN.directory)
    return _GOLDEN


@pytest.fixture(scope="session")
def golden_real() -> Golden:
    if not _GOLDEN_REAL.directory.is_dir():
        _GOLDEN_REAL.skip_without(_GOLDEN_REAL.directory)
    return _GOLDEN_REAL


@pytest.fixture
def folder(request, conversion):
    """The golden folder of a conversion."""
    return request.getfixturevalue(conversion.fixture)


def pytest_configure(config) -> None:
    # For pytest_generate_tests in the test modules, which fixtures do not reach.
    config.golden, config.golden_real = _GOLDEN, _GOLDEN_REAL
