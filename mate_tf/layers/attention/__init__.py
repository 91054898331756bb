"""Attention: which tokens may attend to which, and how.

A layer projects to heads and back (`projections.py`) and is given an implementation (`heads.py`):
all pairs, a window of views, tiles, or two of them by length. `kinds.py` lists the layers.
"""
