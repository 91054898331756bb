"""Folders of the Hugging Face Hub, downloaded by name (the extra "hub")."""

import hashlib
import pathlib
import re

from mate_tf.private_apis import import_extra

_NAME = re.compile(r"[\w-][\w.-]*/[\w.-]+")
# What is read of a folder: no pickles and no code.
_FILES = ("config.json", "vocab.txt", "*.safetensors", "*.safetensors.index.json")


def is_hub_name(name: str) -> bool:
    """Whether it could name a model of the Hub: "owner/model"."""
    return _NAME.fullmatch(name) is not None


def download(name: str, revision: str | None = None) -> pathlib.Path:
    """Downloads a model's folder, or finds it in the local cache.

    The cache is huggingface_hub's (HF_HOME), and the only place with HF_HUB_OFFLINE=1. Each file is
    compared with its checksum.

    Args:
        name: such as "google/tapas-base-finetuned-wtq".
        revision: a commit, branch or tag; only a commit cannot change. None for the newest.

    Returns:
        The folder, with those of config.json, vocab.txt and safetensors that the model has.

    Raises:
        ModuleNotFoundError: without huggingface_hub.
        OSError: if there is no such model or revision, no network and nothing in the cache, or a
            file is not what the Hub has.
    """
    huggingface_hub = import_extra("huggingface_hub", "hub", f"to download {name!r}")
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
    for file in sorted(pathlib.Path(folder).iterdir()):
        _check_checksum(file)
    return pathlib.Path(folder)


def _check_checksum(file: pathlib.Path) -> None:
    """OSError where a file of the cache does not have the checksum that is its name.

    The cache names files by SHA-256, small ones by Git's checksum, and links to them where the
    system has links.
    """
    expected = file.resolve().name
    if not file.is_symlink() or not re.fullmatch("[0-9a-f]{40}|[0-9a-f]{64}", expected):
        return
    is_large = len(expected) == 64
    digest = hashlib.sha256() if is_large else hashlib.sha1(usedforsecurity=False)
    if not is_large:
        digest.update(b"blob %d\0" % file.stat().st_size)
    with file.open("rb") as content:
        while part := content.read(1 << 20):
            digest.update(part)
    if digest.hexdigest() != expected:
        raise OSError(
            f"expected {file} with the checksum {expected}, got {digest.hexdigest()}; remove "
            f"{file.resolve()}, then it is downloaded again"
        )
