"""The folder of an exported model: a SavedModel, and what a reader needs in `assets.extra`."""

import pathlib

EXTRA = "assets.extra"
CONFIG_FILE = f"{EXTRA}/mate_tf.json"
VOCAB_FILE = f"{EXTRA}/vocab.txt"
SIGNATURES_FILE = f"{EXTRA}/signatures.txt"
CALIBRATION_FILE = f"{EXTRA}/calibration.json"


def check_exported(directory: pathlib.Path) -> None:
    """FileNotFoundError where a folder is no exported model."""
    for name in ("saved_model.pb", CONFIG_FILE, VOCAB_FILE):
        if not (directory / name).is_file():
            raise FileNotFoundError(
                f"expected an exported model at {directory}, which has no {name}; "
                "experiments/export.py writes one"
            )
