"""Examples as arrays of few bytes, and batches of them; needs NumPy alone.

Shapes: N examples, B of a batch, S sequence, W numbers of an example's other feature.
"""

import bisect
import io
import itertools
import lzma
import math
import pathlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

LENGTHS, MASK = "lengths", "input_mask"
# Padding of tokens; other features have zeros.
FILLING = {"numeric_values": math.nan, "numeric_values_scale": 1.0}
Arrays = dict[str, np.ndarray]


def pack(
    examples: Iterable[Mapping[str, np.ndarray]], features: Sequence[str], longest: int
) -> Arrays:
    """Some features of examples as arrays of few bytes, without padding, for `Examples`.

    Given are [S] for features of tokens and [W] for others. Examples longer than `longest` tokens
    are left out. It gives LENGTHS [N], which is what is kept of the mask, features of all tokens
    one after the other [sum of lengths], and others [N, W].
    """
    lengths: list[int] = []
    kept: dict[str, list[np.ndarray]] = {name: [] for name in features if name != MASK}
    for example in examples:
        length = int(example[MASK].sum())
        if length > longest:
            continue
        lengths.append(length)
        for name, values in kept.items():
            is_of_tokens = example[name].shape == example[MASK].shape
            given = example[name][:length] if is_of_tokens else example[name][np.newaxis]
            values.append(_small(given))
    if not lengths:
        raise ValueError(f"expected examples of at most {longest} tokens, found none")
    return {LENGTHS: np.array(lengths)} | {n: np.concatenate(values) for n, values in kept.items()}


def _small(values: np.ndarray) -> np.ndarray:
    """Integers in the smallest type that holds them."""
    if values.dtype.kind == "f":
        return values
    return values.astype(np.result_type(*map(np.min_scalar_type, (values.min(), values.max()))))


class Examples:
    """The examples of a file of arrays (`pack`), and how many tokens each has: int [N]."""

    def __init__(self, path: pathlib.Path) -> None:
        with np.load(io.BytesIO(lzma.decompress(path.read_bytes()))) as arrays:
            self._features = dict(arrays)
        self.lengths = self._features.pop(LENGTHS)
        self._ends = np.cumsum(self.lengths)

    def write(self, index: int, batch: Arrays, row: int) -> None:
        """Writes an example into a row of a batch [B, S] or [B, W] that is all padding."""
        length, end = self.lengths[index], self._ends[index]
        batch[MASK][row, :length] = 1
        for name, values in self._features.items():
            if values.ndim == 1:
                batch[name][row, :length] = values[end - length : end]
            else:
                batch[name][row] = values[index]


Chosen = Sequence[tuple[Examples, int]]


def batch_of(inputs: Sequence[Sequence[Any]], chosen: Chosen) -> Arrays:
    """A batch of examples; `inputs` are the name, shape and dtype of each feature."""
    batch = {name: np.full(shape, FILLING.get(name, 0), dtype) for name, shape, dtype in inputs}
    for row, (examples, index) in enumerate(chosen):
        examples.write(index, batch, row)
    return batch


def batches(
    sources: Sequence[tuple[Examples, float]], sizes: Sequence[tuple[int, int]], seed: int
) -> Iterator[tuple[int, Chosen]]:
    """Yields full batches without end, in random order: the number of a kind, and the examples.

    What is left of an epoch comes in the next. The sources are examples, and how often an epoch has
    each of them; the sizes are examples and tokens of each kind, in ascending order of tokens.
    """
    random = np.random.default_rng(seed)
    limits = [length for _, length in sizes]
    waiting: list[list[tuple[Examples, int]]] = [[] for _ in sizes]
    while True:
        for examples, times in sources:
            count = len(examples.lengths)
            part = random.permutation(count)[: round(times % 1 * count)]
            for index in itertools.chain(*[range(count)] * int(times), part):
                kind = bisect.bisect_left(limits, examples.lengths[index])
                waiting[kind].append((examples, index))
        full = []
        for kind, (size, _) in enumerate(sizes):
            random.shuffle(waiting[kind])
            while len(waiting[kind]) >= size:
                full.append((kind, waiting[kind][-size:]))
                del waiting[kind][-size:]
        random.shuffle(full)
        yield from full
