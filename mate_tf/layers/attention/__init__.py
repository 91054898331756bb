"""Attention: which tokens may attend to which, and how. `kinds.py` has the layer and its kinds."""
