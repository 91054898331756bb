"""BERT's AdamW against the first update of the original's optimizer, and its learning rates."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from mate_tf.training.optimizer import BertAdamW, WarmupLinearDecay

# A float32 weight of about 1 is rounded by 6e-8, the update of 1e-3 is 1e-5 off (1 - beta_2).
TOLERANCE = 2e-7


def pytest_generate_tests(metafunc) -> None:
    index = metafunc.config.golden.load_index("heads")
    names = [name for name in index if name.startswith("train_")]
    metafunc.parametrize("name", names or [pytest.param("", marks=pytest.mark.skip("no heads"))])


def test_first_update_and_rates_are_the_originals(golden, name):
    described = golden.load_index("heads")[name]
    options = dict(described["optimizer"])
    peak, num_steps, warmup = (
        options.pop(key) for key in ("init_lr", "num_train_steps", "num_warmup_steps")
    )
    if options:
        golden.not_compared("optimizer", name, f"no {' and '.join(sorted(options))}")
    arrays_file, _ = golden.require(f"heads/{name}.npz", "ckpt/pretraining/model.ckpt.index")
    arrays = np.load(arrays_file)
    schedule = WarmupLinearDecay(peak, num_steps, warmup)
    rates = described["learning_rate_used_at_each_step"]
    actual_rates = [float(schedule(step)) for step in range(len(rates))]
    golden.compare("optimizer", f"{name} learning rates", actual_rates, rates, 1e-9)

    checkpoint = tf.train.load_checkpoint(str(golden.directory / "ckpt/pretraining/model.ckpt"))
    names = [key.removeprefix("grad0:") for key in arrays.files if key.startswith("grad0:")]
    names = [key for key in names if f"after1:{key}" in arrays.files]
    if not names:
        golden.not_compared("optimizer", name, "the file has no gradients with their update")
    variables, gradients = [], []
    for key in names:
        start = checkpoint.get_tensor(key.replace("|", "/"))
        variables.append(keras.Variable(start, name=key))
        gradients.append(tf.constant(arrays[f"grad0:{key}"]))
    # The file has some of the gradients; one more makes up for the norm of all.
    known = sum(float(tf.reduce_sum(tf.square(gradient))) for gradient in gradients)
    gradients.append(tf.constant([np.sqrt(described["global_grad_norm_step0"] ** 2 - known)]))
    variables.append(keras.Variable(np.zeros(1, np.float32), name="rest"))

    BertAdamW(schedule).apply([tf.cast(grad, tf.float32) for grad in gradients], variables)

    for key, variable in zip(names, variables[:-1], strict=True):
        golden.compare(
            "optimizer", f"{name} {key}", variable.numpy(), arrays[f"after1:{key}"], TOLERANCE
        )
