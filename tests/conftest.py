"""Settings of every test."""

import os

import hypothesis

# oneDNN's kernels round in another order than the plain ones; one recorded gradient of the original
# (wtq_first_order) is so ill-conditioned that the original itself is 1.4e-5 off a float64 run, and
# their rounding on top would pass its 1e-5. Set before TensorFlow is imported.
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")

# No clock decides a test, and a run repeats exactly.
hypothesis.settings.register_profile(
    "mate_tf",
    deadline=None,
    derandomize=True,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("mate_tf")
