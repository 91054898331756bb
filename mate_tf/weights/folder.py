"""The folders of models that answer: exported ones, runs, the package's, the Hugging Face Hub's.

An exported model is a SavedModel with a folder of weights in `assets.extra`. Slow imports are
inside the functions that need them, so that a wrong name is reported at once.
"""

import dataclasses
import hashlib
import json
import pathlib
import re
from typing import TYPE_CHECKING

from mate_tf.config import read_json_object
from mate_tf.paths import as_path
from mate_tf.private_apis import import_extra
from mate_tf.reading.text_files import complete_text_file

if TYPE_CHECKING:
    from mate_tf.answers.calibration import Calibration

EXTRA = "assets.extra"
CONFIG_FILE = f"{EXTRA}/config.json"
VOCAB_FILE = f"{EXTRA}/vocab.txt"
SIGNATURES_FILE = f"{EXTRA}/signatures.txt"
WARM_UP_FILE = f"{EXTRA}/tf_serving_warmup_requests"  # as TensorFlow Serving calls it
CALIBRATION_FILE = "calibration.json"  # of the weights, by training or `mate-tf calibrate`
# A run reduced to its weights (`export_weights`); its README.md describes it.
DEFAULT_MODEL = pathlib.Path(__file__).resolve().parents[1] / "default_model"
# Of the kinds that it knows: JSON Lines for training from it (experiments/demo_data).
KNOWN_QUESTIONS = DEFAULT_MODEL / "known_questions.jsonl.gz"
POINTR_FILE = "pointr.json"  # what the pointer of an exported PointR sees, a folder of two models
SAVED_MODEL = "saved_model.pb"  # who has it is an exported model, ours or another program's
_HUB_NAME = re.compile(r"[\w-][\w.-]*/[\w.-]+")
# What is read of a folder of the Hub: no pickles and no code.
_HUB_FILES = (
    *("config.json", "conversion.json", CALIBRATION_FILE, "vocab.txt", "model.onnx"),
    *("*.safetensors", "*.safetensors.index.json"),
)


def check_exported(directory: pathlib.Path) -> None:
    """FileNotFoundError where a folder is not an exported model."""
    for name in (SAVED_MODEL, CONFIG_FILE, VOCAB_FILE):
        if not (directory / name).is_file():
            raise FileNotFoundError(
                f"expected an exported model at {directory}, which has no {name}; "
                "`mate-tf export` writes one"
            )


def described_in(directory: str | pathlib.Path) -> pathlib.Path:
    """The folder that describes an exported model or a run: its config, vocabulary, calibration."""
    directory = as_path(directory)
    return directory / EXTRA if is_exported(directory) else directory


def check_named(path: str) -> None:
    """Checks that a path leads to a model, or is a name that one may have on the Hub.

    Raises:
        FileNotFoundError: if there can be no such model.
        ValueError: if it is a PointR.
    """
    folder = pathlib.Path(path)
    if is_exported(folder):
        check_exported(folder)
    elif (folder / POINTR_FILE).is_file():
        raise ValueError(
            f"expected a model of tables alone, got {path}, which answers from a table with "
            "passages: `mate-tf ask` and the library load it"
        )
    elif not (folder / "config.json").is_file() and (folder.exists() or not is_hub_name(path)):
        raise FileNotFoundError(
            f"expected a model at {path}, found none: no exported model "
            "(`mate-tf export` writes one), run or Hugging Face folder"
        )


def is_exported(directory: pathlib.Path) -> bool:
    """Whether a folder is a SavedModel, ours or another program's."""
    return (directory / SAVED_MODEL).is_file()


def kind_of_weights(location: pathlib.Path) -> str:
    """One of "hugging_face", "run" and "tf1"; ValueError for another kind of config.json."""
    config_file = location / "config.json"
    if not config_file.is_file():
        return "tf1"
    config = read_json_object(config_file)
    if "model_type" in config:
        return "hugging_face"
    if isinstance(config.get("encoder"), dict):
        return "run"
    raise ValueError(
        f"expected the config.json of a Hugging Face folder or of a run, got {config_file}"
    )


def locate_weights(path: str | pathlib.Path, revision: str | None = None) -> pathlib.Path:
    """The path itself where there are weights, or a folder of the Hub; errors as `load_weights`."""
    local = as_path(path)
    if (local / "config.json").is_file() or find_tf1_checkpoint(local):
        if revision is not None:
            raise ValueError(f"expected no revision for weights on this machine, got {revision!r}")
        return local
    if local.is_dir() or not is_hub_name(str(path)):
        raise FileNotFoundError(
            f"expected weights at {path}, found none: no Hugging Face folder, TF1 checkpoint or "
            "folder of a run"
        )
    try:
        return download(str(path), revision)
    except (ModuleNotFoundError, OSError) as error:
        # A mistyped path of two parts is a name that the Hub might have.
        raise type(error)(f"found no folder or checkpoint {str(path)!r} here; {error}") from error


def find_tf1_checkpoint(path: pathlib.Path) -> str | None:
    """The prefix of the checkpoint at a prefix, or of the latest or only one in a folder."""
    if not path.is_dir():
        return str(path) if as_path(f"{path}.index").exists() else None
    import tensorflow as tf

    if latest := tf.train.latest_checkpoint(str(path)):
        return latest
    prefixes = [str(file.with_suffix("")) for file in sorted(path.glob("*.index"))]
    if len(prefixes) > 1:
        names = ", ".join(pathlib.Path(one).name for one in prefixes)
        raise ValueError(
            f"expected one TF1 checkpoint in {path}, got {len(prefixes)}: {names}; name one by "
            f"its prefix, such as {prefixes[0]}"
        )
    return prefixes[0] if prefixes else None


def check_calibrates(directory: str | pathlib.Path) -> None:
    """FileNotFoundError where a folder is neither an exported model nor a run."""
    from mate_tf.records.conversion_file import CONVERSION_FILE

    directory = pathlib.Path(directory)
    if is_exported(directory) or not (directory / CONVERSION_FILE).is_file():
        check_exported(directory)


def write_calibration(directory: str | pathlib.Path, calibration: "Calibration") -> None:
    """Stores a calibration in a model's folder; FileNotFoundError as `check_calibrates`."""
    check_calibrates(directory)
    text = json.dumps(dataclasses.asdict(calibration), indent=2) + "\n"
    with complete_text_file(described_in(directory) / CALIBRATION_FILE) as file:
        file.write(text)


def read_calibration(directory: str | pathlib.Path) -> "Calibration | None":
    """The calibration of an exported model or a run; None without one, ValueError for another."""
    from mate_tf.answers.calibration import calibration_in

    return calibration_in(described_in(directory) / CALIBRATION_FILE)


def is_hub_name(name: str) -> bool:
    """Whether it could name a model of the Hub: "owner/model"."""
    return _HUB_NAME.fullmatch(name) is not None


def download(name: str, revision: str | None = None) -> pathlib.Path:
    """Downloads a model's folder, or finds it in the local cache, and checks its checksums.

    The cache is huggingface_hub's (HF_HOME), and the only place with HF_HUB_OFFLINE=1. Names are
    such as "google/tapas-base-finetuned-wtq"; a revision is a commit, branch or tag, and only a
    commit cannot change. ModuleNotFoundError without huggingface_hub; OSError if there is no such
    model or revision, no network and nothing in the cache, or a file is not what the Hub has.
    """
    hub = import_extra("huggingface_hub", "hub", f"to download {name!r}").HfApi()
    try:
        folder = hub.snapshot_download(name, revision=revision, allow_patterns=list(_HUB_FILES))
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
