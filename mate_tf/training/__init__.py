"""Records become a training run."""
