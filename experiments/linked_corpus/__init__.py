"""A corpus of generated tables with passages, and of questions in two hops."""
