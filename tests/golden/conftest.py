"""Takes what a test has compared with the golden folders into its report.

The folders come from the environment: MATE_TF_GOLDEN_DIR, by default ../shared/golden beside the
repository, whose index.json files list its content, and MATE_TF_GOLDEN_REAL_DIR, by default
../shared/golden_real, the same for real tables. Without them the few in public/ are compared.
"""

import pytest

from tests import golden_tally
from tests.golden.comparison import NotSupportedError


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    error = call.excinfo and call.excinfo.value
    if isinstance(error, NotSupportedError):
        golden_tally.left_out(item.path.stem.removeprefix("test_"), item.name, str(error))
        report.outcome = "skipped"
        report.longrepr = str(item.path), 0, f"Skipped: not compared: {error}"
    report.user_properties += [("golden", row) for row in golden_tally.ROWS]
    golden_tally.ROWS.clear()
    return report
