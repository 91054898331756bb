"""What is drawn of each table to pre-train on."""

import dataclasses
import math

from mate_tf.tables.masked_lm import MaskedLmConfig


@dataclasses.dataclass(frozen=True)
class PretrainingConfig:
    """What is drawn of each table.

    Attributes:
        masked_lm: what an example of the shortest length is like.
        longer_lengths: further lengths, ascending, for which examples are drawn too; they have
            more predictions in proportion.
        dupe_factor: the examples drawn of each table for each length, of other excerpts and masks.
        seed: of all draws.

    Raises:
        ValueError: if the lengths do not ascend or no example is drawn.
    """

    masked_lm: MaskedLmConfig = dataclasses.field(default_factory=MaskedLmConfig)
    longer_lengths: tuple[int, ...] = ()
    dupe_factor: int = 10
    seed: int = 12345

    def __post_init__(self) -> None:
        if list(self.lengths) != sorted(set(self.lengths)):
            raise ValueError(f"expected lengths that ascend, got {list(self.lengths)}")
        if self.dupe_factor < 1:
            raise ValueError(f"expected a dupe_factor of at least 1, got {self.dupe_factor}")

    @property
    def lengths(self) -> tuple[int, ...]:
        """All lengths, the shortest first."""
        return (self.masked_lm.max_seq_length, *self.longer_lengths)

    def of_length(self, length: int) -> MaskedLmConfig:
        """What an example of a length is like."""
        shortest = self.masked_lm
        num_predictions = math.ceil(shortest.max_predictions * length / shortest.max_seq_length)
        return dataclasses.replace(shortest, max_seq_length=length, max_predictions=num_predictions)
