"""What programs on a terminal share: what they print, how they say errors, what stays unsaid."""

import contextlib
import json
import logging
import os
import pathlib
import sys
from collections.abc import Iterator
from typing import Any


def silence_tensorflow() -> None:
    """Keeps TensorFlow quiet; call it before TensorFlow is imported.

    Its C++ side logs harmless errors on machines without a GPU. What matters is raised. Its Python
    side logs which devices a strategy has.
    """
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    logging.getLogger("tensorflow").addFilter(is_ours_or_serious)


def say(text: str) -> None:
    """Writes lines to standard output, at once."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def say_json(record: dict[str, Any]) -> None:
    """Writes an object on a line, in characters that standard output can hold."""
    is_utf8 = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    say(json.dumps(record, ensure_ascii=not is_utf8, allow_nan=False))


def is_ours_or_serious(record: logging.LogRecord) -> bool:
    """A filter that leaves out what TensorFlow and Orbit say about their own saving and loading."""
    if record.module == "function_deserialization":  # no exported model is trained further
        return False
    folders = pathlib.Path(record.pathname).parts
    return record.levelno >= logging.WARNING or bool({"mate_tf", "experiments"} & {*folders})


@contextlib.contextmanager
def showing_logs(with_progress: bool = False) -> Iterator[None]:
    """Imports TensorFlow, and shows what is logged: warnings on standard error, in a line each.

    Args:
        with_progress: whether progress is shown too, on standard output.
    """
    from absl import logging as absl_logging

    from mate_tf.private_apis import import_tensorflow

    import_tensorflow()
    logger, verbosity = absl_logging.get_absl_logger(), absl_logging.get_verbosity()
    warnings = logging.StreamHandler(sys.stderr)
    warnings.setLevel(logging.WARNING)
    warnings.setFormatter(logging.Formatter("mate-tf: %(message)s"))
    progress = logging.StreamHandler(sys.stdout)
    progress.addFilter(lambda record: with_progress and record.levelno < logging.WARNING)
    absl_logging.set_verbosity(absl_logging.INFO)
    logger.propagate = False
    for handler in (warnings, progress):
        handler.addFilter(is_ours_or_serious)
        logger.addHandler(handler)
    try:
        yield
    finally:
        logger.propagate = True
        absl_logging.set_verbosity(verbosity)
        for handler in (warnings, progress):
            logger.removeHandler(handler)


def sentence_for_user(error: Exception) -> str | None:
    """One sentence about an error of the input, the files or the machine; None for other errors."""
    expected = [ValueError, OSError, FloatingPointError, ModuleNotFoundError]
    if tensorflow := sys.modules.get("tensorflow"):
        expected.append(tensorflow.errors.OpError)
    if not isinstance(error, tuple(expected)):
        return None
    return str(error).strip().split("\n")[0]
