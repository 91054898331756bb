"""Settings of every test."""

import logging
import os
import string
import sys

import hypothesis
import pytest

from tests.golden_tally import TALLY

# oneDNN's kernels round in another order than the plain ones, which one ill-conditioned gradient of
# the original would show (see tests/golden/test_heads.py). Set before TensorFlow is imported.
assert "tensorflow" not in sys.modules or "TF_ENABLE_ONEDNN_OPTS" in os.environ, (
    "what is imported above must not import TensorFlow"
)
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")

# No clock decides a test, and a run repeats exactly.
hypothesis.settings.register_profile(
    "mate_tf",
    deadline=None,
    derandomize=True,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("mate_tf")

# A small vocabulary for tests of what is made of tables.
SPECIAL = ["[PAD]", "[EMPTY]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
CHARACTERS = string.ascii_lowercase + string.digits + "éßøд"
WORDS = [
    *(f"##{character}" for character in CHARACTERS),
    *"city name people new york ##ville".split(),
]
VOCABULARY = [*SPECIAL, *string.punctuation, "–", "京", *CHARACTERS, *WORDS]


@pytest.fixture(scope="session")
def vocab_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("vocabulary") / "vocab.txt"
    path.write_text("\n".join(VOCABULARY) + "\n", encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def wordpiece(vocab_file):
    from mate_tf.features.wordpiece import Wordpiece  # imports TensorFlow

    return Wordpiece(vocab_file)


@pytest.fixture
def policy(request):
    """Keras's dtype policy during a test, by name; parametrize it with indirect=True."""
    import keras

    before = keras.config.dtype_policy()
    keras.config.set_dtype_policy(request.param)
    yield request.param
    keras.config.set_dtype_policy(before)


@pytest.fixture(autouse=True)
def logger_of_absl():
    """A server in this process may have turned off the loggers of others."""
    logger = logging.getLogger("absl")
    logger.disabled, logger.propagate = False, True


def pytest_collection_modifyitems(items) -> None:
    TALLY.is_asked |= any("golden" in str(item.path.parent) for item in items)
    for item in items:
        if "browser" in getattr(item, "fixturenames", ()):
            item.add_marker("medium")


def pytest_configure(config) -> None:
    """Two logical CPUs, for the tests with two replicas; they are set before the first tensor."""
    if config.getoption("numprocesses", None) and not hasattr(config, "workerinput"):
        return  # pytest-xdist's first process runs no test
    import tensorflow as tf

    cpu = tf.config.list_physical_devices("CPU")[0]
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node) -> None:
    """Takes over what one of pytest-xdist's processes has compared."""
    if "golden" in getattr(node, "workeroutput", {}):
        TALLY.add(node.workeroutput["golden"])


def pytest_terminal_summary(terminalreporter) -> None:
    for line in TALLY.lines():
        terminalreporter.write_line(line)


def pytest_sessionfinish(session, exitstatus) -> None:
    if hasattr(session.config, "workeroutput"):  # one of pytest-xdist's processes
        session.config.workeroutput["golden"] = TALLY.values()
    elif exitstatus == 0 and (problem := TALLY.problem()):
        session.exitstatus = 1
        print(f"\n{problem}")


def _lacks_an_extra(error: BaseException | None) -> bool:
    """Whether a package is missing where none of an extra is installed (scripts/test_core.sh)."""
    return "MATE_TF_CORE_ALONE" in os.environ and isinstance(error, ModuleNotFoundError)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    error = call.excinfo and call.excinfo.value
    if _lacks_an_extra(error):
        report.outcome, report.longrepr = "skipped", (str(item.path), 0, f"Skipped: {error}")
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector):
    report = yield
    error = report.call.excinfo and report.call.excinfo.value
    if report.failed and error and _lacks_an_extra(error.__cause__):
        reason = f"Skipped: {error.__cause__}"
        report.outcome, report.longrepr = "skipped", (str(collector.path), 0, reason)
    return report
