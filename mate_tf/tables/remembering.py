"""What was made of small tables is remembered, of large ones only the latest."""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import TypeVar

LARGE = 20_000  # cells, or tokens: about a megabyte once they are tokenized
MOST = 200 * LARGE  # of the rest together

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


def remember(
    make: Callable[[Key], Value], size_of: Callable[[Key, Value], int], count: int
) -> Callable[[Key], Value]:
    """As functools.lru_cache, but of the values of a size above 20,000 only the latest is held.

    A cache that counts tables alone may otherwise come to hold gigabytes. One large table is held,
    so that questions about it that follow each other share it; the rest have 4,000,000 cells or
    tokens together at most.

    Args:
        make: what makes a value of its only argument.
        size_of: the size of a key and its value, in cells or tokens.
        count: how many values of at most that size are held.
    """
    small: OrderedDict[Key, Value] = OrderedDict()
    sizes: dict[Key, int] = {}  # of the small ones
    held = 0  # they together
    large: dict[Key, Value] = {}

    def remembered(key: Key) -> Value:
        nonlocal held
        if key in large:
            return large[key]
        if key in small:
            small.move_to_end(key)
            return small[key]
        value = make(key)
        size = size_of(key, value)
        if size > LARGE:
            large.clear()
            large[key] = value
        else:
            small[key], sizes[key] = value, size
            held += size
            while len(small) > count or held > MOST:
                held -= sizes.pop(small.popitem(last=False)[0])
        return value

    return remembered
