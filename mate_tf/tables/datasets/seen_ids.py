"""Which ids a file had so far, in little memory."""

from collections.abc import Hashable

import numpy as np

_UNSORTED = 4096


class SeenIds:
    """The ids seen so far, eight bytes of memory each: only their 64-bit hashes are kept."""

    def __init__(self) -> None:
        self._recent: set[int] = set()
        self._sorted = np.zeros(0, np.int64)

    def add(self, id_: Hashable) -> bool:
        """Whether it is new."""
        key = hash(id_)
        place = int(np.searchsorted(self._sorted, key))
        if key in self._recent or (place < len(self._sorted) and self._sorted[place] == key):
            return False
        self._recent.add(key)
        if len(self._recent) == _UNSORTED:
            recent = np.fromiter(self._recent, np.int64, _UNSORTED)
            self._sorted = np.sort(np.concatenate([self._sorted, recent]))
            self._recent.clear()
        return True
