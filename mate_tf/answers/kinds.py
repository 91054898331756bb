"""Which kinds of models answer, and how their outputs are read."""

from collections.abc import Callable
from typing import Any, NamedTuple

from mate_tf.answers.decoding import decode_cells
from mate_tf.answers.spans import decode_classes, decode_spans
from mate_tf.task_configs import model_kind


class Decoding(NamedTuple):
    """How the outputs of a kind of model become answers."""

    decode: Callable[..., Any]
    outputs: tuple[str, ...]  # what it reads; a model may lack some of them
    needs_tables: bool = True  # whether it takes no sentence alone


DECODINGS = {
    "table_qa": Decoding(
        decode_cells,
        (
            "token_probabilities",
            "aggregation_logits",
            "column_logits",
            "token_logits",
            "row_scores",
        ),
    ),
    "classification": Decoding(decode_classes, ("class_logits",), needs_tables=False),
    "span_reading": Decoding(decode_spans, ("span_logits", "class_logits")),
}


def answering_kind(config: Any) -> str:
    """The kind of model that has these options; ValueError for one that does not answer."""
    kind = model_kind(config)
    if kind not in DECODINGS:
        raise ValueError(
            f"expected a model that answers ({', '.join(DECODINGS)}), got one for {kind}; "
            "fine-tune it first"
        )
    return kind
