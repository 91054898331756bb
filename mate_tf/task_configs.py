"""The options of tasks, of the heads and losses of each kind of model, without the models.

Shapes: C columns or classes, L longest span, N spans, U hidden units of the head.
"""

import dataclasses
from typing import Any, Literal, get_args

import numpy as np

from mate_tf.dataclass_json import require, require_fields
from mate_tf.tables.operators import OPERATORS, TAPAS_OPERATORS

# Added to the logit of what must never be chosen; finite, so that the gradient is a number.
LOG_ZERO = -10000.0
AverageApproximation = Literal["ratio", "first_order", "second_order"]
SpanKind = Literal["span", "boundary"]


@dataclasses.dataclass(frozen=True)
class TaskConfig:
    """The options of a task's heads and loss; each task has its own."""


@dataclasses.dataclass(frozen=True)
class TableQAConfig(TaskConfig):
    """The heads and losses of table question answering (TAPAS, section 3).

    Names and defaults are those of the TAPAS release, except that a table may have more than 64
    rows and 32 columns.

    Attributes:
        operators: what may be done with the cells, by name, in the order of the head's outputs:
            TAPAS's (NONE, SUM, AVERAGE, COUNT), and perhaps others of OPERATORS behind them. None
            for cell selection alone.
        use_answer_as_supervision: learns from the answer only (weak supervision, as for WTQ), not
            from `aggregation_function_id` and the labelled cells. Examples whose
            `aggregation_is_known` is 1 are learned from both all the same.
        plain_answers: applies rules of decoding that need no training. A COUNT of one cell that is
            a number is that number; one cell is selected unless the words ask for several. With
            all operators that cell is in the row that the words name (answers/views.py). With a
            calibration, a doubtful question is asked again of the table with rows and columns
            exchanged (answers/transposed.py).
        absent_threshold: ABSENT is the answer where it is more probable.
        select_one_column: chooses a column first and then cells in it.
        allow_empty_column_selection: whether no column may be chosen.
        cell_cross_entropy: chooses one of all cells by a softmax, instead of deciding on each
            column, cell and token (MATE, section 4.1). There must be no `select_one_column`, no
            aggregation and no histogram row.
        init_cell_selection_weights_to_zero: starts with all cells equally likely.
        temperature: the token logits are divided by it.
        positive_weight: how much more a token of the answer counts; without one column only.
        cell_select_pref: up to this probability of an aggregation, a numeric answer that is in the
            table is selected, not computed.
        mask_examples_without_labels: learns no selection from an example without a labelled cell,
            instead of learning to select nothing. Always so with `cell_cross_entropy`.
        cell_loss_importance: weight of the cell selection loss; 0 for the release's
            disable_per_token_loss.
        answer_loss_cutoff: examples with a larger loss on their number are left out of the
            aggregation losses; None keeps all.
        huber_loss_delta: the error of a number beyond which its loss is linear.
        use_normalized_answer_loss: measures that error relative to the larger number.
        average_approximation_function: "ratio", "first_order" or "second_order".
        output_dropout: dropout on the sequence output in training.
        max_num_columns: C, with column 0 of the question; larger column ids count as the last.
        max_num_rows: the same for rows; None for any number. The release has 32 and 64.
        count_padding: lets padding count as question in the means, as the release does.

    Raises:
        ValueError: if a value is out of its range, or two options contradict each other.
    """

    operators: tuple[str, ...] = TAPAS_OPERATORS
    use_answer_as_supervision: bool = True
    select_one_column: bool = True
    allow_empty_column_selection: bool = False
    cell_cross_entropy: bool = False
    init_cell_selection_weights_to_zero: bool = False
    temperature: float = 1.0
    positive_weight: float = 10.0
    cell_select_pref: float = 0.5
    mask_examples_without_labels: bool = False
    cell_loss_importance: float = 1.0
    answer_loss_cutoff: float | None = 100.0
    huber_loss_delta: float = 25.0
    use_normalized_answer_loss: bool = False
    average_approximation_function: AverageApproximation = "ratio"
    output_dropout: float = 0.1
    max_num_columns: int = 512
    max_num_rows: int | None = None
    count_padding: bool = False
    plain_answers: bool = False
    absent_threshold: float = 0.5

    def __post_init__(self) -> None:
        choices, operators = get_args(AverageApproximation), self.operators
        for holds, expected, names in (
            (lambda v: v > 0, "above 0", "temperature huber_loss_delta"),
            (lambda v: v > 0, "above 0 or None", "answer_loss_cutoff"),
            (lambda v: 0 <= v <= 1, "from 0 to 1", "absent_threshold cell_select_pref"),
            (lambda v: v >= 0, "of at least 0", "positive_weight cell_loss_importance"),
            (lambda v: 0 <= v < 1, "from 0 to below 1", "output_dropout"),
            (lambda v: v in choices, f"in {choices}", "average_approximation_function"),
            (lambda v: v >= 2, "of at least 2", "max_num_columns"),
            (lambda v: v >= 2, "of at least 2 or None", "max_num_rows"),
        ):
            require_fields(self, holds, expected, *names.split())
        unknown = [name for name in operators if name not in OPERATORS]
        require(not unknown, f"expected operators among {', '.join(OPERATORS)}, got {unknown}")
        require(
            not operators
            or (operators[:4] == TAPAS_OPERATORS and len(set(operators)) == len(operators)),
            f"expected operators that begin with {', '.join(TAPAS_OPERATORS)} and none twice, or "
            f"none at all, got {operators}",
        )
        if self.cell_cross_entropy:
            given = "with cell_cross_entropy, got"
            require(not self.select_one_column, f"expected no select_one_column {given} True")
            require(not operators, f"expected no operators {given} {operators}")

    @property
    def needs_labels(self) -> bool:
        """Whether each example must have a labelled cell; without one its loss is about 10000."""
        return (
            self.select_one_column
            and self.cell_loss_importance > 0.0
            and not self.allow_empty_column_selection
            and not self.mask_examples_without_labels
        )

    @property
    def selects_rows(self) -> bool:
        """Whether a row is chosen for the operators along one, as a column for the others."""
        return self.select_one_column and any(OPERATORS[name].along_row for name in self.operators)

    @property
    def is_weakly_supervised(self) -> bool:
        """Whether the answer decides if an example selects or computes."""
        return bool(self.operators) and self.use_answer_as_supervision


