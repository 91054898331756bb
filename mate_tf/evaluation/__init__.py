"""Predictions become official scores."""
