"""How a reader of spans scores them and learns: the options of its head and loss."""

import dataclasses
from typing import Literal

from mate_tf.checks import require

SpanKind = Literal["span", "boundary"]


@dataclasses.dataclass(frozen=True)
class SpanReadingConfig:
    """How a reader scores spans and what it learns from.

    Attributes:
        kind: "span" scores a span by the vectors of its first and last token together and learns
            from a softmax over all valid spans; "boundary" learns where spans begin and where they
            end apart, and adds the two scores.
        max_span_length: tokens of the longest span.
        hidden_size: U, of the perceptron that scores a span (kind "span"), with the encoder's
            activation; None for a linear layer alone, as in the published checkpoints.
        num_classes: C, of a classification of the whole input beside the span, such as whether
            there is an answer in it; 0 for none.
        output_dropout: dropout on the sequence output while training.
        count_padding: lets padding take part in the loss of kind "boundary", as the release does.

    Raises:
        ValueError: if a value is out of its range.
    """

    kind: SpanKind = "span"
    max_span_length: int = 10
    hidden_size: int | None = None
    num_classes: int = 0
    output_dropout: float = 0.1
    count_padding: bool = False

    def __post_init__(self) -> None:
        kind, longest, units = self.kind, self.max_span_length, self.hidden_size
        require(kind in ("span", "boundary"), f"expected kind 'span' or 'boundary', got {kind!r}")
        require(longest >= 1, f"expected max_span_length of at least 1, got {longest}")
        require(
            units is None or (kind == "span" and units >= 1),
            f"expected hidden_size of at least 1 with kind 'span', or None, got {units}",
        )
        classes, dropout = self.num_classes, self.output_dropout
        require(
            classes == 0 or classes >= 2, f"expected num_classes of 0 or at least 2, got {classes}"
        )
        require(0 <= dropout < 1, f"expected output_dropout from 0 to below 1, got {dropout}")
