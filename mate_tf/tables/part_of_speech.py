"""Part-of-speech taggers of other libraries, as functions from a text to its tagged words.

Each library is imported when its tagger is made.

Parts of speech of a text's words, and of its wordpieces.

Tags are made once, when examples are made, by a tagger that is passed in: any function from a
text to its tagged words. They become ids, one for each wordpiece, by where the pieces and the
words stand in the text (grammar-guided attention paper, section 3.1).

Shapes: N pieces of a text.
"""

import bisect
import importlib
import itertools
import re
import warnings
from collections.abc import Callable, Sequence
from typing import NamedTuple

# Universal Dependencies' universal part-of-speech tags. A tag's id is its place, from 1; id 0 is
# for what has no part of speech: special tokens, the table and padding.
UNIVERSAL_TAGS = (
    "ADJ",
    "ADP",
    "ADV",
    "AUX",
    "CCONJ",
    "DET",
    "INTJ",
    "NOUN",
    "NUM",
    "PART",
    "PRON",
    "PROPN",
    "PUNCT",
    "SCONJ",
    "SYM",
    "VERB",
    "X",
)
NUM_TAG_IDS = len(UNIVERSAL_TAGS) + 1

# The Penn Treebank's tags. IN is a preposition or a subordinating conjunction, which it does not
# tell apart: the former, far more frequent, stands for both.
PENN_TO_UNIVERSAL = {
    "CC": "CCONJ",
    "CD": "NUM",
    "DT": "DET",
    "EX": "PRON",
    "FW": "X",
    "IN": "ADP",
    "JJ": "ADJ",
    "JJR": "ADJ",
    "JJS": "ADJ",
    "LS": "X",
    "MD": "AUX",
    "NN": "NOUN",
    "NNS": "NOUN",
    "NNP": "PROPN",
    "NNPS": "PROPN",
    "PDT": "DET",
    "POS": "PART",
    "PRP": "PRON",
    "PRP$": "PRON",
    "RB": "ADV",
    "RBR": "ADV",
    "RBS": "ADV",
    "RP": "ADP",
    "TO": "PART",
    "UH": "INTJ",
    "VB": "VERB",
    "VBD": "VERB",
    "VBG": "VERB",
    "VBN": "VERB",
    "VBP": "VERB",
    "VBZ": "VERB",
    "WDT": "DET",
    "WP": "PRON",
    "WP$": "PRON",
    "WRB": "ADV",
    "-LRB-": "PUNCT",
    "-RRB-": "PUNCT",
    "HYPH": "PUNCT",
    "NFP": "PUNCT",
    "$": "SYM",
    "#": "SYM",
    "ADD": "X",
    "AFX": "X",
    "GW": "X",
    "XX": "X",
}
_PUNCTUATION = re.compile(r"[^\w\s]+")


class TaggedWord(NamedTuple):
    """A word in a text.

    Attributes:
        start: its first character in the text.
        end: the character after its last.
        tag: its part of speech, of the universal tags or of the Penn Treebank's.
    """

    start: int
    end: int
    tag: str


# From a text to its words, in their order.
Tagger = Callable[[str], Sequence[TaggedWord]]


def tag_id(tag: str) -> int:
    """The id of a universal or Penn Treebank tag, from 1.

    SYM is the same in both. Penn's tags of punctuation are signs; so is any other sign.

    Raises:
        ValueError: if the tag is of neither set.
    """
    universal = tag if tag in UNIVERSAL_TAGS else PENN_TO_UNIVERSAL.get(tag)
    if universal is None and _PUNCTUATION.fullmatch(tag):
        universal = "PUNCT"
    if universal is None:
        raise ValueError(
            f"expected a universal part-of-speech tag ({', '.join(UNIVERSAL_TAGS)}) or a Penn "
            f"Treebank one, got {tag!r}"
        )
    return UNIVERSAL_TAGS.index(universal) + 1


