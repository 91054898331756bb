"""Dividing a split's questions by their tables, such as a tenth that a model never trains on.

The part that a table is in follows from its name alone: all questions about a table are in the
same part, whatever the files' order and whoever asks.
"""

import dataclasses
import hashlib
import re
from collections.abc import Sequence

_PART = re.compile(r"([^\s:=,/\\]+)=(\d+)", re.ASCII)


@dataclasses.dataclass(frozen=True)
class Division:
    """A split and the parts that take its place.

    Attributes:
        split: the split.
        parts: names, each with its percentage of the tables; one may be that of the split.

    Raises:
        ValueError: if the percentages are not at least 1 or do not add up to 100, or two parts
            have one name.
    """

    split: str
    parts: tuple[tuple[str, int], ...]

    def __post_init__(self) -> None:
        percentages = [percentage for _, percentage in self.parts]
        if not percentages or min(percentages) < 1 or sum(percentages) != 100:
            raise ValueError(
                f"expected percentages of at least 1 that add up to 100, got {percentages} "
                f"(division of the split {self.split!r})"
            )
        if len(set(self.names)) < len(self.names):
            raise ValueError(
                f"expected parts of different names, got {list(self.names)} "
                f"(division of the split {self.split!r})"
            )

    @classmethod
    def from_text(cls, text: str) -> "Division":
        """Reads a division as the command line has it, "dev:train=72,calibration=8,dev=20".

        Raises:
            ValueError: if it is no such text, and as the constructor.
        """
        split, colon, parts = text.partition(":")
        matches = [_PART.fullmatch(part.strip()) for part in parts.split(",")]
        if not (split and colon and all(matches)):
            raise ValueError(
                f"expected SPLIT:PART=PERCENT,PART=PERCENT,... for a division, got {text!r}"
            )
        return cls(split, tuple((match[1], int(match[2])) for match in matches if match))

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the parts."""
        return tuple(name for name, _ in self.parts)

    def divided(self, splits: Sequence[str]) -> list[str]:
        """The names of splits with the parts in place of the one that is divided.

        Raises:
            ValueError: if that one is not among them, or a part has the name of another.
        """
        if self.split not in splits:
            raise ValueError(
                f"expected a division of one of the splits {list(splits)}, got {self.split!r}"
            )
        others = [name for name in splits if name != self.split]
        if twice := sorted(set(others) & set(self.names)):
            raise ValueError(
                f"expected parts beside the splits {others}, got {twice} "
                f"(division of the split {self.split!r})"
            )
        at = splits.index(self.split)
        return [*splits[:at], *self.names, *splits[at + 1 :]]

    def part_of(self, table_id: str) -> str:
        """The name of the part that a table is in."""
        digest = hashlib.sha256(table_id.encode("utf-8", "surrogatepass")).digest()
        position = int.from_bytes(digest[:8]) % 100
        for name, percentage in self.parts:
            position -= percentage
            if position < 0:
                return name
        raise AssertionError("percentages add up to 100")

    def __str__(self) -> str:
        parts = ",".join(f"{name}={percentage}" for name, percentage in self.parts)
        return f"{self.split}:{parts}"
