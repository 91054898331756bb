"""Weights to start from, wherever they are: Hugging Face, a TF1 checkpoint or a run of our own.

A vocabulary's pieces, and whether data was made with those that weights were trained with.
"""

import pathlib
from collections.abc import Callable

import keras

from mate_tf.config import read_json_object
from mate_tf.weights.hub import download, is_hub_name
from mate_tf.weights.hugging_face import load_hugging_face
from mate_tf.weights.loading import LoadReport
from mate_tf.weights.run import load_run
from mate_tf.weights.tf1 import find_tf1_checkpoint, load_tf1_checkpoint

# TAPAS has its mark of an empty text in the place of BERT's first unused piece.
_SAME = {"[EMPTY]", "[unused0]"}


def check_same_vocabulary(
    data_vocab: str | pathlib.Path, weights_vocab: str | pathlib.Path
) -> None:
    """Refuses data whose pieces are not those of the weights, id by id.

    The data's may be fewer, and [EMPTY] may stand where the weights have [unused0].

    Args:
        data_vocab: the vocabulary that the data was made with.
        weights_vocab: the vocabulary beside the weights.

    Raises:
        ValueError: if they differ, with the first line that does.
    """
    here, there = read_pieces(data_vocab), read_pieces(weights_vocab)
    remedy = f"make the data with --vocab_file={weights_vocab}"
    for line, (piece, expected) in enumerate(zip(here, there, strict=False), start=1):
        if piece != expected and {piece, expected} != _SAME:
            raise ValueError(
                f"expected the piece {expected!r} of {weights_vocab} in line {line} of "
                f"{data_vocab}, got {piece!r}; {remedy}"
            )
    if len(here) > len(there):
        raise ValueError(
            f"expected at most the {len(there)} pieces of {weights_vocab}, got {len(here)} in "
            f"{data_vocab}; {remedy}"
        )


def read_pieces(path: str | pathlib.Path) -> list[str]:
    """The pieces of a vocabulary, each at its index.

    Raises:
        ValueError: if it is not UTF-8.
    """
    try:
        text = pathlib.Path(path).read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"expected a vocabulary in UTF-8, got {path}: {error}") from None
    return [line.strip() for line in text.rstrip("\n").split("\n")]


_LOADERS: dict[str, Callable[..., LoadReport]] = {
    "hugging_face": load_hugging_face,
    "run": load_run,
    "tf1": load_tf1_checkpoint,
}


def load_weights(
    model: keras.layers.Layer,
    path: str | pathlib.Path,
    *,
    revision: str | None = None,
    vocab_file: str | pathlib.Path | None = None,
    reset_heads: bool = False,
    require_all: bool = False,
) -> LoadReport:
    """Loads published weights, or those of a run, into a model.

    Args:
        model: a built `TableEncoder` or a model with one as `.encoder`.
        path: a Hugging Face folder of BERT or TAPAS, the name of one on the Hub, a TF1 checkpoint
            of BERT, TAPAS or MATE (its prefix or folder), or the folder of a run of
            experiments/finetune.py, whose latest checkpoint it is.
        revision: of a name on the Hub, as `download` takes it.
        vocab_file: the vocabulary of the data; compared with a vocab.txt beside the weights. With
            it, BERT's weights are made fit for positions that restart in each cell, where the
            model's do (`cls_id` of `assign_variables`).
        reset_heads, require_all: as `assign_variables` takes them.

    Returns:
        What was loaded, what is new, what was ignored.

    Raises:
        FileNotFoundError: if there are no weights.
        ModuleNotFoundError, OSError: as `download`.
        ValueError: if they do not fit the model or the vocabulary, or with a revision of what is
            not on the Hub.
    """
    location = locate_weights(path, revision)
    folder = location if location.is_dir() else location.parent
    if vocab_file is not None and (folder / "vocab.txt").is_file():
        check_same_vocabulary(vocab_file, folder / "vocab.txt")
    load = _LOADERS[kind_of_weights(location)]
    pieces = [] if vocab_file is None else read_pieces(vocab_file)
    cls_id = pieces.index("[CLS]") if "[CLS]" in pieces else None
    return load(model, location, reset_heads=reset_heads, require_all=require_all, cls_id=cls_id)


def locate_weights(path: str | pathlib.Path, revision: str | None = None) -> pathlib.Path:
    """The path itself where there are weights, or else the folder of the Hub that it names.

    Raises:
        FileNotFoundError, ModuleNotFoundError, OSError, ValueError: as `load_weights`.
    """
    local = pathlib.Path(path)
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


def kind_of_weights(location: pathlib.Path) -> str:
    """Which kind of weights is there: "hugging_face", "run" or "tf1".

    Raises:
        ValueError: if a config.json is neither Hugging Face's nor a run's.
    """
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