@dataclasses.dataclass(frozen=True)
class ClassificationConfig(TaskConfig):
    """The head of a classifier, and its loss. ValueError if a value is out of its range.

    Attributes:
        num_classes: C.
        output_dropout: dropout on the pooled output in training.
        class_names: their names in answers, C or none, such as TabFact's "refuted", "entailed".
    """

    num_classes: int = 2
    output_dropout: float = 0.1
    class_names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        require_fields(self, lambda v: v >= 2, "of at least 2", "num_classes")
        require_fields(self, lambda v: 0 <= v < 1, "from 0 to below 1", "output_dropout")
        names = self.class_names
        require(
            len(names) in (0, self.num_classes),
            f"expected {self.num_classes} class_names (num_classes) or none, got {names}",
        )
        require(
            len(set(names)) == len(names) and "" not in names,
            f"expected class_names that tell classes apart, got {names}",
        )


@dataclasses.dataclass(frozen=True)
class SpanReadingConfig(TaskConfig):
    """How a reader scores spans and what it learns from. ValueError if a value is out of its range.

    Attributes:
        kind: "span" scores the vectors of a span's first and last token together, and learns from a
            softmax over all valid spans; "boundary" learns separately where spans begin and end,
            and adds the two scores.
        max_span_length: L, tokens of the longest span.
        hidden_size: U, of the perceptron that scores a span (kind "span"), with the encoder's
            activation; None for a linear layer only, as in the published checkpoints.
        num_classes: C, of a classification of the whole input beside the span, such as whether it
            holds an answer; 0 for none.
        output_dropout: dropout on the sequence output in training.
        count_padding: lets padding take part in the loss of kind "boundary", as the release does.
    """

    kind: SpanKind = "span"
    max_span_length: int = 10
    hidden_size: int | None = None
    num_classes: int = 0
    output_dropout: float = 0.1
    count_padding: bool = False

    def __post_init__(self) -> None:
        kind, units = self.kind, self.hidden_size
        require(kind in ("span", "boundary"), f"expected kind 'span' or 'boundary', got {kind!r}")
        require(
            units is None or (kind == "span" and units >= 1),
            f"expected hidden_size of at least 1 with kind 'span', or None, got {units}",
        )
        require_fields(self, lambda v: v >= 1, "of at least 1", "max_span_length")
        require_fields(self, lambda v: v == 0 or v >= 2, "of 0 or at least 2", "num_classes")
        require_fields(self, lambda v: 0 <= v < 1, "from 0 to below 1", "output_dropout")


@dataclasses.dataclass(frozen=True)
class MaskedLMConfig(TaskConfig):
    """The options of pre-training.

    Attributes:
        next_sentence: whether the model also tells tables drawn at random from those that belong to
            the text, as BERT predicts the next sentence.
    """

    next_sentence: bool = True


# By the kind that configs and exported folders name.
TASK_CONFIGS: dict[str, type[TaskConfig]] = {
    "table_qa": TableQAConfig,
    "classification": ClassificationConfig,
    "span_reading": SpanReadingConfig,
    "masked_lm": MaskedLMConfig,
}


def model_kind(config: Any) -> str:
    """The kind of model that has these options; ValueError where there is none."""
    for kind, config_class in TASK_CONFIGS.items():
        if type(config) is config_class:
            return kind
    raise ValueError(
        f"expected the options of a model ({', '.join(TASK_CONFIGS)}), got {type(config).__name__}"
    )


def span_bounds(length: int, max_span_length: int) -> tuple[np.ndarray, np.ndarray]:
    """The first and the last token of each span, int32 [N] each, in a sequence of some length."""
    offsets = np.arange(min(max_span_length, length), dtype=np.int32)
    starts = np.concatenate([np.arange(length - offset, dtype=np.int32) for offset in offsets])
    return starts, starts + np.repeat(offsets, length - offsets)
