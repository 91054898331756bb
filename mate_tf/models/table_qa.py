"""Answering questions from a table: encoder, cell selection and aggregation in one model.

Shapes: B batch, S sequence, D hidden, C columns, A aggregations.
"""

from collections.abc import Mapping, Sequence

import keras
import tensorflow as tf

from mate_tf.features.token_features import TokenFeatures
from mate_tf.models import cell_selection
from mate_tf.models.encoder_task import EncoderTask, add_linear, add_pooled_head, pooled_logits
from mate_tf.tables.operators import ABSENT, OPERATORS, operators_by_id
from mate_tf.task_configs import TableQAConfig

_MOST_ROWS = 512  # that the loss tells apart; later ones count as the last


@keras.saving.register_keras_serializable(package="mate_tf")
class TableQuestionAnswering(EncoderTask):
    """Finds the cells that answer a question and what to compute from them.

    Call it with TokenFeatures of int32 [B, S]; it returns a dict of float32 tensors:

        token_logits [B, S]: the score of each token, divided by the temperature.
        column_logits [B, C]: with `select_one_column`.
        row_scores [B, S]: the score of each token for its row; with operators along a row.
        selection_logits [B, S]: the decision on each token; with `select_one_column` averaged over
            cells and without the other columns; with `cell_cross_entropy` the log-probability of
            its cell.
        token_probabilities [B, S]: their sigmoid, 0 for padding; with `cell_cross_entropy` the
            probability of the token's cell, 0 outside of the table's body.
        aggregation_logits [B, A]: with `operators`.
    """

    config_class = TableQAConfig
    task_config: TableQAConfig

    def make_layers(self) -> None:
        super().make_layers()
        config = self.task_config
        self.cell_selection = CellSelectionHead(
            config.select_one_column,
            config.init_cell_selection_weights_to_zero,
            config.selects_rows,
            name="cell_selection",
        )
        self.aggregation = None
        if config.operators:
            self.aggregation = AggregationHead(len(config.operators), name="aggregation")

    def make_weights(self) -> None:
        hidden_size = self.encoder_config.hidden_size
        self.cell_selection.build((None, None, hidden_size))
        if self.aggregation is not None:
            self.aggregation.build((None, hidden_size))

    def call(self, features: TokenFeatures, training: bool = False) -> dict[str, tf.Tensor]:
        features = TokenFeatures.of(features)
        config = self.task_config
        encoded = self.encoder(features, training=training)
        sequence_output = self.dropout(encoded.sequence_output, training=training)  # [B, S, D]
        token_scores, column_scores, row_scores = self.cell_selection(sequence_output)  # [B, S]
        cells = self._cells(features)

        token_logits = token_scores / config.temperature
        outputs = {"token_logits": token_logits}
        if row_scores is not None:
            outputs["row_scores"] = row_scores
        if config.select_one_column:
            columns = cell_selection.column_logits(
                column_scores, cells, config.max_num_columns, config.allow_empty_column_selection
            )
            outputs["column_logits"] = columns  # [B, C]
            logits = cell_selection.select_in_best_column(token_logits, columns, cells)
        elif config.cell_cross_entropy:
            log_cells = cell_selection.log_cell_probabilities(token_logits, cells)  # [B, K]
            logits = cell_selection.to_tokens(log_cells, cells)
        else:
            logits = token_logits
        outputs["selection_logits"] = logits
        mask = tf.cast(features.input_mask, tf.float32)
        probabilities = tf.exp(logits) if config.cell_cross_entropy else tf.sigmoid(logits)
        outputs["token_probabilities"] = probabilities * mask  # [B, S]
        if self.aggregation is not None:
            outputs["aggregation_logits"] = self.aggregation(encoded.pooled_output)
        return outputs

    def compute_task_loss(
        self, batch: Mapping[str, tf.Tensor], outputs: Mapping[str, tf.Tensor]
    ) -> dict[str, tf.Tensor]:
        """The loss, with all that it is made of.

        A batch has the token features and label_ids [B, S]; with aggregation also
        aggregation_function_id [B, 1] or, learning from answers, answer [B, 1], numeric_values and
        numeric_values_scale [B, S], which may be NaN, and perhaps aggregation_is_known [B, 1].

        Returns:
            "loss", the mean over the batch of "example_loss" [B]; "selection_loss", times its
            importance, "aggregation_loss" and "answer_loss" [B], each before masking; when learning
            from answers also "aggregate_mask", "large_answer_loss_mask" and
            "expected_result" [B].
        """
        config = self.task_config
        example_loss = config.cell_loss_importance * self._selection_loss(batch, outputs)
        losses = {"selection_loss": example_loss}
        if config.is_weakly_supervised:
            losses |= self._weak_aggregation_losses(batch, outputs)
            weak_loss = example_loss * (1.0 - losses["aggregate_mask"])
            computed = losses["aggregation_loss"] + losses["answer_loss"]
            is_kept = losses["large_answer_loss_mask"] > 0
            weak_loss += tf.where(is_kept, computed, 0.0)  # the others may be infinite
            if "aggregation_is_known" in batch:
                is_known = tf.reshape(batch["aggregation_is_known"], [-1]) > 0
                known_loss = example_loss + self._known_aggregation_loss(batch, outputs)
                weak_loss = tf.where(is_known, known_loss, weak_loss)
            example_loss = weak_loss
        elif config.operators:
            losses["aggregation_loss"] = self._known_aggregation_loss(batch, outputs)
            example_loss += losses["aggregation_loss"]
        return {"loss": tf.reduce_mean(example_loss), "example_loss": example_loss} | losses

    def _cells(self, features: TokenFeatures) -> cell_selection.Cells:
        config = self.task_config
        return cell_selection.group_cells(
            features.column_ids,
            features.row_ids,
            features.input_mask,
            max_num_columns=config.max_num_columns,
            max_num_rows=config.max_num_rows,
            count_padding=config.count_padding,
        )

    def _selection_loss(self, batch, outputs):
        config, labels = self.task_config, batch["label_ids"]
        if config.cell_cross_entropy:
            cells = self._cells(TokenFeatures.from_dict(batch))
            log_cells = cell_selection.log_cell_probabilities(outputs["token_logits"], cells)
            return cell_selection.cell_cross_entropy_loss(log_cells, labels, cells)
        if config.select_one_column:
            cells = self._cells(TokenFeatures.from_dict(batch))
            logits = outputs["token_logits"], outputs["column_logits"]
            loss = cell_selection.column_selection_loss(*logits, labels, cells)
        else:
            loss = cell_selection.token_selection_loss(
                outputs["selection_logits"], labels, batch["input_mask"], config.positive_weight
            )
        if config.mask_examples_without_labels:
            loss = tf.where(tf.reduce_any(labels > 0, axis=1), loss, 0.0)
        operators = (OPERATORS[name] for name in config.operators)
        has_others = any(one.along_row or not one.needs_cells for one in operators)
        if has_others and "aggregation_function_id" in batch:
            loss = self._loss_by_operator(batch, outputs, loss)
        return loss

    def _loss_by_operator(self, batch, outputs, loss):
        """The selection loss [B], other than in a column for some operators.

        ABSENT selects nothing. Along a row it is the loss of the row and the cells in it. A NO
        without cells learns that none is selected; for a YES without cells they are unknown.
        """
        operators, labels = self.task_config.operators, batch["label_ids"]
        index = tf.maximum(known_operators(operators, batch), 0)  # [B]
        token_logits, features = outputs["token_logits"], TokenFeatures.from_dict(batch)

        def is_one_of(*names: str) -> tf.Tensor:
            return tf.gather([name in names for name in operators], index)  # [B]

        if self.task_config.selects_rows:
            rows = cell_selection.group_cells(
                features.row_ids, features.column_ids, features.input_mask, _MOST_ROWS
            )
            row_logits = cell_selection.column_logits(outputs["row_scores"], rows, _MOST_ROWS)
            row_loss = cell_selection.column_selection_loss(token_logits, row_logits, labels, rows)
            along_row = (name for name in operators if OPERATORS[name].along_row)
            loss = tf.where(is_one_of(*along_row), row_loss, loss)
        has_none = ~tf.reduce_any(labels > 0, axis=1)
        none_loss = cell_selection.no_selection_loss(token_logits, self._cells(features))
        loss = tf.where(has_none & is_one_of("NO"), none_loss, loss)
        return tf.where((has_none & is_one_of("YES")) | is_one_of(ABSENT), 0.0, loss)

    def _known_aggregation_loss(self, batch, outputs):
        return tf.nn.sparse_softmax_cross_entropy_with_logits(
            known_operators(self.task_config.operators, batch), outputs["aggregation_logits"]
        )

    def _weak_aggregation_losses(self, batch, outputs):
        config = self.task_config
        logits = outputs["aggregation_logits"]  # [B, A]
        answer = tf.reshape(batch["answer"], [-1])  # [B]
        computed = cell_selection.needs_aggregation(
            logits, answer, batch["label_ids"], config.cell_select_pref
        )
        # Selected cells mean NONE; a computed answer leaves the function open.
        none = tf.nn.sparse_softmax_cross_entropy_with_logits(
            tf.zeros_like(computed, tf.int32), logits
        )
        some = -cell_selection.log_aggregation_probability(logits)
        result = cell_selection.expected_result(
            tf.sigmoid(outputs["selection_logits"]),
            batch["numeric_values"],
            batch["numeric_values_scale"],
            batch["row_ids"],
            logits,
            config.average_approximation_function,
        )
        error = cell_selection.answer_loss(
            result, answer, computed, config.huber_loss_delta, config.use_normalized_answer_loss
        )
        cutoff = config.answer_loss_cutoff
        kept = tf.ones_like(error) if cutoff is None else tf.cast(error <= cutoff, tf.float32)
        return {
            "aggregate_mask": computed,
            "aggregation_loss": none * (1.0 - computed) + some * computed,
            "expected_result": result,
            "answer_loss": error,
            "large_answer_loss_mask": kept,
        }


