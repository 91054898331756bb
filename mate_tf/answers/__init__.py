"""Logits become an Answer."""
