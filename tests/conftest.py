"""Settings of every test."""

import os

import hypothesis

# oneDNN's kernels round in another order than the plain ones, which one ill-conditioned gradient of
# the original would show (see tests/golden/test_heads.py). Set before TensorFlow is imported.
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")

# No clock decides a test, and a run repeats exactly.
hypothesis.settings.register_profile(
    "mate_tf",
    deadline=None,
    derandomize=True,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("mate_tf")
