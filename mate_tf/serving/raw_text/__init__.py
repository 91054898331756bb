"""The signature on raw text: tokenizing and reading the answer inside the graph."""
