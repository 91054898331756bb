"""The config of a training run, in frozen dataclasses.

`--config.learning_rate=1e-4 --config.encoder.attention.bucket_size=64` changes them.
"""

import dataclasses
import itertools
from typing import Literal

from mate_tf.config import EncoderConfig
from mate_tf.dataclass_json import require, require_fields
from mate_tf.task_configs import (
    ClassificationConfig,
    MaskedLMConfig,
    SpanReadingConfig,
    TableQAConfig,
)
from mate_tf.training.optimizer import SCHEDULES

_AT_LEAST_ONE = (
    *("_steps", "_interval", "_checkpoints", "_size", "_per_loop"),
    *("_examples", "_questions"),
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class TrainingConfig:
    """Options of every training run."""

    num_steps: int  # updates of the weights in all
    learning_rate: float  # the peak; it is reached after `warmup_ratio` of the steps
    schedule: str = "linear"  # how the rate goes on, one of SCHEDULES; this one falls to zero
    # The rate of the pooler and the heads, as a multiple of the encoder's. Use more than 1 for
    # short training from a checkpoint: at the encoder's rate new weights need thousands of steps.
    head_learning_rate_ratio: float = 1.0
    # The same of the learned biases of attention scores, such as TableFormer's. With 100, biases
    # that start at zero matter within hundreds of steps; with weights that are new to tables, 100
    # does harm.
    attention_bias_learning_rate_ratio: float = 1.0
    warmup_ratio: float = 0.1  # share of the steps
    weight_decay_rate: float = 0.01  # per update and unit of learning rate
    # Parts in which a batch is computed one after the other, where it does not fit into memory; the
    # weights are updated once, with the mean gradient.
    gradient_accumulation_steps: int = 1
    # Gradients are scaled down to a global norm of 1, then each value is cut to this size.
    max_gradient_value: float | None = None
    # "mixed_bfloat16" computes in bfloat16 and keeps weights in float32.
    dtype: Literal["float32", "mixed_bfloat16"] = "float32"
    recompute: bool = False  # activations again for the gradients: less memory, more time
    seed: int = 1  # of the weights, the dropout and the order of the examples
    summary_interval: int = 20  # steps between TensorBoard points
    eval_interval: int = 500  # steps between evaluations; there is always one after the last step
    checkpoint_interval: int = 500  # the same; there is also one before each evaluation
    keep_checkpoints: int = 2  # how many of the latest are kept, beside the best one
    # Decay a step of an exponential moving average of the weights, which is then what is evaluated
    # and kept as the best.
    ema_decay: float | None = None
    # Training ends after an evaluation that is no better than the best if the mean loss since the
    # evaluation before it is lower than this.
    early_stopping_loss: float | None = None
    # An evaluation whose score is lower than that of the first weights by this at most is better
    # than theirs if its loss is lower: few questions tell no more.
    start_tolerance: float = 0.0
    # Steps in one call of the accelerator's program, which a TPU needs for its speed; all batches
    # then have one length.
    steps_per_loop: int = 1
    encoder: EncoderConfig
    max_seq_length: int = 512  # tokens in each example of the record files
    # Ascending lengths that batches are padded to; an example goes to the first that holds it,
    # longer ones to `max_seq_length`. A Linformer has none.
    length_buckets: tuple[int, ...] = ()
    batch_size: int = 32  # examples in a batch, over all replicas
    eval_batch_size: int = 32
    skip_corrupt: bool = False  # damaged records, with a warning that counts them
    # Copies of the training tables, with rows and columns in random orders, that epochs take in
    # turn; the original order is among them (TableFormer paper, section 4.3). 0 for none.
    perturbed_copies: int = 0

    def __post_init__(self) -> None:
        counts = [f.name for f in dataclasses.fields(self) if f.name.endswith(_AT_LEAST_ONE)]
        require_fields(self, lambda v: v >= 1, "of at least 1", *counts)
        ratios = "head_learning_rate_ratio", "attention_bias_learning_rate_ratio"
        limits = "max_gradient_value", "early_stopping_loss"
        require_fields(self, lambda v: v > 0.0, "above 0", *ratios, *limits)
        may_be_0 = "learning_rate", "perturbed_copies", "start_tolerance"
        require_fields(self, lambda v: v >= 0.0, "of at least 0", *may_be_0)
        require_fields(self, SCHEDULES.__contains__, f"in {tuple(SCHEDULES)}", "schedule")
        require_fields(self, lambda v: 0.0 <= v <= 1.0, "from 0 to 1", "warmup_ratio")
        require_fields(self, lambda v: 0.0 < v < 1.0, "between 0 and 1", "ema_decay")
        loop = self.steps_per_loop
        intervals = "summary_interval", "eval_interval", "checkpoint_interval"
        # A loop ends at each of them, and would be cut short without a word.
        multiple = f"to be a multiple of steps_per_loop ({loop})"
        require_fields(self, lambda v: v % loop == 0, multiple, *intervals)
        length, buckets = self.max_seq_length, self.length_buckets
        parts = self.gradient_accumulation_steps
        require(
            all(low < high for low, high in itertools.pairwise((0, *buckets, length))),
            f"expected length_buckets to ascend and stay below max_seq_length ({length}), got "
            f"{buckets}",
        )
        require(
            self.steps_per_loop == 1 or not buckets,
            f"expected no length_buckets with steps_per_loop above 1 ({self.steps_per_loop}), "
            f"whose batches all have one length, got {buckets}",
        )
        require(
            self.batch_size % parts == 0,
            f"expected batch_size to be a multiple of gradient_accumulation_steps ({parts}), got "
            f"{self.batch_size}",
        )
        positions, fixed = self.encoder.max_position_embeddings, self.encoder.fixed_length
        require(
            self.encoder.position != "absolute" or length <= positions,
            f"expected max_seq_length of at most {positions} with absolute positions, got "
            f"{length}; use encoder.position=per_cell",
        )
        require(
            fixed is None or (fixed == length and not buckets),
            "expected max_seq_length and no length_buckets for a Linformer's one length, "
            f"encoder.attention.sequence_length ({fixed}), got {length} and {buckets}",
        )

    def record_name(self, split: str) -> str:
        """The name of a split's record files."""
        return split


@dataclasses.dataclass(frozen=True, kw_only=True)
class TableQATrainingConfig(TrainingConfig):
    """Fine-tuning of table question answering; the task is its heads and losses."""

    task: TableQAConfig = dataclasses.field(default_factory=TableQAConfig)
    eval_questions: int | None = None  # of the dev split, from its start; None for all
    # The share of the steps that learn from questions of the kinds that the package's model knows
    # (`known_records`), so that it does not forget them.
    known_share: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        require_fields(self, lambda v: 0.0 <= v < 1.0, "from 0 to below 1", "known_share")


@dataclasses.dataclass(frozen=True, kw_only=True)
class ClassificationTrainingConfig(TrainingConfig):
    """Fine-tuning of a classifier of sequences; the task is its head."""

    task: ClassificationConfig = dataclasses.field(default_factory=ClassificationConfig)


@dataclasses.dataclass(frozen=True, kw_only=True)
class SpanReadingTrainingConfig(TrainingConfig):
    """Fine-tuning of a reader of spans; the task is its head and its loss."""

    task: SpanReadingConfig = dataclasses.field(default_factory=SpanReadingConfig)


@dataclasses.dataclass(frozen=True, kw_only=True)
class MaskedLMTrainingConfig(TrainingConfig):
    """Pre-training, on records of `create_pretraining_data`; the task is what is predicted."""

    task: MaskedLMConfig = dataclasses.field(default_factory=MaskedLMConfig)
    max_seq_length: int = 128
    eval_examples: int | None = None  # of the dev split, from its start; None for all

    def __post_init__(self) -> None:
        super().__post_init__()
        require(
            not self.perturbed_copies,
            f"expected perturbed_copies of 0 in pre-training, got {self.perturbed_copies}; masked "
            "tokens are labelled by their places",
        )

    def record_name(self, split: str) -> str:
        return f"{split}_{self.max_seq_length}"


FinetuningConfig = TableQATrainingConfig | ClassificationTrainingConfig | SpanReadingTrainingConfig
RunConfig = FinetuningConfig | MaskedLMTrainingConfig
