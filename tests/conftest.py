"""Settings of every test."""

import hypothesis

# No clock decides a test, and a run repeats exactly.
hypothesis.settings.register_profile(
    "mate_tf",
    deadline=None,
    derandomize=True,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("mate_tf")
