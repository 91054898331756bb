"""Statements about tables, true and false, for intermediate pre-training."""
