"""How texts are compared, and their pieces.

test_wordpiece.py of serving compares the pieces of all characters with TensorFlow Text's.
"""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mate_tf.features.english import normalize_denotation, normalize_for_match
from mate_tf.features.wordpiece import Wordpiece
from tests.features.examples import HOSTILE
from tests.small import cases, stored_cases


@stored_cases("text, normalized")
def test_details_that_do_not_count_are_removed(text, normalized):
    assert normalize_denotation(text) == normalized


def test_what_looks_like_a_tag_is_removed_only_as_the_original_does():
    assert normalize_denotation("a<br>b <2") == "a<br>b <2"
    assert normalize_denotation("a<br>b <2", original=True) == "ab <2"


@given(st.text())
def test_case_and_outer_white_space_do_not_count(text):
    assert normalize_for_match(f" {text}\n") == normalize_for_match(text)
    assert normalize_denotation(f" {text}\n") == normalize_denotation(text)


_TRAILING_REFERENCES = re.compile(
    r"(?: (?<!^) \[ [^\]]* \] | ^ \[ \d+ \] | [\u2022\u2666\u2020\u2021*\#+] )+ $", re.VERBOSE
)
_TRAILING_PARENTHESES = re.compile(r"(?<!^)(?: \([^)]*\))+$")
_QUOTED_WHOLE = re.compile(r'^"([^"]*)"$')


def denotation_by_patterns(text):
    """What takes quadratic time: the details as three patterns, until none is left."""
    before = None
    while text != before:
        before = text
        text = _TRAILING_REFERENCES.sub("", text.strip())
        text = _TRAILING_PARENTHESES.sub("", text.strip())
        text = _QUOTED_WHOLE.sub(r"\1", text.strip())
    return normalize_for_match(text.removesuffix("."))


@given(st.text('[]()"*1a .\t', max_size=20))
def test_details_are_those_of_the_patterns(text):
    assert normalize_denotation(text) == denotation_by_patterns(text)


@pytest.mark.parametrize("original", [False, True])
@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_no_text_takes_more_than_linear_time(text, original):
    assert len(normalize_denotation(text, original)) <= len(text)


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
