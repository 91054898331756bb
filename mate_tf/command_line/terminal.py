"""What programs on a terminal share: errors as one sentence, little of what TensorFlow says."""

import logging
import os
import pathlib
import sys


def silence_tensorflow() -> None:
    """Keeps TensorFlow's C++ side quiet; call it before TensorFlow is imported.

    It logs harmless errors on machines without a GPU; what matters is raised.
    """
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")


def is_ours_or_serious(record: logging.LogRecord) -> bool:
    """A filter that leaves out what TensorFlow and Orbit say of their own saving and loading."""
    if record.module == "function_deserialization":  # no exported model is trained further
        return False
    folders = pathlib.Path(record.pathname).parts
    return record.levelno >= logging.WARNING or bool({"mate_tf", "experiments"} & {*folders})


def sentence_for_user(error: Exception) -> str | None:
    """What is said of an error of the input, the files or the machine; None of the program's."""
    expected = [ValueError, OSError, FloatingPointError, ModuleNotFoundError]
    if tensorflow := sys.modules.get("tensorflow"):
        expected.append(tensorflow.errors.OpError)
    if not isinstance(error, tuple(expected)):
        return None
    return str(error).strip().split("\n")[0]


def forget_stdout() -> None:
    """Lets nothing more be written to a standard output that nobody reads, not even at the end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
