"""What a PointR is made of: frozen dataclasses."""

import dataclasses
from typing import Literal

from mate_tf.dataclass_json import require
from mate_tf.training.config import SpanReadingTrainingConfig, TableQATrainingConfig

Evidence = Literal["both", "table", "passages"]


@dataclasses.dataclass(frozen=True)
class PointingInputs:
    """What the pointer sees of a table and its passages, and which questions teach it.

    Attributes:
        evidence: "both", or one of the paper's baselines (table 5): "table" knows no passages,
            "passages" knows them alone, one a row, without the table that links to them.
        num_sentences: of all passages, how many that are most like the question are put into the
            cells that link to them; the paper's k.
        with_titles: whether a passage's title precedes its sentences.
        discard_ambiguous: whether training leaves out questions whose answer is in several cells
            (table 6, "- ambiguous").

    Raises:
        ValueError: if num_sentences is negative.
    """

    evidence: Evidence = "both"
    num_sentences: int = 5
    with_titles: bool = False
    discard_ambiguous: bool = False

    def __post_init__(self) -> None:
        require(
            self.evidence in ("both", "table", "passages"),
            f"expected evidence 'both', 'table' or 'passages', got {self.evidence!r}",
        )
        require(
            self.num_sentences >= 0,
            f"expected num_sentences of at least 0, got {self.num_sentences}",
        )


@dataclasses.dataclass(frozen=True, kw_only=True)
class PointRConfig:
    """Both stages.

    Attributes:
        point: the training of the pointer, which selects the cell that holds the answer.
        read: that of the reader, which reads the answer in that cell and its passages.
        inputs: what the pointer sees.
    """

    point: TableQATrainingConfig
    read: SpanReadingTrainingConfig
    inputs: PointingInputs = dataclasses.field(default_factory=PointingInputs)
