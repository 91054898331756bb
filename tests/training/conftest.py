"""Two logical CPUs, for the tests with two replicas."""

import contextlib

import tensorflow as tf

with contextlib.suppress(RuntimeError):  # already initialised: those tests are skipped
    cpu = tf.config.list_physical_devices("CPU")[0]
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
