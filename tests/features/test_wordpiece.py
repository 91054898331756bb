"""Pieces of texts; test_wordpiece.py of serving compares all characters with TensorFlow Text's."""

import pytest

from mate_tf.features.wordpiece import Wordpiece
from tests.small import cases


@cases(
    "text, pieces",
    *(("New York", ["new", "york"]), ("Newville", ["new", "##ville"]), ("CITÝ", ["city"])),
    *(("ci\u0301ty", ["city"]), ("ci\u00adty\u200b", ["city"])),
    *(("city\u2028name", ["city", "name"]), ("2–1", ["2", "–", "1"]), ("a京b", ["a", "京", "b"])),
    *(("☃ city", ["[UNK]", "city"]), ("[MASK]", ["[", "m", "##a", "##s", "##k", "]"])),
    *(("nan", ["n", "##a", "##n"]), ("", ["[EMPTY]"]), (" \t", ["[EMPTY]"]), ("-", ["[EMPTY]"])),
    *(("?", ["[EMPTY]"]), ("__", ["[EMPTY]"]), (" N/A ", ["[EMPTY]"])),
    *(("д" * 200, ["д", *["##д"] * 199]), ("д" * 201, ["[UNK]"]), ("a\ud800b", ["a", "##b"])),
)
def test_pieces_of(wordpiece, text, pieces):
    (ids,) = wordpiece.ids([text])
    assert [wordpiece.vocabulary[index] for index in ids] == pieces
    assert wordpiece.ids([]) == []


def test_berts_vocabulary_has_the_empty_token_at_unused0(tmp_path):
    path = tmp_path / "vocab.txt"
    path.write_text("[PAD]\n[unused0]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n")
    wordpiece = Wordpiece(path)
    assert wordpiece.ids(["", "a"]) == [[1], [6]]
    assert len(wordpiece) == 7


@cases(
    "content, error",
    (b"[PAD]\n[UNK]\n[CLS]\n[SEP]\n[EMPTY]\na\n", r"expected \[MASK\] in the vocabulary .*v"),
    (b"[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n", r"expected \[EMPTY\] or \[unused0\] in .*v"),
    (b"[PAD]\na\nb\na\n", "'a' in lines 2 and 4 of .*v.txt"),
    (b"[PAD]\n\na\n", "empty line 2 in .*v.txt"),
    (b"", "empty line 1 in .*v.txt"),
    (b"\xff\xfe", "expected a vocabulary in UTF-8, got .*v.txt"),
)
def test_a_file_that_is_no_vocabulary_is_named(tmp_path, content, error):
    path = tmp_path / "v.txt"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=error):
        Wordpiece(path)
    with pytest.raises(FileNotFoundError, match=r"expected a vocabulary file at .*absent\.txt"):
        Wordpiece(tmp_path / "absent.txt")
