"""A vocabulary's pieces, and whether data was made with those that weights were trained with."""

import pathlib

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
