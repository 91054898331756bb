"""Settings of every test."""

import itertools
import logging
import os
import string
import sys

import hypothesis
import pytest

from tests import golden_tally

# oneDNN's kernels abort on some processors where tensors are as small as in tests, which therefore
# run without them; tests/test_onednn.py runs some with them. Set before TensorFlow is imported.
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


@pytest.fixture(scope="session", autouse=True)
def single_precision(tmp_path_factory):
    """Answers are computed in it on any processor; tests/test_private_apis.py has another one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("mate_tf.private_apis._CPUS", tmp_path_factory.mktemp("cpu") / "none")
        yield


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


def golden_rows(config) -> list[tuple]:
    """The rows of all tests, none in the processes of pytest-xdist, which have no terminal."""
    stats = getattr(config.pluginmanager.get_plugin("terminalreporter"), "stats", {})
    return golden_tally.rows_of(itertools.chain.from_iterable(stats.values()))


def pytest_terminal_summary(terminalreporter, config) -> None:
    for line in golden_tally.lines(golden_rows(config)):
        terminalreporter.write_line(line)


def pytest_sessionfinish(session, exitstatus) -> None:
    if exitstatus or os.environ.get("MATE_TF_REQUIRE_GOLDEN") != "1":
        return
    if not any(row[0] == "compared" for row in golden_rows(session.config)):
        session.exitstatus = 1
        print("\nno golden was compared")


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
