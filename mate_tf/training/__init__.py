"""Training: optimizer, loop on Orbit, configs and their overrides."""
