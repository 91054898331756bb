"""What a training run is made of: frozen dataclasses."""

import dataclasses
import itertools
from typing import Literal, NamedTuple

from mate_tf.config import EncoderConfig
from mate_tf.models.classification import ClassificationConfig
from mate_tf.models.masked_lm import MaskedLMConfig
from mate_tf.models.span_reading import SpanReadingConfig
from mate_tf.models.table_qa import TableQAConfig

_AT_LEAST_ONE = (
    *("_steps", "_interval", "_checkpoints", "_size", "_patience", "_per_loop"),
    *("_examples", "_questions"),
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class TrainingConfig:
    """What every task's training needs.

    Attributes:
        num_steps: updates of the weights in all.
        learning_rate: its peak; it rises over `warmup_ratio` of the steps, then falls to zero.
        head_learning_rate_ratio: the rate of the pooler and the task's heads, as a multiple of
            the encoder's. Above 1 for short training from a checkpoint: with the encoder's rate
            weights that start anew need thousands of steps.
        attention_bias_learning_rate_ratio: the rate of what is added to the scores of attention,
            TableFormer's relation biases and a learned grammar bias, as a multiple of the
            encoder's. Adam moves each about as far as the sum of all steps' rates, 0.02 in 400
            steps from a peak of 1e-4, and scores are of several units: 100 lets biases that start
            at zero, as TableFormer's, matter within hundreds of steps. With weights that are new to
            tables it does harm.
        warmup_ratio: share of the steps.
        weight_decay_rate: per update and unit of learning rate.
        gradient_accumulation_steps: parts that a batch is computed in, one after the other, where
            it does not fit into memory; the weights are updated once, with the mean gradient.
        max_gradient_norm: the gradients are scaled down to this global norm.
        max_gradient_value: then each of their values is cut to this size; None leaves them.
        dtype: "mixed_bfloat16" computes in bfloat16 and keeps weights in float32.
        recompute: keeps the input of each layer of the encoder alone and computes the rest anew
            for the gradients: less memory, more time, the same gradients.
        seed: of the weights, the dropout and the order of the examples.
        summary_interval: steps between TensorBoard points.
        eval_interval: steps between evaluations; there is one after the last step in any case.
        checkpoint_interval: steps between checkpoints; there is one before each evaluation and
            after the last step too.
        keep_checkpoints: how many of the latest are kept, beside the best one.
        ema_decay: the weights' exponential moving average, with this decay a step, is what is
            evaluated and kept as the best; None for the weights themselves.
        early_stopping_patience: training ends after so many evaluations in a row that are no
            better than the best before them; None for all steps.
        steps_per_loop: steps made in one call of the accelerator's program, as a TPU needs for its
            speed; there has to be one length of batches then.

    Raises:
        ValueError: if a value is out of its range.
    """

    num_steps: int
    learning_rate: float
    head_learning_rate_ratio: float = 1.0
    attention_bias_learning_rate_ratio: float = 1.0
    warmup_ratio: float = 0.1
    weight_decay_rate: float = 0.01
    gradient_accumulation_steps: int = 1
    max_gradient_norm: float = 1.0
    max_gradient_value: float | None = None
    dtype: Literal["float32", "mixed_bfloat16"] = "float32"
    recompute: bool = False
    seed: int = 1
    summary_interval: int = 20
    eval_interval: int = 500
    checkpoint_interval: int = 500
    keep_checkpoints: int = 2
    ema_decay: float | None = None
    early_stopping_patience: int | None = None
    steps_per_loop: int = 1

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if value is not None and field.name.endswith(_AT_LEAST_ONE) and value < 1:
                raise ValueError(f"expected {field.name} of at least 1, got {value}")
        for name in ("head_learning_rate_ratio", "attention_bias_learning_rate_ratio"):
            if getattr(self, name) <= 0.0:
                raise ValueError(f"expected {name} above 0, got {getattr(self, name)}")
        if self.learning_rate < 0.0:
            raise ValueError(f"expected learning_rate of at least 0, got {self.learning_rate}")
        if self.max_gradient_norm <= 0.0:
            raise ValueError(f"expected max_gradient_norm above 0, got {self.max_gradient_norm}")
        if self.max_gradient_value is not None and self.max_gradient_value <= 0.0:
            raise ValueError(
                f"expected max_gradient_value above 0 or None, got {self.max_gradient_value}"
            )
        if not 0.0 <= self.warmup_ratio <= 1.0:
            raise ValueError(f"expected warmup_ratio between 0 and 1, got {self.warmup_ratio}")
        if self.ema_decay is not None and not 0.0 < self.ema_decay < 1.0:
            raise ValueError(
                f"expected ema_decay between 0 and 1, both excluded, or None, got {self.ema_decay}"
            )
        # A loop ends where any of them is due, and would be cut short without a word.
        for name in ("summary_interval", "eval_interval", "checkpoint_interval"):
            if getattr(self, name) % self.steps_per_loop:
                raise ValueError(
                    f"expected {name} to be a multiple of steps_per_loop ({self.steps_per_loop}), "
                    f"got {getattr(self, name)}"
                )


class RecordSet(NamedTuple):
    """Record files of examples of one length.

    Attributes:
        suffix: of the names of its splits: with "_128" they are train_128 and dev_128.
        max_seq_length: tokens in each example.
        length_buckets: lengths below it that batches are cut to.
        batch_size, eval_batch_size: examples in a batch.
    """

    suffix: str
    max_seq_length: int
    length_buckets: tuple[int, ...]
    batch_size: int
    eval_batch_size: int


@dataclasses.dataclass(frozen=True, kw_only=True)
class ExamplesConfig(TrainingConfig):
    """Training of an encoder on record files.

    Attributes:
        encoder: sizes, positions and attention.
        max_seq_length: tokens in each example of the record files.
        length_buckets: lengths, ascending, that batches are padded to; an example goes to the
            first that holds it, longer ones to `max_seq_length`. None for a Linformer, whose
            batches all have its `sequence_length`, which is `max_seq_length`.
        batch_size: examples in a batch, over all replicas.
        eval_batch_size: the same in evaluation.
        skip_corrupt: whether damaged records are passed over, with a warning that counts them;
            otherwise they are an error. It may change when a run goes on, for files are damaged
            meanwhile.
        perturbed_copies: copies of the training tables with their rows and columns in random orders
            that epochs take in turn, the tables as they are among them (TableFormer paper, section
            4.3, which has 1, 2, 4, 8 and 16); 0 for the tables as they are alone.
    """

    encoder: EncoderConfig
    max_seq_length: int = 512
    length_buckets: tuple[int, ...] = ()
    batch_size: int = 32
    eval_batch_size: int = 32
    skip_corrupt: bool = False
    perturbed_copies: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.perturbed_copies < 0:
            raise ValueError(
                f"expected perturbed_copies of at least 0, got {self.perturbed_copies}"
            )
        bounds = (0, *self.length_buckets, self.max_seq_length)
        if any(low >= high for low, high in itertools.pairwise(bounds)):
            raise ValueError(
                f"expected length_buckets to ascend and stay below max_seq_length "
                f"({self.max_seq_length}), got {self.length_buckets}"
            )
        if self.steps_per_loop > 1 and self.length_buckets:
            raise ValueError(
                f"expected no length_buckets with steps_per_loop above 1 ({self.steps_per_loop}), "
                f"whose batches all have one length, got {self.length_buckets}"
            )
        if self.batch_size % self.gradient_accumulation_steps:
            raise ValueError(
                f"expected batch_size to be a multiple of gradient_accumulation_steps "
                f"({self.gradient_accumulation_steps}), got {self.batch_size}"
            )
        positions = self.encoder.max_position_embeddings
        if self.encoder.position == "absolute" and self.max_seq_length > positions:
            raise ValueError(
                f"expected max_seq_length of at most {positions} with absolute positions, got "
                f"{self.max_seq_length}; use encoder.position=per_cell"
            )
        fixed = self.encoder.fixed_length
        if fixed is not None and (fixed != self.max_seq_length or self.length_buckets):
            raise ValueError(
                "expected max_seq_length and no length_buckets for a Linformer's one length, "
                f"encoder.attention.sequence_length ({fixed}), got {self.max_seq_length} and "
                f"{self.length_buckets}"
            )

    @property
    def record_sets(self) -> tuple[RecordSet, ...]:
        """The sets of records that batches are taken from in turn."""
        sizes = self.batch_size, self.eval_batch_size
        return (RecordSet("", self.max_seq_length, self.length_buckets, *sizes),)


@dataclasses.dataclass(frozen=True, kw_only=True)
class TableQATrainingConfig(ExamplesConfig):
    """Fine-tuning of table question answering.

    Attributes:
        task: heads and losses.
        eval_questions: how many questions of the dev split, from its start, are answered at each
            evaluation; None for all.
    """

    task: TableQAConfig = dataclasses.field(default_factory=TableQAConfig)
    eval_questions: int | None = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class ClassificationTrainingConfig(ExamplesConfig):
    """Fine-tuning of a classifier of sequences.

    Attributes:
        task: the head.
    """

    task: ClassificationConfig = dataclasses.field(default_factory=ClassificationConfig)


@dataclasses.dataclass(frozen=True, kw_only=True)
class SpanReadingTrainingConfig(ExamplesConfig):
    """Fine-tuning of a reader of spans.

    Attributes:
        task: the head and its loss.
    """

    task: SpanReadingConfig = dataclasses.field(default_factory=SpanReadingConfig)


@dataclasses.dataclass(frozen=True, kw_only=True)
class MaskedLMTrainingConfig(ExamplesConfig):
    """Pre-training, on records of experiments/create_pretraining_data.py.

    Attributes:
        task: what is predicted.
        length_buckets: here lengths that records of their own are made for, beside those of
            `max_seq_length`. Batches of all lengths take turns; one of a shorter length has as many
            more examples as it is shorter, so that it has as many tokens.
        eval_examples: how many examples of each length of the dev split, from its start, are
            predicted at each evaluation; None for all.
    """

    task: MaskedLMConfig = dataclasses.field(default_factory=MaskedLMConfig)
    max_seq_length: int = 128
    eval_examples: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.perturbed_copies:
            raise ValueError(
                f"expected perturbed_copies of 0 in pre-training, got {self.perturbed_copies}; "
                "masked tokens are labelled by their places"
            )

    @property
    def record_sets(self) -> tuple[RecordSet, ...]:
        sets = []
        for length in (*self.length_buckets, self.max_seq_length):
            times = self.max_seq_length // length
            sizes = self.batch_size * times, self.eval_batch_size * times
            sets.append(RecordSet(f"_{length}", length, (), *sizes))
        return tuple(sets)


FinetuningConfig = TableQATrainingConfig | ClassificationTrainingConfig | SpanReadingTrainingConfig
RunConfig = FinetuningConfig | MaskedLMTrainingConfig
