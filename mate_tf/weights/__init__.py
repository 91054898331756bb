"""Weights from TF1 checkpoints, Hugging Face, the Hub and other runs."""
