"""Which model a command uses."""

import os

from mate_tf.serving.folder import check_named

VARIABLE = "MATE_TF_MODEL"
# The folder of a model that comes with the package: none does yet.
DEFAULT_MODEL: str | None = None


def find_model(given: str | None) -> str:
    """The path or name of a model: the given one, that of MATE_TF_MODEL, or the default.

    Raises:
        FileNotFoundError: if there can be no such model.
        ValueError: if there is none of the three.
    """
    name = given or os.environ.get(VARIABLE) or DEFAULT_MODEL
    if name is None:
        raise ValueError(
            f"expected a model, got none; give the folder or name of one as --model or in the "
            f"environment variable {VARIABLE} (experiments/export.py writes such a folder)"
        )
    check_named(name)
    return name
