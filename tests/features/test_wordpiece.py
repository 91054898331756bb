import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mate_tf.features.wordpiece import Wordpiece

CJK = [
    (0x4E00, 0x9FFF),
    (0x3400, 0x4DBF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2CEAF),
    (0xF900, 0xFAFF),
    (0x2F800, 0x2FA1F),
]
# All that Python knows of the basic plane, and beyond it those that all editions of Unicode have.
ASSIGNED = [
    chr(code)
    for code in range(1, 0x20000)
    if (unicodedata if code < 0x10000 else unicodedata.ucd_3_2_0).category(chr(code))
    not in ("Cn", "Cs")
]


def reference(vocabulary: list[str], text: str) -> list[str]:
    """BERT's tokenizer, step by step, and TAPAS's empty token."""
    if not re.search(r"[^\W_]", text) or text.lower().strip() == "n/a":
        return ["[EMPTY]"]
    pieces = []
    for word in "".join(map(spaced, text)).split():
        decomposed = unicodedata.normalize("NFD", word.lower())
        bare = "".join(c for c in decomposed if unicodedata.category(c) != "Mn")
        for part in "".join(f" {c} " if is_punctuation(c) else c for c in bare).split():
            pieces += longest_matches(vocabulary, part)
    return pieces


def spaced(character: str) -> str:
    if any(first <= ord(character) <= last for first, last in CJK):
        return f" {character} "
    category = unicodedata.category(character)
    if character in "\t\n\r" or category == "Zs":
        return " "
    return "" if category in ("Cc", "Cf") or character == "\ufffd" else character


def is_punctuation(character: str) -> bool:
    printable_ascii = 33 <= ord(character) <= 126 and not character.isalnum()
    return printable_ascii or unicodedata.category(character).startswith("P")


def longest_matches(vocabulary: list[str], word: str) -> list[str]:
    pieces: list[str] = []
    begin = 0
    while begin < len(word):
        prefix = "##" if begin else ""
        ends = range(len(word), begin, -1)
        end = next((e for e in ends if prefix + word[begin:e] in vocabulary), None)
        if end is None or len(word) > 200:
            return ["[UNK]"]
        pieces.append(prefix + word[begin:end])
        begin = end
    return pieces


def pieces_of(wordpiece: Wordpiece, texts: list[str]) -> list[list[str]]:
    return [[wordpiece.vocabulary[i] for i in ids] for ids in wordpiece.ids(texts)]


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("New York", ["new", "york"]),
        ("Newville", ["new", "##ville"]),
        ("CITÝ", ["city"]),
        ("ci\u0301ty", ["city"]),
        ("ci\u00adty\u200b", ["city"]),
        ("city\u2028name", ["city", "name"]),
        ("2–1", ["2", "–", "1"]),
        ("a京b", ["a", "京", "b"]),
        ("☃ city", ["[UNK]", "city"]),
        ("[MASK]", ["[", "m", "##a", "##s", "##k", "]"]),
        ("nan", ["n", "##a", "##n"]),
        ("", ["[EMPTY]"]),
        (" \t", ["[EMPTY]"]),
        ("-", ["[EMPTY]"]),
        ("?", ["[EMPTY]"]),
        ("__", ["[EMPTY]"]),
        (" N/A ", ["[EMPTY]"]),
        ("д" * 200, ["д", *["##д"] * 199]),
        ("д" * 201, ["[UNK]"]),
        ("a\ud800b", ["a", "##b"]),
    ],
)
def test_pieces_of(wordpiece, text, pieces):
    assert pieces_of(wordpiece, [text]) == [pieces]


@pytest.mark.parametrize("around", ["{}", "a{}b", "x {}9"])
def test_each_character_is_treated_as_in_bert(wordpiece, around):
    texts = [around.format(character) for character in ASSIGNED]
    expected = [reference(wordpiece.vocabulary, text) for text in texts]
    assert pieces_of(wordpiece, texts) == expected


@given(
    st.lists(
        st.text(st.one_of(st.sampled_from(ASSIGNED), st.sampled_from("abn/A 1é.,-京\u0301"))),
        min_size=1,
    )
)
def test_any_text_is_treated_as_in_bert(wordpiece, texts):
    expected = [reference(wordpiece.vocabulary, text) for text in texts]
    assert pieces_of(wordpiece, texts) == expected


def test_no_texts_have_no_pieces(wordpiece):
    assert wordpiece.ids([]) == []


def test_berts_vocabulary_has_the_empty_token_at_unused0(tmp_path):
    path = tmp_path / "vocab.txt"
    path.write_text("[PAD]\n[unused0]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n")
    wordpiece = Wordpiece(path)
    assert wordpiece.ids(["", "a"]) == [[1], [6]]
    assert len(wordpiece) == 7


@pytest.mark.parametrize(
    ("content", "error"),
    [
        (b"[PAD]\n[UNK]\n[CLS]\n[SEP]\n[EMPTY]\na\n", r"expected \[MASK\] in the vocabulary .*v"),
        (b"[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n", r"expected \[EMPTY\] or \[unused0\] in .*v"),
        (b"[PAD]\na\nb\na\n", "'a' in lines 2 and 4 of .*v.txt"),
        (b"[PAD]\n\na\n", "empty line 2 in .*v.txt"),
        (b"", "empty line 1 in .*v.txt"),
        (b"\xff\xfe", "expected a vocabulary in UTF-8, got .*v.txt"),
    ],
)
def test_a_file_that_is_no_vocabulary_is_named(tmp_path, content, error):
    path = tmp_path / "v.txt"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=error):
        Wordpiece(path)


def test_a_missing_vocabulary_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"expected a vocabulary file at .*absent\.txt"):
        Wordpiece(tmp_path / "absent.txt")
