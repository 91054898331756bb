"""Which model a command uses."""

import os

from mate_tf.serving.folder import DEFAULT_MODEL, check_named

VARIABLE = "MATE_TF_MODEL"


def find_model(given: str | None) -> str:
    """The path or name of a model: the given one, that of MATE_TF_MODEL, or the default.

    Raises:
        FileNotFoundError: if there can be no such model.
        ValueError: if the given one is empty, as a shell's variable that is not set.
    """
    if given == "":
        raise ValueError("expected the folder or name of a model, got an empty one")
    name = given or os.environ.get(VARIABLE) or str(DEFAULT_MODEL)
    check_named(name)
    return name
