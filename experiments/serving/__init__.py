"""The server of experiments/serve.py, by subject."""