def known_operators(operators: Sequence[str], batch: Mapping[str, tf.Tensor]) -> tf.Tensor:
    """The indices of aggregation_function_id [B, 1] among operators: int32 [B], else -1."""
    indices = [operators.index(n) if n in operators else -1 for n in operators_by_id()]
    return tf.gather(tf.constant(indices), tf.reshape(batch["aggregation_function_id"], [-1]))


class CellSelectionHead(keras.layers.Layer):
    """Scores each token for its cell and for its column, in float32 whatever the encoder uses.

    From the sequence output [B, S, D] to the token scores [B, S]; with `select_one_column` the
    column scores [B, S], otherwise None; and with `select_one_row` the row scores [B, S]. The
    weights are named as in the original's checkpoints, which have none for rows.
    """

    def __init__(
        self,
        select_one_column: bool = True,
        initialize_to_zero: bool = False,
        select_one_row: bool = False,
        name: str | None = None,
    ) -> None:
        super().__init__(dtype="float32", name=name)
        self.scored = {
            "output": True,
            "column_output": select_one_column,
            "row_output": select_one_row,
        }
        self.initialize_to_zero = initialize_to_zero

    def build(self, input_shape) -> None:
        normal = keras.initializers.TruncatedNormal(stddev=0.02)
        initializer = "zeros" if self.initialize_to_zero else normal
        for name, is_scored in self.scored.items():
            if is_scored:
                add_linear(self, name, (input_shape[-1],), initializer)

    def call(self, sequence_output):
        def scores(name: str) -> tf.Tensor | None:
            if not self.scored[name]:
                return None
            weights, bias = getattr(self, f"{name}_weights"), getattr(self, f"{name}_bias")
            return tf.linalg.matvec(sequence_output, weights) + bias  # [B, S]

        return tuple(map(scores, self.scored))


class AggregationHead(keras.layers.Layer):
    """Logits of the aggregations, float32 [B, A], from the pooled output [B, D]."""

    def __init__(self, num_operators: int, name: str | None = None) -> None:
        super().__init__(dtype="float32", name=name)
        self.num_operators = num_operators

    def build(self, input_shape) -> None:
        self.output_weights_agg, self.output_bias_agg = add_pooled_head(
            self, (self.num_operators, input_shape[-1]), "output_weights_agg", "output_bias_agg"
        )

    def call(self, pooled_output):
        return pooled_logits(pooled_output, self.output_weights_agg, self.output_bias_agg)
