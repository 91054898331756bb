"""Attention: which tokens may attend to which, and how; one file for each kind."""
