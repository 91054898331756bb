"""Which model a command uses."""

import os
import pathlib

from mate_tf.serving.folder import check_exported

VARIABLE = "MATE_TF_MODEL"
# The folder of a model that comes with the package: none does yet.
DEFAULT_MODEL: str | None = None


def find_model(given: str | None) -> pathlib.Path:
    """The folder of the model that is given, of the variable MATE_TF_MODEL, or of the default.

    Raises:
        FileNotFoundError: if it is not the folder of an exported model.
        ValueError: if there is none of the three.
    """
    name = given or os.environ.get(VARIABLE) or DEFAULT_MODEL
    if name is None:
        raise ValueError(
            f"expected a model, got none; give the folder of one as --model=FOLDER or in the "
            f"environment variable {VARIABLE} (experiments/export.py writes such a folder)"
        )
    folder = pathlib.Path(name)
    check_exported(folder)
    return folder
