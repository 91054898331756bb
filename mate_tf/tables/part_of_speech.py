"""Parts of speech of a text's words and of its wordpieces, for grammar-guided attention.

A tagger is any function from a text to its tagged words. It runs once, when examples are made. The
tags become ids, one for each wordpiece, by the places of pieces and words in the text (paper on
grammar-guided attention, section 3.1). The library of a tagger is imported when it is loaded.

Shape letter: N pieces of a text.
"""

import bisect
import importlib
import itertools
import re
import warnings
from collections.abc import Callable, Sequence
from typing import NamedTuple

from mate_tf.private_apis import import_extra

# Universal Dependencies' universal tags. A tag's id is its place, from 1. Id 0 is for everything
# without a part of speech: special tokens, the table and padding.
UNIVERSAL_TAGS = tuple(
    "ADJ ADP ADV AUX CCONJ DET INTJ NOUN NUM PART PRON PROPN PUNCT SCONJ SYM VERB X".split()
)
NUM_TAG_IDS = len(UNIVERSAL_TAGS) + 1
# The Penn Treebank's tags. Its IN is a preposition or, far less often, a subordinating conjunction.
PENN_TO_UNIVERSAL = {
    penn: universal
    for universal, tags in {
        "ADJ": "JJ JJR JJS",
        "ADP": "IN RP",
        "ADV": "RB RBR RBS WRB",
        "AUX": "MD",
        "CCONJ": "CC",
        "DET": "DT PDT WDT",
        "INTJ": "UH",
        "NOUN": "NN NNS",
        "NUM": "CD",
        "PART": "POS TO",
        "PRON": "EX PRP PRP$ WP WP$",
        "PROPN": "NNP NNPS",
        "PUNCT": "-LRB- -RRB- HYPH NFP",
        "SYM": "$ #",
        "VERB": "VB VBD VBG VBN VBP VBZ",
        "X": "FW LS ADD AFX GW XX",
    }.items()
    for penn in tags.split()
}
_PUNCTUATION = re.compile(r"[^\w\s]+")
_SPACY_MODEL = "en_core_web_sm"


class TaggedWord(NamedTuple):
    """A word in a text."""

    start: int  # its first character in the text
    end: int  # the character after its last one
    tag: str  # its part of speech, a universal tag or one of the Penn Treebank


# From a text to its words, in order.
Tagger = Callable[[str], Sequence[TaggedWord]]


def tag_id(tag: str) -> int:
    """The id of a universal or Penn Treebank tag, from 1; ValueError for another.

    Any tag of signs alone is punctuation.
    """
    universal = PENN_TO_UNIVERSAL.get(tag, "PUNCT" if _PUNCTUATION.fullmatch(tag) else tag)
    if universal not in UNIVERSAL_TAGS:
        raise ValueError(
            f"expected a universal part-of-speech tag ({', '.join(UNIVERSAL_TAGS)}) or one of the "
            f"Penn Treebank, got {tag!r}"
        )
    return UNIVERSAL_TAGS.index(universal) + 1


def words_with_tags(text: str, tags: Sequence[str]) -> list[TaggedWord]:
    """Gives each word between a text's blanks its tag (HybridQA's `question_postag`).

    ValueError if there is not one tag for each word.
    """
    words = list(re.finditer(r"\S+", text))
    if len(words) != len(tags):
        raise ValueError(
            f"expected one tag for each of {len(words)} words, got {len(tags)} (text {text!r})"
        )
    return [TaggedWord(*word.span(), tag=tag) for word, tag in zip(words, tags, strict=True)]


def piece_tag_ids(words: Sequence[TaggedWord], piece_starts: Sequence[int]) -> list[int]:
    """The tag id of each of N wordpieces: that of the word in which it begins.

    `piece_starts` are the characters of the text that its N pieces begin with. A piece outside all
    words, such as a sign that the tagger skips, has the id of X. ValueError if words overlap or are
    out of order, or a tag is unknown.
    """
    for before, word in itertools.pairwise(words):
        if before.end > word.start:
            raise ValueError(f"expected words in order, got {before} before {word}")
    starts = [word.start for word in words]
    ids = [tag_id(word.tag) for word in words]
    indices = (bisect.bisect_right(starts, start) - 1 for start in piece_starts)
    return [
        ids[index] if index >= 0 and start < words[index].end else tag_id("X")
        for index, start in zip(indices, piece_starts, strict=True)
    ]


def load_tagger(name: str) -> Tagger:
    """A tagger by its name on the command line.

    The name is "textblob" (the extra "textblob"); "spacy" or "spacy:MODEL" (the extra "spacy"), an
    installed pipeline by name or folder; or "MODULE:FUNCTION" for your own; ValueError for another.
    ModuleNotFoundError without the package, OSError without spaCy's model, which spaCy's own
    download command installs.
    """
    module, _, rest = name.partition(":")
    if name == "textblob":
        return _pattern_tagger()
    if module == "spacy":
        return _spacy_tagger(rest or _SPACY_MODEL)
    if not rest:
        expected = "expected a tagger 'textblob', 'spacy', 'spacy:MODEL' or 'MODULE:FUNCTION'"
        raise ValueError(f"{expected}, got {name!r}")
    return getattr(importlib.import_module(module), rest)


def _pattern_tagger() -> Tagger:
    """TextBlob's PatternTagger, whose model comes with the package. Its tags are Penn's."""
    taggers = import_extra("textblob.en.taggers", "textblob", "for the tagger 'textblob'")
    from nltk.tokenize import TreebankWordTokenizer  # which textblob needs

    tokenizer, tagger = TreebankWordTokenizer(), taggers.PatternTagger()
    with warnings.catch_warnings():  # it reads its lexicon at the first word and does not close it
        warnings.simplefilter("ignore", ResourceWarning)
        tagger.tag("word")

    def tag(text: str) -> list[TaggedWord]:
        spans = list(tokenizer.span_tokenize(text))
        if not spans:
            return []
        pairs = tagger.tag(" ".join(text[start:end] for start, end in spans), tokenize=False)
        # A tag may say more than the part of speech: "NNP-PERS".
        return [
            TaggedWord(start, end, tag.split("-")[0] or tag)
            for (start, end), (_, tag) in zip(spans, pairs, strict=True)
        ]

    return tag


def _spacy_tagger(model: str) -> Tagger:
    """A spaCy pipeline's universal tags, as in the paper."""
    spacy = import_extra("spacy", "spacy", "for the tagger 'spacy'")
    pipeline = spacy.load(model, disable=["parser", "ner", "lemmatizer"])

    def tag(text: str) -> list[TaggedWord]:
        return [
            TaggedWord(token.idx, token.idx + len(token), token.pos_)
            for token in pipeline(text)
            if not token.is_space
        ]

    return tag
