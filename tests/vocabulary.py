"""A small vocabulary for tests of what is made of tables."""

import string

import pytest

SPECIAL = ["[PAD]", "[EMPTY]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
CHARACTERS = string.ascii_lowercase + string.digits + "éßøд"
WORDS = [
    *(f"##{character}" for character in CHARACTERS),
    *"city name people new york ##ville".split(),
]
VOCABULARY = [*SPECIAL, *string.punctuation, "–", "京", *CHARACTERS, *WORDS]


@pytest.fixture(scope="session")
def vocab_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("vocabulary") / "vocab.txt"
    path.write_text("\n".join(VOCABULARY) + "\n", encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def wordpiece(vocab_file):
    # Not at the top: tests/conftest.py imports this module before TensorFlow may be imported.
    from mate_tf.features.wordpiece import Wordpiece

    return Wordpiece(vocab_file)
