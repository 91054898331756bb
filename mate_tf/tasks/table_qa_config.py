"""What table question answering learns and how: the options of its heads and losses."""

import dataclasses
from typing import get_args

from mate_tf.checks import require
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
            value = getattr(self, name)
            require(value > 0, f"expected {name} above 0, got {value}")
        for name in (
            "positive_weight",
            "cell_loss_importance",
            "aggregation_loss_importance",
            "answer_loss_importance",
        ):
            value = getattr(self, name)
            require(value >= 0, f"expected {name} of at least 0, got {value}")
        preference = self.cell_select_pref
        require(0 <= preference <= 1, f"expected cell_select_pref from 0 to 1, got {preference}")
        cutoff = self.answer_loss_cutoff
        require(
            cutoff is None or cutoff > 0,
            f"expected answer_loss_cutoff above 0 or None, got {cutoff}",
        )
        choices = get_args(aggregation.AverageApproximation)
        approximation = self.average_approximation_function
        require(
            approximation in choices,
            f"expected average_approximation_function in {choices}, got {approximation!r}",
        )
        labels = self.num_aggregation_labels
        require(labels in (0, 4), f"expected num_aggregation_labels of 0 or 4, got {labels}")
        dropout = self.output_dropout
        require(0 <= dropout < 1, f"expected output_dropout from 0 to below 1, got {dropout}")
        columns, rows = self.max_num_columns, self.max_num_rows
        require(columns >= 2, f"expected max_num_columns of at least 2, got {columns}")
        require(
            rows is None or rows >= 2, f"expected max_num_rows of at least 2 or None, got {rows}"
        )
        if self.cell_cross_entropy:
            require(
                not self.select_one_column,
                "expected no select_one_column with cell_cross_entropy, got True",
            )
            require(
                labels == 0,
                f"expected num_aggregation_labels of 0 with cell_cross_entropy, got {labels}",
            )
        require(
            self.cell_cross_entropy or not self.cell_cross_entropy_hard_em,
            "expected cell_cross_entropy with cell_cross_entropy_hard_em, got False",
        )
        for name in ("use_gumbel_for_cells", "use_gumbel_for_agg"):
            require(
                self.is_weakly_supervised or not getattr(self, name),
                f"expected aggregation and use_answer_as_supervision with {name}, got False",
            )

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
