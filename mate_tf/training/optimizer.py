"""BERT's AdamW and its learning rate, as Keras 3 optimizer and schedule."""

import contextlib
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import keras
import tensorflow as tf

from mate_tf.private_apis import ChangesSummedGradients, moving_averages, variable_index

# Layer normalisation and everything named a bias: also the heads' output biases and TableFormer's
# relation biases.
NOT_DECAYED = "LayerNorm|layer_norm|bias"
# The encoder without its pooler, which pre-training on sentences leaves unfit for tables.
BODY = r"(^|/)encoder/(embedding|layer_\d+)/"
# Learned weights that are added to attention scores.
ATTENTION_BIAS = r"(^|/)relative_bias_table$"
# Of the optimizer, and of a training's config.
OPTIONS = (
    *("weight_decay_rate", "max_gradient_value", "head_learning_rate_ratio"),
    *("attention_bias_learning_rate_ratio", "ema_decay"),
)
_BETA_1, _BETA_2, _EPSILON = 0.9, 0.999, 1e-6


@keras.saving.register_keras_serializable("mate_tf")
class WarmupLinearDecay(keras.optimizers.schedules.LearningRateSchedule):
    """A rate that rises linearly over the first steps, then falls linearly to zero.

    The update after k others has the peak times (k+1) / warmup_steps while k+1 < warmup_steps, and
    times 1 - (k+1) / num_steps from then on, as in BERT's published code.
    """

    def __init__(self, peak: float, num_steps: int, warmup_steps: int = 0):
        if not 0 <= warmup_steps <= num_steps:
            raise ValueError(
                f"expected warmup_steps between 0 and num_steps ({num_steps}), got {warmup_steps}"
            )
        self.peak = peak
        self.num_steps = num_steps
        self.warmup_steps = warmup_steps

    def __call__(self, step: Any) -> tf.Tensor:
        count = tf.cast(tf.convert_to_tensor(step), tf.float32) + 1.0
        rising = count / float(max(self.warmup_steps, 1))
        falling = 1.0 - tf.minimum(count / float(self.num_steps), 1.0)
        return self.peak * tf.where(count < float(self.warmup_steps), rising, falling)

    def get_config(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("peak", "num_steps", "warmup_steps")}


# What a run's rate may follow, made of its peak, its number of steps and those of the warm-up.
SCHEDULES: dict[str, Callable[[float, int, int], Any]] = {"linear": WarmupLinearDecay}


@keras.saving.register_keras_serializable("mate_tf")
class BertAdamW(ChangesSummedGradients, keras.optimizers.Optimizer):
    """Adam with decoupled weight decay and without bias correction (Devlin et al., 2019).

    Gradients of the whole batch are clipped by their global norm and by value, then

        m = beta_1 * m + (1 - beta_1) * gradient
        v = beta_2 * v + (1 - beta_2) * gradient^2
        variable -= learning_rate * (m / (sqrt(v) + epsilon) + weight_decay_rate * variable)

    Create it, and call `build(model.trainable_variables)`, inside the strategy scope. The
    learning_rate is a number, or a schedule of the number of updates; the other arguments are those
    of TrainingConfig. The moving average starts from the first update.
    """

    def __init__(
        self,
        learning_rate: Any = 5e-5,
        weight_decay_rate: float = 0.01,
        max_gradient_norm: float | None = 1.0,
        max_gradient_value: float | None = None,
        head_learning_rate_ratio: float = 1.0,
        attention_bias_learning_rate_ratio: float = 1.0,
        ema_decay: float | None = None,
        name: str = "bert_adamw",
    ):
        average = {} if ema_decay is None else {"use_ema": True, "ema_momentum": ema_decay}
        super().__init__(learning_rate=learning_rate, name=name, **average)
        self.ema_decay = ema_decay
        self.weight_decay_rate = weight_decay_rate
        self.max_gradient_norm = max_gradient_norm
        self.max_gradient_value = max_gradient_value
        self.head_learning_rate_ratio = head_learning_rate_ratio
        self.attention_bias_learning_rate_ratio = attention_bias_learning_rate_ratio

    def build(self, variables: Sequence[keras.Variable]) -> None:
        """Creates m and v for every variable."""
        if self.built:
            return
        super().build(variables)
        self._averaged = list(variables)
        self._m, self._v = self.add_optimizer_variables(variables, ["m", "v"])
        self._decayed = [not re.search(NOT_DECAYED, variable.path) for variable in variables]
        self._rate_ratios = [self._rate_ratio(variable.path) for variable in variables]

    def _rate_ratio(self, path: str) -> float:
        if re.search(ATTENTION_BIAS, path):
            return self.attention_bias_learning_rate_ratio
        return 1.0 if re.search(BODY, path) else self.head_learning_rate_ratio

    def apply(self, grads: Sequence[Any], trainable_variables: Any = None) -> None:
        """Makes one update; in a replica the gradients are its share of the sum."""
        grads = [None if grad is None else tf.convert_to_tensor(grad) for grad in grads]
        super().apply(grads, trainable_variables)

    def change_summed(self, gradients: Sequence[Any]) -> Sequence[Any]:
        """Clips them."""
        if self.max_gradient_norm is not None:
            gradients, _ = tf.clip_by_global_norm(gradients, self.max_gradient_norm)
        if (size := self.max_gradient_value) is not None:
            gradients = [tf.clip_by_value(gradient, -size, size) for gradient in gradients]
        return gradients

    @contextlib.contextmanager
    def averaged_weights(self) -> Iterator[None]:
        """Meanwhile the variables hold their moving averages, if there is an `ema_decay`."""
        self._swap_averages()
        try:
            yield
        finally:
            self._swap_averages()

    def _swap_averages(self) -> None:
        if self.use_ema and self.iterations > 0:  # before, there is no average
            for variable, average in zip(self._averaged, moving_averages(self), strict=True):
                value = tf.identity(variable.value)
                variable.assign(average.value)
                average.assign(value)

    def update_step(self, gradient: Any, variable: Any, learning_rate: Any) -> None:
        index = variable_index(self, variable)
        rate = tf.cast(learning_rate, variable.dtype) * self._rate_ratios[index]
        if self._decayed[index]:
            variable.assign_sub(rate * self.weight_decay_rate * variable)
        # TensorFlow's fused kernel passes over memory once; powers of zero switch off its bias
        # correction.
        numbers = dict(beta1_power=0.0, beta2_power=0.0, beta1=_BETA_1, beta2=_BETA_2)
        numbers |= dict(epsilon=_EPSILON, grad=gradient)
        tf.raw_ops.ResourceApplyAdam(
            var=variable.handle,
            m=self._m[index].value.handle,
            v=self._v[index].value.handle,
            lr=rate,
            **{name: tf.cast(number, variable.dtype) for name, number in numbers.items()},
        )

    def get_config(self) -> dict[str, Any]:
        own = {name: getattr(self, name) for name in (*OPTIONS, "max_gradient_norm")}
        return {"learning_rate": super().get_config()["learning_rate"], "name": self.name} | own
