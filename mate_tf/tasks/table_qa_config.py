"""What table question answering learns and how: the options of its heads and losses."""

import dataclasses
from collections.abc import Mapping
from typing import Any, get_args

from mate_tf.tasks import aggregation


@dataclasses.dataclass(frozen=True)
class TableQAConfig:
    """What the heads and losses of table question answering do (TAPAS, section 3).

    The names are those of the TAPAS release; the defaults are its flags', except that a table may
    have more than 64 rows and 32 columns.

    Attributes:
        num_aggregation_labels: 4 (NONE, SUM, AVERAGE, COUNT), or 0 for cell selection alone.
        use_answer_as_supervision: learns from the answer alone (weak supervision, as for WTQ);
            otherwise from `aggregation_function_id` and the labelled cells.
        select_one_column: chooses a column first and then cells in it.
        allow_empty_column_selection: whether no column may be chosen.
        cell_cross_entropy: chooses one cell out of all in the table, by a softmax over them in
            place of decisions on each column, cell and token (MATE, section 4.1). Needs no
            `select_one_column` and no aggregation, and examples without a histogram row.
        cell_cross_entropy_hard_em: of several correct cells learns the one that the model takes
            for the most probable, not each as far as it believes in it.
        average_logits_per_cell: gives the tokens of a cell one logit.
        init_cell_selection_weights_to_zero: starts with all cells equally likely.
        temperature: the token logits are divided by it.
        agg_temperature: the same for SUM, AVERAGE and COUNT in the expected result.
        positive_weight: how much more a token of the answer counts; without one column only.
        cell_select_pref: a numeric answer that is in the table is selected, not computed, up to
            this probability of an aggregation.
        use_gumbel_for_cells: expects the result, while training, of tokens drawn by the binary
            concrete distribution of `temperature`, which is the Gumbel-softmax of two choices.
        use_gumbel_for_agg: the same of a function drawn by the Gumbel-softmax of `agg_temperature`.
        mask_examples_without_labels: learns no selection from an example without a labelled cell,
            otherwise to select nothing. With `cell_cross_entropy` it is always so.
        cell_loss_importance: weight of the cell selection loss; 0 for the release's
            disable_per_token_loss.
        aggregation_loss_importance: weight of the aggregation loss.
        answer_loss_importance: weight of the loss on the expected number.
        answer_loss_cutoff: an example with a larger loss on its number is left out of the
            aggregation losses; None keeps all.
        huber_loss_delta: the error of a number beyond which its loss is linear.
        use_normalized_answer_loss: measures that error relative to the larger number.
        average_approximation_function: "ratio", "first_order" or "second_order".
        output_dropout: dropout on the sequence output while training.
        max_num_columns: C, with column 0 of the question; column ids beyond count as the last.
        max_num_rows: the same for rows, None for any number. The release has 32 and 64.
        count_padding: lets padding count as question in the means, as the release does.

    Raises:
        ValueError: if a value is out of its range, or two options contradict each other.
    """

    num_aggregation_labels: int = 4
    use_answer_as_supervision: bool = True
    select_one_column: bool = True
    allow_empty_column_selection: bool = False
    cell_cross_entropy: bool = False
    cell_cross_entropy_hard_em: bool = False
    average_logits_per_cell: bool = False
    init_cell_selection_weights_to_zero: bool = False
    temperature: float = 1.0
    agg_temperature: float = 1.0
    positive_weight: float = 10.0
    cell_select_pref: float = 0.5
    use_gumbel_for_cells: bool = False
    use_gumbel_for_agg: bool = False
    mask_examples_without_labels: bool = False
    cell_loss_importance: float = 1.0
    aggregation_loss_importance: float = 1.0
    answer_loss_importance: float = 1.0
    answer_loss_cutoff: float | None = 100.0
    huber_loss_delta: float = 25.0
    use_normalized_answer_loss: bool = False
    average_approximation_function: aggregation.AverageApproximation = "ratio"
    output_dropout: float = 0.1
    max_num_columns: int = 512
    max_num_rows: int | None = None
    count_padding: bool = False

    def __post_init__(self) -> None:
        for name in ("temperature", "agg_temperature", "huber_loss_delta"):
            _require(getattr(self, name) > 0, f"{name} above 0", getattr(self, name))
        for name in (
            "positive_weight",
            "cell_loss_importance",
            "aggregation_loss_importance",
            "answer_loss_importance",
        ):
            _require(getattr(self, name) >= 0, f"{name} of at least 0", getattr(self, name))
        preference = self.cell_select_pref
        _require(0 <= preference <= 1, "cell_select_pref from 0 to 1", preference)
        cutoff = self.answer_loss_cutoff
        _require(cutoff is None or cutoff > 0, "answer_loss_cutoff above 0 or None", cutoff)
        choices = get_args(aggregation.AverageApproximation)
        approximation = self.average_approximation_function
        _require(
            approximation in choices, f"average_approximation_function in {choices}", approximation
        )
        labels = self.num_aggregation_labels
        _require(labels in (0, 4), "num_aggregation_labels of 0 or 4", labels)
        _require(
            0 <= self.output_dropout < 1, "output_dropout from 0 to below 1", self.output_dropout
        )
        _require(self.max_num_columns >= 2, "max_num_columns of at least 2", self.max_num_columns)
        rows = self.max_num_rows
        _require(rows is None or rows >= 2, "max_num_rows of at least 2 or None", rows)
        if self.cell_cross_entropy:
            reason = "with cell_cross_entropy"
            _require(not self.select_one_column, f"no select_one_column {reason}", True)
            _require(labels == 0, f"num_aggregation_labels of 0 {reason}", labels)
        if self.cell_cross_entropy_hard_em:
            reason = "cell_cross_entropy with cell_cross_entropy_hard_em"
            _require(self.cell_cross_entropy, reason, False)
        for name in ("use_gumbel_for_cells", "use_gumbel_for_agg"):
            if getattr(self, name):
                reason = f"aggregation and use_answer_as_supervision with {name}"
                _require(self.is_weakly_supervised, reason, False)

    @property
    def needs_labels(self) -> bool:
        """Whether cells cannot be learned from an example without a labelled one.

        Its column is the empty one, which has a loss of about 10000 where it may not be chosen.
        """
        return (
            self.select_one_column
            and self.cell_loss_importance > 0.0
            and not self.allow_empty_column_selection
            and not self.mask_examples_without_labels
        )

    @property
    def is_weakly_supervised(self) -> bool:
        """Whether each example shows by its answer if it selects or computes."""
        return self.num_aggregation_labels > 0 and self.use_answer_as_supervision

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON and for Keras's get_config."""
        return dataclasses.asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "TableQAConfig":
        """The inverse of to_dict; an unknown key is an error that lists the known ones."""
        known = {field.name for field in dataclasses.fields(cls)}
        unknown = sorted(set(values) - known)
        if unknown:
            raise ValueError(f"unknown task config keys {unknown}; known are {sorted(known)}")
        return cls(**values)


def _require(condition: bool, expected: str, got: Any) -> None:
    if not condition:
        raise ValueError(f"expected {expected}, got {got!r}")
