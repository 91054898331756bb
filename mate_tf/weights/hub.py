"""Folders of the Hugging Face Hub, downloaded by name (the extra "hub")."""

import pathlib
import re

_NAME = re.compile(r"[\w-][\w.-]*/[\w.-]+")
# All that is read of a folder: no pickle, and no code.
_FILES = ("config.json", "vocab.txt", "*.safetensors", "*.safetensors.index.json")


def is_hub_name(name: str) -> bool:
    """Whether it could name a model of the Hub: "owner/model"."""
    return _NAME.fullmatch(name) is not None


def download(name: str, revision: str | None = None) -> pathlib.Path:
    """Downloads a model's folder, or finds it in the local cache.

    Args:
        name: such as "google/tapas-base-finetuned-wtq".
        revision: a commit, branch or tag; a commit is what no one can change. None for the newest.

    Returns:
        The folder, with config.json, vocab.txt and safetensors as far as the model has them.

    Raises:
        ModuleNotFoundError: without huggingface_hub.
        OSError: if there is no such model or revision, or no network and nothing in the cache.
    """
    try:
        import huggingface_hub
    except ModuleNotFoundError:
        raise ModuleNotFoundError(
            f"expected the package huggingface_hub, which downloads {name!r}; install "
            "mate_tf[hub], or give the path of a folder"
        ) from None
    try:
        folder = huggingface_hub.snapshot_download(
            name, revision=revision, allow_patterns=list(_FILES)
        )
    except (OSError, ValueError) as error:
        reason = str(error).strip().split("\n")[0]
        raise OSError(
            f"expected a model {name!r} on the Hugging Face Hub, revision {revision or 'main'}, or "
            f"in its local cache: {type(error).__name__}: {reason}; without a network give the "
            "path of a folder"
        ) from error
    return pathlib.Path(folder)
