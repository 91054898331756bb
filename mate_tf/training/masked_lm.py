"""Pre-training on a folder of records.

Shapes: B batch, P predictions.
"""

import pathlib
from collections import defaultdict

import numpy as np
import tensorflow as tf

from mate_tf.models.masked_lm import MaskedLanguageModel
from mate_tf.records.batches import read_records
from mate_tf.records.conversion_file import has_conversion, read_conversion
from mate_tf.records.records import name_example
from mate_tf.records.splits import split_files
from mate_tf.training.config import MaskedLMTrainingConfig
from mate_tf.training.distribution import Batch, divided
from mate_tf.training.examples import Evaluation, check_examples, without_texts

_FEATURES = ("masked_lm_positions", "masked_lm_ids", "masked_lm_weights", "is_random_table")
# Of each split and length, since a corpus may take hours to read.
_EXAMPLES_CHECKED = 20_000


def check_data(config: MaskedLMTrainingConfig, data_dir: str | pathlib.Path) -> None:
    """As `check_examples`; ValueError also for records of other lengths or of another task.

    An example that predicts a token that does not exist is refused too.
    """
    if has_conversion(data_dir):
        made = read_conversion(data_dir).pretraining
        if made is None:
            raise ValueError(
                f"expected records to pre-train on in {data_dir}, got those of another task"
            )
        for records in config.record_sets:
            if records.max_seq_length not in made.lengths:
                raise ValueError(
                    f"expected records of {records.max_seq_length} tokens (max_seq_length and "
                    f"length_buckets), got those of {', '.join(map(str, made.lengths))} in "
                    f"{data_dir}; choose lengths among them or make them with --max_seq_lengths"
                )

    def check_example(split: str, example: tf.train.Example, where: str) -> None:
        features = example.features.feature
        num_tokens = sum(features["input_mask"].int64_list.value)
        positions, ids = (
            features[name].int64_list.value for name in ("masked_lm_positions", "masked_lm_ids")
        )
        for name, values, limit in (
            ("masked_lm_positions", positions, num_tokens),
            ("masked_lm_ids", ids, config.encoder.vocab_size),
        ):
            wrong = [value for value in values if not 0 <= value < limit]
            if wrong:
                raise ValueError(
                    f"expected {name} from 0 to {limit - 1}, got {wrong[0]} "
                    f"{name_example(example, where)}"
                )

    check_examples(
        config,
        data_dir,
        "pre-training",
        _FEATURES,
        check_example=check_example,
        at_most=_EXAMPLES_CHECKED,
    )


def dev_evaluation(
    config: MaskedLMTrainingConfig, data_dir: str | pathlib.Path, model: MaskedLanguageModel
) -> Evaluation:
    """An evaluation on the dev split.

    "masked_lm_accuracy" is the share of masked tokens whose first choice is right, and
    "masked_lm_cell_accuracy" that of those in cells. "masked_lm_loss" is the mean cross-entropy.
    "next_sentence_accuracy" is the share of examples where the model tells whether the table was
    drawn at random.
    """

    def predict(batch: Batch) -> tuple[tf.Tensor, ...]:
        outputs = model(*model.model_inputs(batch), training=False)
        losses = model.compute_task_loss(batch, outputs)
        tokens = tf.argmax(outputs["masked_lm_logits"], axis=-1, output_type=tf.int32)  # [B, P]
        of_tables = outputs.get(
            "next_sentence_logits", tf.zeros([tf.shape(tokens)[0], 2])
        )  # [B, 2]
        return tokens, losses["masked_lm_token_loss"], tf.argmax(of_tables, axis=-1)

    on_replicas = divided(predict)

    def evaluate() -> dict[str, float | str]:
        right: defaultdict[str, float] = defaultdict(float)
        total: defaultdict[str, float] = defaultdict(float)
        for records in config.record_sets:
            files = split_files(data_dir, f"dev{records.suffix}")
            examples = read_records(files, config.skip_corrupt)
            if config.eval_examples is not None:
                examples = examples.take(config.eval_examples)
            for batch in examples.batch(records.eval_batch_size):
                tokens, losses, tables = (
                    value.numpy() for value in on_replicas(without_texts(batch))
                )
                weights = batch["masked_lm_weights"].numpy()  # [B, P]
                is_right = weights * (tokens == batch["masked_lm_ids"].numpy())  # [B, P]
                columns = tf.gather(batch["column_ids"], batch["masked_lm_positions"], batch_dims=1)
                in_cell = columns.numpy() > 0  # [B, P]
                for name, chosen in (
                    ("masked_lm_accuracy", np.ones_like(in_cell)),
                    ("masked_lm_cell_accuracy", in_cell),
                ):
                    right[name] += float((is_right * chosen).sum())
                    total[name] += float((weights * chosen).sum())
                right["masked_lm_loss"] += float((losses * weights).sum())
                total["masked_lm_loss"] += float(weights.sum())
                if config.task.next_sentence:
                    labels = batch["is_random_table"].numpy()[:, 0]
                    right["next_sentence_accuracy"] += int((tables == labels).sum())
                    total["next_sentence_accuracy"] += len(labels)
        return {name: right[name] / max(count, 1) for name, count in total.items()}

    return Evaluation(evaluate, "masked_lm_accuracy")