def words_with_tags(text: str, tags: Sequence[str]) -> list[TaggedWord]:
    """Gives the words between a text's blanks their tags (HybridQA's `question_postag`).

    Raises:
        ValueError: if there is not one tag for each word.
    """
    words = list(re.finditer(r"\S+", text))
    if len(words) != len(tags):
        raise ValueError(
            f"expected one tag for each of {len(words)} words, got {len(tags)} (text {text!r})"
        )
    return [TaggedWord(*word.span(), tag=tag) for word, tag in zip(words, tags, strict=True)]


def piece_tag_ids(words: Sequence[TaggedWord], piece_starts: Sequence[int]) -> list[int]:
    """The id of each piece's part of speech: that of the word in which it begins.

    Args:
        words: of the text, in their order.
        piece_starts: the character of the text that each of its N pieces begins with.

    Returns:
        N ids; of a piece outside all words (a tagger may pass over signs) that of X, "other".

    Raises:
        ValueError: if words overlap or are out of order, or for an unknown tag.
    """
    for before, word in itertools.pairwise(words):
        if before.end > word.start:
            raise ValueError(f"expected words in their order, got {before} before {word}")
    starts = [word.start for word in words]
    ids = [tag_id(word.tag) for word in words]
    other = tag_id("X")

    def of_piece(start: int) -> int:
        index = bisect.bisect_right(starts, start) - 1
        return ids[index] if index >= 0 and start < words[index].end else other

    return [of_piece(start) for start in piece_starts]


SPACY_MODEL = "en_core_web_sm"


def pattern_tagger() -> Tagger:
    """TextBlob's PatternTagger, whose model comes with the package (the extra "textblob").

    Words are split as in the Penn Treebank, whose tags it gives.

    Raises:
        ModuleNotFoundError: without TextBlob.
    """
    from nltk.tokenize import TreebankWordTokenizer
    from textblob.en.taggers import PatternTagger

    tokenizer, tagger = TreebankWordTokenizer(), PatternTagger()
    with warnings.catch_warnings():  # its lexicon is read at the first word, and not closed
        warnings.simplefilter("ignore", ResourceWarning)
        tagger.tag("word")

    def tag(text: str) -> list[TaggedWord]:
        spans = list(tokenizer.span_tokenize(text))
        if not spans:
            return []
        pairs = tagger.tag(" ".join(text[start:end] for start, end in spans), tokenize=False)
        # A word may be tagged with more than its part of speech: "NNP-PERS".
        return [
            TaggedWord(start, end, tag.split("-")[0] or tag)
            for (start, end), (_, tag) in zip(spans, pairs, strict=True)
        ]

    return tag


def spacy_tagger(model: str = SPACY_MODEL) -> Tagger:
    """A spaCy pipeline's universal tags, as in the paper (the extra "spacy").

    Args:
        model: an installed pipeline, by name or folder.

    Raises:
        ModuleNotFoundError: without spaCy.
        OSError: without the model, which spaCy's own download command installs.
    """
    import spacy

    pipeline = spacy.load(model, disable=["parser", "ner", "lemmatizer"])

    def tag(text: str) -> list[TaggedWord]:
        return [
            TaggedWord(token.idx, token.idx + len(token), token.pos_)
            for token in pipeline(text)
            if not token.is_space
        ]

    return tag


def load_tagger(name: str) -> Tagger:
    """A tagger by its name on the command line.

    Args:
        name: "textblob", "spacy", "spacy:MODEL", or "MODULE:FUNCTION" for one's own.

    Raises:
        ValueError: for another name.
    """
    library, _, rest = name.partition(":")
    if name == "textblob":
        return pattern_tagger()
    if library == "spacy":
        return spacy_tagger(rest or SPACY_MODEL)
    if rest:
        return getattr(importlib.import_module(library), rest)
    raise ValueError(
        f"expected a tagger 'textblob', 'spacy', 'spacy:MODEL' or 'MODULE:FUNCTION', got {name!r}"
    )
