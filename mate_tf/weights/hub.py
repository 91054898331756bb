"""Folders of the Hugging Face Hub, downloaded and uploaded by name (the extra "hub")."""

import hashlib
import pathlib
import re

from mate_tf.private_apis import import_extra

_NAME = re.compile(r"[\w-][\w.-]*/[\w.-]+")
# What is read of a folder: no pickles and no code.
_FILES = (
    *("config.json", "conversion.json", "calibration.json", "vocab.txt"),
    *("*.safetensors", "*.safetensors.index.json"),
)


def is_hub_name(name: str) -> bool:
    """Whether it could name a model of the Hub: "owner/model"."""
    return _NAME.fullmatch(name) is not None


def download(name: str, revision: str | None = None) -> pathlib.Path:
    """Downloads a model's folder, or finds it in the local cache, and checks its checksums.

    The cache is huggingface_hub's (HF_HOME), and the only place with HF_HUB_OFFLINE=1. The folder
    has what the model has of config.json, conversion.json, calibration.json, vocab.txt and
    safetensors.

    Args:
        name: such as "google/tapas-base-finetuned-wtq".
        revision: a commit, branch or tag; only a commit cannot change. None for the newest.

    Raises:
        ModuleNotFoundError: without huggingface_hub.
        OSError: if there is no such model or revision, no network and nothing in the cache, or a
            file is not what the Hub has.
    """
    hub = import_extra("huggingface_hub", "hub", f"to download {name!r}").HfApi()
    try:
        folder = hub.snapshot_download(name, revision=revision, allow_patterns=list(_FILES))
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


def check_hub_name(name: str) -> None:
    """ValueError where a name can be none of a model on the Hub."""
    if not is_hub_name(name):
        raise ValueError(f"expected the name of a model on the Hub, owner/model, got {name!r}")


def upload(
    folder: pathlib.Path, name: str, private: bool, message: str, revision: str | None = None
) -> str:
    """Uploads a folder; arguments and errors as `push_to_hub` of a model."""
    hub = import_extra("huggingface_hub", "hub", f"to upload {name!r}").HfApi()
    try:
        hub.create_repo(name, private=private, exist_ok=True)
        if revision is not None:
            hub.create_branch(name, branch=revision, exist_ok=True)
        commit = hub.upload_folder(
            repo_id=name, folder_path=folder, commit_message=message, revision=revision
        )
    except (OSError, RuntimeError) as error:
        reason = str(error.__cause__ or error).strip().split("\n")[0]
        raise OSError(
            f"expected the Hugging Face Hub to take the model {name!r}: {type(error).__name__}: "
            f"{reason}; `hf auth login` stores a token that may write"
        ) from error
    return str(commit.commit_url)


def _check_checksum(file: pathlib.Path) -> None:
    """OSError where a file of the cache does not have the checksum that is its name.

    The cache names files by SHA-256, small ones by Git's checksum, and links to them where the
    system has links.
    """
    expected = file.resolve().name
    if not file.is_symlink() or not re.fullmatch("[0-9a-f]{40}|[0-9a-f]{64}", expected):
        return
    if len(expected) == 64:
        with file.open("rb") as content:
            digest = hashlib.file_digest(content, "sha256").hexdigest()
    else:
        blob = b"blob %d\0%s" % (file.stat().st_size, file.read_bytes())
        digest = hashlib.sha1(blob, usedforsecurity=False).hexdigest()
    if digest != expected:
        raise OSError(
            f"expected {file} with the checksum {expected}, got {digest}; remove "
            f"{file.resolve()}, then it is downloaded again"
        )
