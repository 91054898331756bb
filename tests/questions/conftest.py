"""The small vocabulary of the tests of what is made of tables."""

from tests.tables.conftest import vocab_file, wordpiece

__all__ = ["vocab_file", "wordpiece"]
