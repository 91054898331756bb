"""Published checkpoints into our variables."""
